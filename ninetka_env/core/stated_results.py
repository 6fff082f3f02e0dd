"""Parsing of results that game files state, in the spellings of many programs and several languages.

A stated result can differ from the result by the rules, because players agree on dead stones or end a game early.
`read_result` parses a stated result, `counted_result` returns the result by the rules in the format of SGF's `RE`, and
`stated_or_counted_winner` returns the winner.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from ninetka_env.core.game import Game
from ninetka_env.core.outcome import DRAWN, UNFINISHED
from ninetka_env.core.text import one_line

COLOURS = "BW"
"""SGF's letters for the seats."""
EVENT_LETTERS = {"resigned": "R", "time": "T", "left": "F"}
"""SGF's letters in `RE` for each kind of `Event`."""

_HAN = {"black": "黑黒", "white": "白"}
"""Chinese and Japanese characters that name a seat called "black" or "white"."""
_WINS = (r"\s*\+(.*)", r"\s+(?:wins?|won)\b(.*)", r"(?![a-z])(.*[胜勝].*)")
_LOSES = (
    r"\s+(?:has )?((?:resign|los[et]|forfeit|timed out|ran out of time).*)",
    r"(?![a-z])(.*(?:[负負败敗]|认输|認輸|投了).*)",
)
"""Patterns of the text after the name of a seat that won (`_WINS`) or lost; the group contains how the game ended."""
_EVENT_PATTERNS = {
    "resigned": re.compile(r"r\b|res|.*(?:resign|中盘|中盤|中押|认输|認輸|投了)"),
    "time": re.compile(r"t\b|.*(?:time|超时|超時|时间|時間)"),
    "left": re.compile(r"f\b|.*forf"),
}
"""Patterns for the kinds of events; single letters and `res` must be at the start of the text."""
_DRAWN = r"0(?:[.,]0*)?|draw|drawn|tie|tied|jigo|ジゴ|持碁|和棋|平局"
_NO_WINNER = r"void|no result|no winner|annulled|both (?:players )?los[et]|无胜负|無勝負|両負け"
_WITHOUT_WINNER = {
    winner: rf"(?:{words})[.!]?(?: ?\(.*\))?" for winner, words in ((DRAWN, _DRAWN), (UNFINISHED, _NO_WINNER))
}
"""Patterns of complete texts that say that no seat won, with an optional remark in parentheses."""


class Result(NamedTuple):
    """A parsed result."""

    winner: int | None
    """The winning seat, `DRAWN`, `UNFINISHED` if the text says that no seat won, or None if the text is unknown."""
    kind: str | None = None
    """The event that ended the game, one of `EVENTS`, or None if the text names none."""


def read_result(text: str, seats: Sequence[str]) -> Result:
    """Parse the result of a game.

    Many spellings are accepted: `B+2.5`, `w + resign`, `B+Illegal`, `White resigns.`, `Black wins by 3.5`, `Jigo`,
    `Void`, `白中盘胜`. For any other text, such as `Unfinished`, the winner is None.

    Args:
        text: the result, such as the value of SGF's `RE`.
        seats: the names of the seats. Their initials are accepted, too, if they are unique.
    """
    text = " ".join(unicodedata.normalize("NFKC", one_line(text)).casefold().split())
    for winner, pattern in _WITHOUT_WINNER.items():
        if re.fullmatch(pattern, text):
            return Result(winner)
    names, seat = _seat_names(tuple(seats))
    for pattern in _WINS:
        if match := re.match(seat + pattern, text):
            return Result(names[match[1]], _event_kind(match[2]))
    for pattern in _LOSES if len(seats) == 2 else ():
        if match := re.match(seat + pattern, text):
            return Result(1 - names[match[1]], _event_kind(match[2]))
    return Result(None)


@functools.lru_cache(32)
def _seat_names(seats: tuple[str, ...]) -> tuple[dict[str, int], str]:
    """Return a mapping from the names used in results to seats, and a pattern of these names."""
    words = [seat.casefold() for seat in seats]
    initials = [word[:1] for word in words]
    names = {initial: seat for seat, initial in enumerate(initials) if initials.count(initial) == 1}
    for seat, word in enumerate(words):
        names |= dict.fromkeys([word, *_HAN.get(word, "")], seat)
    return names, f"({'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})"


def _event_kind(how: str) -> str | None:
    """Return the kind of event in the part of a result that says how the game was won or lost, or None."""
    how = how.strip()
    if how[:1].isdigit():  # points, and perhaps a comment
        return None
    return next((kind for kind, pattern in _EVENT_PATTERNS.items() if pattern.match(how)), None)


def counted_result(final: Game) -> str:
    """Return the result by the rules of a two-player game in the format of SGF's `RE`.

    Examples are `B+2` or `W+1.5` by the scores, `B+R` by resignation, `W+T` on time, `B+F` after a seat has left the
    game, `0` for a draw, and `?` for an unfinished game.
    """
    if not final.is_over:
        return "?"
    winner = final.winner()
    if winner == DRAWN:
        return "0"
    if final.event is not None:
        how = EVENT_LETTERS[final.event.kind]
    elif not final.decided_by_scores:
        how = EVENT_LETTERS["resigned"]
    else:
        scores = final.scores()
        how = f"{scores[winner] - scores[1 - winner]:g}"
    return f"{COLOURS[winner]}+{how}"


def stated_or_counted_winner(final: Game, stated: str) -> int:
    """Return the winner by the stated result or, without one, by the rules; `UNFINISHED` if the game is not over."""
    winner = read_result(stated, final.definition().seats[: final.num_players]).winner
    if winner is not None:
        return winner
    return final.winner() if final.is_over else UNFINISHED

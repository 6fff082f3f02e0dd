"""Results as files of games state them, in the spellings of many programs and some languages.

A file may state another result than counting its last position gives: people agree on dead stones, or end a game
before the rules do. `read_result` returns what such a text says, `winner_of` who has won by it, and `counted_result`
how SGF's `RE` writes what the rules give.
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
"""How SGF calls the seats."""
EVENT_LETTERS = {"resigned": "R", "time": "T", "left": "F"}
"""How SGF's `RE` writes what ended a game early, by the kinds of `Event`."""

_HAN = {"black": "黑黒", "white": "白"}
"""Chinese and Japanese signs for seats that are called by these colours."""
_WINS = (r"\s*\+(.*)", r"\s+(?:wins?|won)\b(.*)", r"(?![a-z])(.*[胜勝].*)")
_LOSES = (
    r"\s+(?:has )?((?:resign|los[et]|forfeit|timed out|ran out of time).*)",
    r"(?![a-z])(.*(?:[负負败敗]|认输|認輸|投了).*)",
)
"""What follows the name of a seat that has won or lost; the group says how."""
_KINDS = {
    "resigned": re.compile(r"r\b|res|.*(?:resign|中盘|中盤|中押|认输|認輸|投了)"),
    "time": re.compile(r"t\b|.*(?:time|超时|超時|时间|時間)"),
    "left": re.compile(r"f\b|.*forf"),
}
"""Words that say how a game ended early; single letters and `res` count at the beginning only."""
_DRAWN = r"0(?:[.,]0*)?|draw|drawn|tie|tied|jigo|ジゴ|持碁|和棋|平局"
_NOBODY = r"void|no result|no winner|annulled|both (?:players )?los[et]|无胜负|無勝負|両負け"
_NO_SEAT = {winner: rf"(?:{words})[.!]?(?: ?\(.*\))?" for winner, words in ((DRAWN, _DRAWN), (UNFINISHED, _NOBODY))}
"""Whole texts that say that no seat has won, perhaps with more in brackets."""


class Result(NamedTuple):
    """What a text says of a result."""

    winner: int | None
    """A seat, or `DRAWN`; `UNFINISHED` if nobody has won; None if the text does not say."""
    kind: str | None = None
    """How the game ended before its rules ended it, one of `EVENTS`, if the text says so."""


def read_result(text: str, seats: Sequence[str]) -> Result:
    """Return what a text says of the result of a game.

    The winner is read generously: `B+2.5`, `w + resign`, `B+Illegal`, `White resigns.`, `Black wins by 3.5`, `Jigo`,
    `Void`, `白中盘胜`. Unknown texts, such as `Unfinished`, name no winner.

    Args:
        text: the result, such as the value of SGF's `RE`.
        seats: what people call the seats. Their first letters stand for them, too, where these differ.
    """
    text = " ".join(unicodedata.normalize("NFKC", one_line(text)).casefold().split())
    for winner, pattern in _NO_SEAT.items():
        if re.fullmatch(pattern, text):
            return Result(winner)
    names, seat = _names(tuple(seats))
    for pattern in _WINS:
        if match := re.match(seat + pattern, text):
            return Result(names[match[1]], _kind(match[2]))
    for pattern in _LOSES if len(seats) == 2 else ():
        if match := re.match(seat + pattern, text):
            return Result(1 - names[match[1]], _kind(match[2]))
    return Result(None)


@functools.lru_cache(32)
def _names(seats: tuple[str, ...]) -> tuple[dict[str, int], str]:
    """Return the seats by the names that texts give them, and a pattern of these names."""
    words = [seat.casefold() for seat in seats]
    initials = [word[:1] for word in words]
    names = {initial: seat for seat, initial in enumerate(initials) if initials.count(initial) == 1}
    for seat, word in enumerate(words):
        names |= dict.fromkeys([word, *_HAN.get(word, "")], seat)
    return names, f"({'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})"


def _kind(how: str) -> str | None:
    """Return the kind of event that ended a game, by the words that say how it was won or lost."""
    how = how.strip()
    if how[:1].isdigit():  # points, and perhaps a comment
        return None
    return next((kind for kind, pattern in _KINDS.items() if pattern.match(how)), None)


def counted_result(final: Game) -> str:
    """Return the result by the rules of a game of two as SGF's `RE` writes it.

    Such as `B+2` or `W+1.5` by the scores, `B+R` by resignation, `W+T` on time, `B+F` after a seat has left, `0` if
    drawn, and `?` while the game is on.
    """
    if not final.is_over:
        return "?"
    winner = final.winner()
    if winner == DRAWN:
        return "0"
    if final.event is not None:
        how = EVENT_LETTERS[final.event.kind]
    elif not final.scored:
        how = EVENT_LETTERS["resigned"]
    else:
        scores = final.scores()
        how = f"{scores[winner] - scores[1 - winner]:g}"
    return f"{COLOURS[winner]}+{how}"


def winner_of(final: Game, stated: str) -> int:
    """Return who has won: as stated, else as the last position counts, `UNFINISHED` where the game is not over."""
    winner = read_result(stated, final.definition().seats[: final.num_players]).winner
    if winner is not None:
        return winner
    return final.winner() if final.is_over else UNFINISHED

"""The text format of game records, for every game. See `ninetka_env.api.record_files` for reading and writing files.

A *game record*, format 2, is a block of lines; blank lines separate the records in a file:

    game record, format 2
    game: ninetka
    players: 2
    neutral_placement: players
    turn_order: restart
    auto_pass: True
    yellow: maxn
    blue: random
    neutral: C9 F8 I7 C6 E5 H6 D3 G2 I3
    placement: B11 A10 ...
      K4 ...
    movement: B11 A10 (pass) K4 ...
    result: yellow 5, blue 3; yellow wins

All options of the game are written (`num_players` as `players`). Other tags (lower-case key, one line of text) are
free; by convention the names of the agents are written under the names of their seats. The moves follow: one line for
each stage of the game if its stages follow one another, else one line `moves`. What was drawn at random before the
first turn is at the beginning of its stage's line. `(pass)` is not a move; it marks a seat that the rules passed over.
Long lines are continued in indented lines.

`result` is the last line of the game, in one of these forms:

    yellow 5, blue 3; yellow wins
    blue resigned; yellow wins
    Black wins, as stated (B+2.5); counted: Black 9, White 43.5
    Black 9, White 43.5; White wins (stated: Unfinished)

- The scores, then the winner or `drawn`.
- The event that ended the game (`resigned`, `lost on time`, `left`), then the winner.
- The winner, `drawn` or `no winner` according to a stated result, which the players agreed on or a file contains; the
  stated result in brackets; the scores. The text in brackets may contain brackets; it ends at the last `); counted: `
  of the line.
- The scores as in the first form, then in brackets a stated result that names no winner. It ends with the line.

Readers derive the winner from the scores and the text in brackets (`ninetka_env.core.stated.read_result`) and reject a
line with another winner.
"""

from __future__ import annotations

import re
from textwrap import fill

from ninetka_env.core.game import EVENTS, Event, Game
from ninetka_env.core.options import Option
from ninetka_env.core.outcome import DRAWN, UNFINISHED
from ninetka_env.core.record import GameRecord
from ninetka_env.core.registry import Variant
from ninetka_env.core.stated import read_result
from ninetka_env.core.text import MAX_LINE, TAG, quote

__all__ = [
    "ENDED", "FORMAT", "PASSED", "GameRecord", "event_of", "format_record", "heading", "line_of",
    "move_lines", "option_key", "result_text", "stated_of",
]  # fmt: skip

FORMAT = "game record, format 2"
PASSED = "(pass)"
ENDED = {"resigned": "resigned", "time": "lost on time", "left": "left"}
"""The text of each kind of event in the line `result`."""
_STATED = re.compile(r"[^;(]*, as stated \((.*)\); counted: .*|[^(]*; [^(]* \(stated: (.*)\)")


def move_lines(variant: Variant) -> tuple[str, ...]:
    """Return the names of the lines of moves in a game record."""
    definition = variant.definition
    return definition.stages if definition.stages_follow else ("moves",)


def line_of(game: Game) -> int:
    """Return the index of the line of moves to which the next move belongs."""
    return game.stage if game.definition().stages_follow else 0


def option_key(option: Option) -> str:
    """Return the key of an option in a game record."""
    return "players" if option.name == "num_players" else option.name


def format_record(record: GameRecord) -> str:
    """Return a game as a block of lines; the module docstring describes the format.

    Raises:
        ValueError: if replaying the actions gives another result, a tag cannot be written, the game is not over, or it
            starts from a position that was set up.
    """
    unfit = "games that are not over, or start from a position that was set up, cannot be written in this format"
    if record.begin is not None or record.handed:
        raise ValueError(unfit)
    words, final = _words_by_line(record)
    if not final.is_over:
        raise ValueError(unfit)
    played = record.with_result(final)
    if played != record:
        found = f"scores {record.scores} and winner {record.winner}"
        found += f", stated {quote(record.stated)}, counted {record.counted}" if record.stated else ""
        raise ValueError(f"the record says {found}, but its actions lead to {result_text(played)!r}")
    first, result = heading(record)[:-1], heading(record)[-1]
    moves = [fill(f"{name}: {' '.join(words[name])}", 88, subsequent_indent="  ", break_long_words=False)
             for name in words]  # fmt: skip
    return "\n".join([FORMAT, *first, *moves, result]) + "\n"


def heading(record: GameRecord) -> list[str]:
    """Return the lines of a record without the first line and the moves: game, options, tags, result."""
    variant = record.variant
    options = [f"{option_key(one)}: {variant.options[one.name]}" for one in variant.definition.options]
    tags = [_tag_line(record, key, text) for key, text in record.tags.items()]
    return [f"game: {variant.definition.name}", *options, *tags, f"result: {result_text(record)}"]


def result_text(record: GameRecord) -> str:
    """Return the text of the line `result`: scores, event or stated result, and the winner.

    For a game that is not over and has no stated winner it is `unfinished`.
    """
    words = {DRAWN: "drawn", UNFINISHED: "no winner"}
    outcome = words.get(record.winner) or f"{record.seats[record.winner]} wins"
    if record.event is not None:
        return f"{record.seats[record.event.seat]} {ENDED[record.event.kind]}; {outcome}"
    scores = ", ".join(f"{seat} {score:g}" for seat, score in zip(record.seats, record.scores, strict=False))
    if record.stated and read_result(record.stated, record.seats).winner is not None:
        return f"{outcome}, as stated ({record.stated}); counted: {scores}"
    by_scores = "unfinished" if record.winner == UNFINISHED else f"{scores}; {outcome}"
    return f"{by_scores} (stated: {record.stated})" if record.stated else by_scores


def stated_of(result: str) -> str:
    """Return the stated result in the text of a line `result`; empty if it contains none."""
    match = _STATED.fullmatch(result)
    return (match[1] or match[2] or "") if match else ""


def event_of(result: str, seats: tuple[str, ...]) -> Event | None:
    """Return the event in the text of a line `result`; None if it contains none."""
    for seat, name in enumerate(seats):
        for kind in EVENTS:
            if result.startswith(f"{name} {ENDED[kind]}; "):
                return Event(kind, seat)
    return None


def _tag_line(record: GameRecord, key: str, text: str) -> str:
    line = f"{key}: {text}" if text else f"{key}:"
    options = {option_key(one) for one in record.variant.definition.options}
    if key in {*options, *move_lines(record.variant), "game", "result"}:
        raise ValueError(f"tag {quote(key)}: the name is taken by the format")
    if not (TAG.fullmatch(line) and line.isprintable() and len(line) < MAX_LINE):
        raise ValueError(
            f"tag {quote(key)}: {quote(text)}: expected a key of at most 32 of a..z 0..9 _ and one line of at most "
            f"{MAX_LINE} printable characters without spaces at its ends"
        )
    return line


def _words_by_line(record: GameRecord) -> tuple[dict[str, list[str]], Game]:
    """Return the words of each line of moves, by name, and the last position."""
    names = move_lines(record.variant)
    words: dict[str, list[str]] = {name: [] for name in names}
    game = record.start()
    words[names[0]] += [game.action_name(action) for action in record.drawn]
    for action in record.actions:
        words[names[line_of(game)]].append(game.action_name(action))
        game.play(action)
        words[names[line_of(game)]] += [PASSED] * len(game.passed)
    return words, record.ended(game)

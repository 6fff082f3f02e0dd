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

All options of the game are written (`num_players` as `players`). Any other tags may follow (lower-case key, one line of
text); by convention, the name of each agent is written under the name of its seat. The moves follow: one line for each
stage of the game if `Definition.stages_in_order`, else one line `moves`. Actions drawn at random before the first turn
fill the first of these lines. `(pass)` is not a move; it marks a turn that the rules skipped. Long lines are continued
in indented lines.

`result` is the last line of the game, in one of these forms:

    yellow 5, blue 3; yellow wins
    blue resigned; yellow wins
    Black wins, as stated (B+2.5); counted: Black 9, White 43.5
    Black 9, White 43.5; White wins (stated: Unfinished)

- The scores, then the winner or `drawn`.
- The event that ended the game (`resigned`, `lost on time`, `left`), then the winner.
- The outcome of a stated result (the winner, `drawn` or `no winner`), then the stated result in brackets, then the
  scores by the rules. A stated result is what the players agreed on or what a file states. It may contain brackets; it
  ends at the last `); counted: ` of the line.
- The scores and the winner as in the first form, then in brackets a stated result that names no winner. The last
  bracket of the line ends the stated result.

Readers derive the winner from the scores and the text in brackets (`ninetka_env.core.stated_results.read_result`) and
reject a line that names another winner.
"""

from __future__ import annotations

import re
from textwrap import fill

from ninetka_env.core.game import EVENTS, Event, Game
from ninetka_env.core.options import Option
from ninetka_env.core.outcome import DRAWN, UNFINISHED
from ninetka_env.core.record import GameRecord
from ninetka_env.core.registry import Variant
from ninetka_env.core.stated_results import read_result
from ninetka_env.core.text import MAX_LINE_LENGTH, TAG_PATTERN, quote

__all__ = [
    "EVENT_TEXTS", "FORMAT", "PASSED", "GameRecord", "format_record", "heading", "moves_line_index",
    "moves_line_names", "option_key", "parse_event", "parse_stated_result", "result_text",
]  # fmt: skip

FORMAT = "game record, format 2"
PASSED = "(pass)"
EVENT_TEXTS = {"resigned": "resigned", "time": "lost on time", "left": "left"}
"""The text of each kind of event in the line `result`."""
_STATED = re.compile(r"[^;(]*, as stated \((.*)\); counted: .*|[^(]*; [^(]* \(stated: (.*)\)")


def moves_line_names(variant: Variant) -> tuple[str, ...]:
    """Return the keys of the lines of moves in a game record, in order."""
    definition = variant.definition
    return definition.stages if definition.stages_in_order else ("moves",)


def moves_line_index(game: Game) -> int:
    """Return the index of the line of moves to which the next move belongs."""
    return game.stage if game.definition().stages_in_order else 0


def option_key(option: Option) -> str:
    """Return the key of an option in a game record."""
    return "players" if option.name == "num_players" else option.name


def format_record(record: GameRecord) -> str:
    """Return a game record as a block of lines; the module docstring describes the format.

    Raises:
        ValueError: if replaying the actions gives another result, a tag cannot be written, the game is not over, it
            starts from a set-up position, or it has skipped turns.
    """
    unsupported = "games that are not over, or start from a position that was set up, cannot be written in this format"
    if record.start_position is not None or record.skipped_turns:
        raise ValueError(unsupported)
    words, final = _words_by_line(record)
    if not final.is_over:
        raise ValueError(unsupported)
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
    """Return the lines of a record for game, options, tags and result, without the first line and the moves."""
    variant = record.variant
    options = [f"{option_key(one)}: {variant.options[one.name]}" for one in variant.definition.options]
    tags = [_tag_line(record, key, text) for key, text in record.tags.items()]
    return [f"game: {variant.definition.name}", *options, *tags, f"result: {result_text(record)}"]


def result_text(record: GameRecord) -> str:
    """Return the text of the line `result`: scores, event or stated result, and the winner.

    For a game that is not over and has no stated winner, the text is `unfinished`.
    """
    words = {DRAWN: "drawn", UNFINISHED: "no winner"}
    outcome = words.get(record.winner) or f"{record.seats[record.winner]} wins"
    if record.event is not None:
        return f"{record.seats[record.event.seat]} {EVENT_TEXTS[record.event.kind]}; {outcome}"
    scores = ", ".join(f"{seat} {score:g}" for seat, score in zip(record.seats, record.scores, strict=False))
    if record.stated and read_result(record.stated, record.seats).winner is not None:
        return f"{outcome}, as stated ({record.stated}); counted: {scores}"
    by_scores = "unfinished" if record.winner == UNFINISHED else f"{scores}; {outcome}"
    return f"{by_scores} (stated: {record.stated})" if record.stated else by_scores


def parse_stated_result(result: str) -> str:
    """Return the stated result in the text of a line `result`; empty if it contains none."""
    match = _STATED.fullmatch(result)
    return (match[1] or match[2] or "") if match else ""


def parse_event(result: str, seats: tuple[str, ...]) -> Event | None:
    """Return the event in the text of a line `result`; None if it contains none."""
    for seat, name in enumerate(seats):
        for kind in EVENTS:
            if result.startswith(f"{name} {EVENT_TEXTS[kind]}; "):
                return Event(kind, seat)
    return None


def _tag_line(record: GameRecord, key: str, text: str) -> str:
    line = f"{key}: {text}" if text else f"{key}:"
    options = {option_key(one) for one in record.variant.definition.options}
    if key in {*options, *moves_line_names(record.variant), "game", "result"}:
        raise ValueError(f"tag {quote(key)}: the name is taken by the format")
    if not (TAG_PATTERN.fullmatch(line) and line.isprintable() and len(line) < MAX_LINE_LENGTH):
        raise ValueError(
            f"tag {quote(key)}: {quote(text)}: expected a key of at most 32 of a..z 0..9 _ and one line of at most "
            f"{MAX_LINE_LENGTH} printable characters without spaces at its ends"
        )
    return line


def _words_by_line(record: GameRecord) -> tuple[dict[str, list[str]], Game]:
    """Return the words of each line of moves, by the line's key, and the last position."""
    names = moves_line_names(record.variant)
    words: dict[str, list[str]] = {name: [] for name in names}
    game = record.start()
    words[names[0]] += [game.action_name(action) for action in record.drawn]
    for action in record.actions:
        words[names[moves_line_index(game)]].append(game.action_name(action))
        game.play(action)
        words[names[moves_line_index(game)]] += [PASSED] * len(game.passed)
    return words, record.apply_event(game)

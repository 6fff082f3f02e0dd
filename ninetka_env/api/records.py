"""A finished game of any kind, from its first action to its result, and how it is written down.

A *game record*, format 2, is a block of lines; a blank line parts it from the next in the same file:

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

The game's options are always written (`num_players` as `players`). Other tags (lower-case key, one line of text) are
free; by convention the agents stand under what people call their seats. Then come the moves, a line for each stage of
the game if its stages follow one another, else one line `moves`; what chance drew before the first turn stands first in
the line of its stage. `(pass)` is no move but shows a seat that the rules passed over. Long lines go on in indented
ones. `result` closes the game: the scores, then who wins or `drawn`; a game that an event ended says so instead of the
scores, such as `blue resigned; yellow wins`. Format 1, `9tka record, format 1`, is the same without the line `game`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from textwrap import fill
from typing import Any

from ninetka_env.core.game import EVENTS, Event, Game
from ninetka_env.core.options import Option
from ninetka_env.core.outcome import DRAWN
from ninetka_env.core.registry import DEFAULT, Variant, load_variant
from ninetka_env.core.text import MAX_LINE, TAG, quote

FORMAT, OLD_FORMAT = "game record, format 2", "9tka record, format 1"
PASSED = "(pass)"
ENDED = {"resigned": "resigned", "time": "lost on time", "left": "left"}
"""How the result tells of an event, by its kind."""


@dataclass(frozen=True)
class GameRecord:
    """A finished game from its first action to its result; `GameRecord.of` makes one."""

    variant: Variant
    actions: tuple[int, ...]
    """Every action played by a seat, also passes that players must play; not those that the rules played."""
    scores: tuple[float, ...]
    winner: int
    """A seat, or `DRAWN`."""
    drawn: tuple[int, ...] = ()
    """What chance drew before the first turn, as actions: see `Game.drawn_actions`."""
    event: Event | None = None
    """What ended the game before the rules did."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Free text by key: the agents under the names of their seats, `seed`, `date` ..."""

    @classmethod
    def of(
        cls,
        actions: Iterable[int],
        game: str | Variant = DEFAULT,
        *,
        drawn: Iterable[int] = (),
        event: Event | None = None,
        tags: Mapping[str, str] | None = None,
        **options: Any,
    ) -> GameRecord:
        """Record a finished game by its actions; its result is found by playing them.

        Args:
            actions: as played.
            game: its spec; `options` come before those of the spec.
            drawn: see `GameRecord`.
            event: likewise.
            tags: likewise.
            options: of the game.

        Raises:
            ValueError: if an option or an action is wrong, or the game is not over after the last.
        """
        played, chance = tuple(map(int, actions)), tuple(map(int, drawn))
        record = cls(load_variant(game, **options), played, (), 0, chance, event, dict(tags or {}))
        return record.with_result(record.final())

    @property
    def num_players(self) -> int:
        """Seats at the table."""
        return self.variant.num_players

    @property
    def seats(self) -> tuple[str, ...]:
        """What people call the seats."""
        return self.variant.definition.seats[: self.num_players]

    def start(self) -> Game:
        """Return the position before the first action; `ValueError` if chance cannot have drawn what it has."""
        game: Game = self.variant.game_class.start_from(self.variant, self.drawn)
        return game

    def replay(self) -> Iterator[Game]:
        """Yield the position before the first action and after each one, every time a game of its own.

        An event comes with the last position.

        Raises:
            ValueError: if an action is illegal, naming it and what is legal.
        """
        game = self.start()
        for action in self.actions:
            yield game.copy()
            game.play(action)
        yield self.ended(game)

    def final(self) -> Game:
        """Return the last position; raises as `replay` does."""
        game = self.start()
        for action in self.actions:
            game.play(action)
        return self.ended(game)

    def ended(self, game: Game) -> Game:
        """End the game, after its last action, by the event if there is one; `ValueError` if there can be none."""
        if self.event is not None:
            game.forfeit(self.event.seat, self.event.kind)
        return game

    def with_result(self, final: Game) -> GameRecord:
        """Return the record with the result of its last position; `ValueError` if the game is not over there."""
        if not final.is_over:
            raise ValueError(f"the game is not over after {len(self.actions)} actions: {final!r}")
        return replace(self, scores=tuple(final.scores().tolist()), winner=final.winner())


def move_lines(variant: Variant) -> tuple[str, ...]:
    """Return the names of a record's lines of moves."""
    definition = variant.definition
    return definition.stages if definition.stages_follow else ("moves",)


def line_of(game: Game) -> int:
    """Return in which of the lines of moves the next move stands."""
    return game.stage if game.definition().stages_follow else 0


def option_key(option: Option) -> str:
    """Return how a record calls an option."""
    return "players" if option.name == "num_players" else option.name


def format_record(record: GameRecord) -> str:
    """Return a game as text, one block of lines; the format is described at the top of this module.

    Raises:
        ValueError: if the record does not replay to its own result, or a tag cannot be written.
    """
    words, final = _words_by_line(record)
    played = record.with_result(final)
    if (record.scores, record.winner) != (played.scores, played.winner):
        told = f"scores {record.scores} and winner {record.winner}"
        raise ValueError(f"the record says {told}, but its actions lead to {result_text(played)!r}")
    first, result = heading(record)[:-1], heading(record)[-1]
    moves = [fill(f"{name}: {' '.join(words[name])}", 88, subsequent_indent="  ", break_long_words=False)
             for name in words]  # fmt: skip
    return "\n".join([FORMAT, *first, *moves, result]) + "\n"


def heading(record: GameRecord) -> list[str]:
    """Return the lines of a record but for the first one and the moves: game, options, tags, result."""
    variant = record.variant
    options = [f"{option_key(one)}: {variant.options[one.name]}" for one in variant.definition.options]
    tags = [_tag_line(record, key, text) for key, text in record.tags.items()]
    return [f"game: {variant.definition.name}", *options, *tags, f"result: {result_text(record)}"]


def result_text(record: GameRecord) -> str:
    """Return scores and winner, or the event and winner, as the record writes them."""
    outcome = "drawn" if record.winner == DRAWN else f"{record.seats[record.winner]} wins"
    if record.event is not None:
        return f"{record.seats[record.event.seat]} {ENDED[record.event.kind]}; {outcome}"
    told = ", ".join(f"{seat} {score:g}" for seat, score in zip(record.seats, record.scores, strict=False))
    return f"{told}; {outcome}"


def event_of(result: str, seats: tuple[str, ...]) -> Event | None:
    """Return the event that a result tells of; None if it tells scores."""
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
    """Return the words of the lines of moves, and the last position."""
    names = move_lines(record.variant)
    words: dict[str, list[str]] = {name: [] for name in names}
    game = record.start()
    words[names[0]] += [game.action_name(action) for action in record.drawn]
    for action in record.actions:
        words[names[line_of(game)]].append(game.action_name(action))
        game.play(action)
        words[names[line_of(game)]] += [PASSED] * len(game.passed)
    return words, record.ended(game)

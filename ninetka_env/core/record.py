"""A finished game of any kind: how it began, what was played, how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ninetka_env.core.game import Event, Game
from ninetka_env.core.registry import DEFAULT, Variant, load_variant
from ninetka_env.core.stated import counted_result, winner_of
from ninetka_env.core.text import one_line


@dataclass(frozen=True)
class GameRecord:
    """A finished game from its first action to its result; `GameRecord.of` makes one.

    Games that were read from a file of another program may begin from a position that was set up, leave out a turn,
    or not be over.
    """

    variant: Variant
    actions: tuple[int, ...]
    """Every action played by a seat, also passes that players must play; not those that the rules played."""
    scores: tuple[float, ...]
    """What the rules count in the last position as it stands."""
    winner: int
    """A seat, or `DRAWN`; `UNFINISHED` if nobody has won.

    An event or a stated result decides; without either, the scores of a game that is over.
    """
    drawn: tuple[int, ...] = ()
    """What chance drew before the first turn, as actions: see `Game.drawn_actions`."""
    event: Event | None = None
    """What ended the game before the rules did."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Free text by key: the agents under the names of their seats, `seed`, `date` ..."""
    begin: Game | None = None
    """The position before the first action, if it is another one than the variant's."""
    handed: tuple[int, ...] = ()
    """Before which actions, counted from 0, a turn was left out: the other seat of two did not move."""
    stated: str = ""
    """The result as players agreed on it or a file states it, such as `B+2.5` or `Void`; empty where it is exactly what
    the rules give."""
    counted: int | None = None
    """Who wins by counting the last position of a game that is over, if that is another one than `winner`."""

    @classmethod
    def of(
        cls,
        actions: Iterable[int],
        game: str | Variant = DEFAULT,
        *,
        drawn: Iterable[int] = (),
        event: Event | None = None,
        tags: Mapping[str, str] | None = None,
        stated: str = "",
        **options: Any,
    ) -> GameRecord:
        """Record a finished game by its actions; its scores, and its winner by default, are found by playing them.

        Args:
            actions: as played.
            game: its spec; `options` come before those of the spec.
            drawn: see `GameRecord`.
            event: likewise.
            tags: likewise.
            stated: likewise.
            options: of the game.

        Raises:
            ValueError: if an option or an action is wrong, the game is not over after the last, or both an event and a
                stated result are given.
        """
        played, chance = tuple(map(int, actions)), tuple(map(int, drawn))
        record = cls(load_variant(game, **options), played, (), 0, chance, event, dict(tags or {}), stated=stated)
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
        if self.begin is not None:
            return self.begin.copy()
        game: Game = self.variant.game_class.start_from(self.variant, self.drawn)
        return game

    def replay(self) -> Iterator[Game]:
        """Yield the position before the first action and after each one, every time a game of its own.

        An event comes with the last position.

        Raises:
            ValueError: if an action is illegal, naming it and what is legal.
        """
        game = self.start()
        for number in range(len(self.actions)):
            yield game.copy()
            self.play(game, number)
        yield self.ended(game)

    def final(self) -> Game:
        """Return the last position; raises as `replay` does."""
        game = self.start()
        for number in range(len(self.actions)):
            self.play(game, number)
        return self.ended(game)

    def play(self, game: Game, number: int) -> None:
        """Play the action of this number, counted from 0, in the position before it."""
        if number in self.handed:
            game.hand_turn(1 - game.to_move)
        game.play(self.actions[number])

    def ended(self, game: Game) -> Game:
        """End the game, after its last action, by the event if there is one; `ValueError` if there can be none."""
        if self.event is not None:
            game.forfeit(self.event.seat, self.event.kind)
        return game

    def with_result(self, final: Game, *, unfinished: bool = False) -> GameRecord:
        """Return the record with the result of its last position, or the one that is stated.

        A stated result becomes one line; it becomes empty if it is `?` or exactly what the rules give.

        Raises:
            ValueError: if the game is not over there and `unfinished` is False, or a result is stated though an event
                ended the game.
        """
        if not final.is_over and not unfinished:
            raise ValueError(f"the game is not over after {len(self.actions)} actions: {final!r}")
        stated = one_line(self.stated)
        by_rules = counted_result(final) if stated and final.definition().sgf else ""
        if stated in ("", "?", by_rules):
            stated = ""
        elif self.event is not None:
            raise ValueError(f"stated={stated!r}: expected no stated result, {self.event} ended the game")
        winner = winner_of(final, stated)
        counted = final.winner() if final.is_over and final.winner() != winner else None
        scores = tuple(final.scores().tolist())
        return replace(self, scores=scores, winner=winner, stated=stated, counted=counted)

"""`GameRecord`: a saved game of any kind with its start, actions and result."""

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
    """A finished game with its actions and result; create one with `GameRecord.of`.

    A game from a file of another program may start from a set-up position, skip turns, or be unfinished.
    """

    variant: Variant
    actions: tuple[int, ...]
    """All actions that seats played. Passes that players must play are included, passes that the rules play are not."""
    scores: tuple[float, ...]
    """The scores of the last position by the rules."""
    winner: int
    """The winning seat, `DRAWN`, or `UNFINISHED` if no seat has won.

    An event or a stated result decides; without them, the final position of a game that is over.
    """
    drawn: tuple[int, ...] = ()
    """The random actions before the first turn: see `Game.drawn_actions`."""
    event: Event | None = None
    """The event that ended the game before the rules did."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Free text by key: the agents under the names of their seats, `seed`, `date` ..."""
    begin: Game | None = None
    """The position before the first action, if it differs from the variant's start position."""
    handed: tuple[int, ...] = ()
    """Indices of actions before which a turn was skipped, in a game of two seats."""
    stated: str = ""
    """The result that the players agreed on or that a file states, such as `B+2.5` or `Void`; empty if it equals the
    result by the rules."""
    counted: int | None = None
    """The winner of the final position by the rules, if the game is over and `winner` is another one; else None."""

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
        """Create the record of a finished game; the scores, and by default the winner, come from replaying the actions.

        Args:
            actions: the actions of all seats, in order.
            game: the game's spec; `options` override those of the spec.
            drawn: see `GameRecord`.
            event: see `GameRecord`.
            tags: see `GameRecord`.
            stated: see `GameRecord`.
            options: options of the game.

        Raises:
            ValueError: if an option or action is wrong, the game is not over after the last action, or both an event
                and a stated result are given.
        """
        played, chance = tuple(map(int, actions)), tuple(map(int, drawn))
        record = cls(load_variant(game, **options), played, (), 0, chance, event, dict(tags or {}), stated=stated)
        return record.with_result(record.final())

    @property
    def num_players(self) -> int:
        """The number of players."""
        return self.variant.num_players

    @property
    def seats(self) -> tuple[str, ...]:
        """The names of the seats."""
        return self.variant.definition.seats[: self.num_players]

    def start(self) -> Game:
        """Return the position before the first action; `ValueError` if no random start has the actions `drawn`."""
        if self.begin is not None:
            return self.begin.copy()
        game: Game = self.variant.game_class.start_from(self.variant, self.drawn)
        return game

    def replay(self) -> Iterator[Game]:
        """Yield the position before the first action and after each action, each as a separate `Game`.

        The event, if any, is applied to the last position.

        Raises:
            ValueError: if an action is illegal; the message names it and the legal actions.
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
        """Play action `number`, counted from 0, in `game`, the position before it."""
        if number in self.handed:
            game.hand_turn(1 - game.to_move)
        game.play(self.actions[number])

    def ended(self, game: Game) -> Game:
        """Apply the event, if there is one, to the position after the last action; `ValueError` if it is over."""
        if self.event is not None:
            game.forfeit(self.event.seat, self.event.kind)
        return game

    def with_result(self, final: Game, *, unfinished: bool = False) -> GameRecord:
        """Return the record with the stated result or, without one, the result of its last position.

        A stated result is reduced to one line, and removed if it is `?` or equals the result by the rules.

        Raises:
            ValueError: if `final` is not over and `unfinished` is False, or if there are both a stated result and an
                event.
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

"""`GameRecord`: a saved game, of any registered game, with its start, actions and result.

The text format is in `ninetka_env.api.records`; `ninetka_env.api.record_files` reads and writes files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ninetka_env.core.game import Event, Game
from ninetka_env.core.registry import DEFAULT_GAME, Variant, load_variant
from ninetka_env.core.stated_results import counted_result, stated_or_counted_winner
from ninetka_env.core.text import one_line


@dataclass(frozen=True)
class GameRecord:
    """A finished game with its actions and result; use `GameRecord.of` to create it.

    A game from a file of another program may start from a set-up position, skip turns, or be unfinished.
    """

    variant: Variant
    actions: tuple[int, ...]
    """The actions of all seats, in order. Passes that are actions are included; turns that the rules skip are not."""
    scores: tuple[float, ...]
    """The score of each seat in the last position, by the rules."""
    winner: int
    """The winning seat, `DRAWN`, or `UNFINISHED` if no seat has won.

    It follows from the event or the stated result; without them, from the final position if the game is over.
    """
    drawn: tuple[int, ...] = ()
    """The actions drawn at random before the first turn: see `Game.drawn_actions`."""
    event: Event | None = None
    """The event that ended the game before the rules did."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Free text by key: the agents under the names of their seats, `seed`, `date` ..."""
    start_position: Game | None = None
    """The position before the first action, if it differs from the variant's start position."""
    skipped_turns: tuple[int, ...] = ()
    """Indices of actions before which a turn was skipped, in a game of two seats."""
    stated: str = ""
    """The result that the players agreed on or that a file states, such as `B+2.5` or `Void`; empty if there is none or
    it equals the result by the rules."""
    counted: int | None = None
    """The winner by the rules, if the game is over and this winner differs from `winner`; else None."""

    @classmethod
    def of(
        cls,
        actions: Iterable[int],
        game: str | Variant = DEFAULT_GAME,
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
            game: the game's spec, or a variant; `options` override its options.
            drawn: see `GameRecord`.
            event: see `GameRecord`.
            tags: see `GameRecord`.
            stated: see `GameRecord`.
            options: options of the game.

        Raises:
            ValueError: if an option or action is wrong, the game is not over after the last action, or both an event
                and a stated result are given.
        """
        played, drawn_actions = tuple(map(int, actions)), tuple(map(int, drawn))
        record = cls(
            load_variant(game, **options), played, (), 0, drawn_actions, event, dict(tags or {}), stated=stated
        )
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
        if self.start_position is not None:
            return self.start_position.copy()
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
        yield self.apply_event(game)

    def final(self) -> Game:
        """Return the last position; raises as `replay` does."""
        game = self.start()
        for number in range(len(self.actions)):
            self.play(game, number)
        return self.apply_event(game)

    def play(self, game: Game, number: int) -> None:
        """Play action `number`, counted from 0, in `game`; if the turn before the action was skipped, skip it, too.

        `game` must be the position before the action.
        """
        if number in self.skipped_turns:
            game.hand_turn(1 - game.to_move)
        game.play(self.actions[number])

    def apply_event(self, game: Game) -> Game:
        """Apply the event, if any, to `game`, the last position, and return it; `ValueError` if it is over already."""
        if self.event is not None:
            game.forfeit(self.event.seat, self.event.kind)
        return game

    def with_result(self, final: Game, *, unfinished: bool = False) -> GameRecord:
        """Return the record with scores and winner of `final`, its last position; a stated result decides the winner.

        A stated result is reduced to one line, and removed if it is `?` or equals the result by the rules.

        Raises:
            ValueError: if `final` is not over and `unfinished` is False, or if the record has both a stated result and
                an event.
        """
        if not final.is_over and not unfinished:
            raise ValueError(f"the game is not over after {len(self.actions)} actions: {final!r}")
        stated = one_line(self.stated)
        by_rules = counted_result(final) if stated and final.definition().sgf else ""
        if stated in ("", "?", by_rules):
            stated = ""
        elif self.event is not None:
            raise ValueError(f"stated={stated!r}: expected no stated result, {self.event} ended the game")
        winner = stated_or_counted_winner(final, stated)
        counted = final.winner() if final.is_over and final.winner() != winner else None
        scores = tuple(final.scores().tolist())
        return replace(self, scores=scores, winner=winner, stated=stated, counted=counted)

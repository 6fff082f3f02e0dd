"""What the table must know of a game beyond its rules: an adapter says it, one a game, in `ninetka_web.games`.

The table itself plays by the rules and knows no game. An adapter gives it what the form of a new game offers (`Offer`),
what is drawn and what a click means (`Board`), what an analysis knows of this game only (`Study`), and how people agree
on the count of a finished game.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import re
from collections.abc import Iterable
from importlib.resources import files
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ninetka_agents.parts import agents_of
from ninetka_env.core.game import Game
from ninetka_env.core.outcome import DRAWN, UNFINISHED
from ninetka_env.core.registry import DEFAULT, Variant, get_definition, known_games, load_variant
from ninetka_web.games.board import Board
from ninetka_web.games.offer import NET, SOLVER, Json, Offer, Player
from ninetka_web.games.study import Study


class Adapter:
    """One game at the table. `Game` is the readable position of its own rules in all of them."""

    offer: ClassVar[Offer]
    board: ClassVar[Board]
    study: ClassVar[Study]
    rehearsal: ClassVar[tuple[Json, str]] = ({}, "")
    """Options and first moves with which the rules are tried, so that all they can do is compiled."""
    settles: ClassVar[bool] = False
    """Whether people must agree on something when the rules have ended a game: see `settle`."""

    @property
    def name(self) -> str:
        """The game's name in the register."""
        return self.offer.name

    def options_of(self, game: Game) -> Json:
        """Return all options of the game that a position belongs to."""
        raise NotImplementedError

    def kind(self, options: Json) -> str:
        """Return the spec of a variant whose compiled code serves these options too: one for each record type."""
        return self.name

    def kind_in(self, text: str) -> str:
        """Return the same for the game that a text tells of: a record, an SGF file or a position."""
        return self.name

    def stage(self, game: Game) -> str:
        """Return the stage of a position, empty in games whose stages do not follow one another."""
        return self.offer.definition.stages[game.stage] if self.offer.stages else ""

    def rehearse(self, game: Game) -> None:
        """Do with a game under way what tables may do and a game played to its end does not show."""
        game.describe_illegal(int(game.legal_actions()[0]))

    def told(self) -> Json:
        """Return what the first page must know."""
        offer, definition = self.offer, self.offer.definition
        return {
            "name": self.name,
            "title": definition.title,
            "slogan": offer.slogan,
            "steps": offer.steps,
            "rules": offer.rules,
            "form": [row.told() for row in offer.form],
            "defaults": {name: definition.option(name).default for row in offer.form for name in row.names},
            "seats": offer.seats,
            "colours": [seat.lower() for seat in definition.seats],
            "agents": [player.told() for player in self.agents()],
            "opponent": offer.opponent,
            "engines": self.engines(),
            "stages": offer.stages,
            "sgf": definition.sgf is not None,
        }

    def agents(self) -> tuple[Player, ...]:
        """Return the agents that can play here: a network where the game has a shipped one, and there is torch."""
        known = {player.name for player in self.offer.players}
        can = has_torch() and has_network(self.name)
        found = tuple(player for player in self.offer.players if player.name != "net" or can)
        return (*found, NET) if can and "net" not in known and "net" in agents_of(self.name) else found

    def engines(self) -> list[str]:
        """Return who analyses."""
        return [player.name for player in self.agents() if player.name in ("mcts", "net", SOLVER)]

    def may_settle(self, game: Game) -> bool:
        """Return whether people have something to agree on before a finished game is counted."""
        return False

    def settle(self, game: Game) -> Json:
        """Propose how a finished game is counted; not quick.

        Returns:
            `scores`, `winner`, `result` as records write it, `say` in words, and what the drawing file shows.
        """
        raise NotImplementedError


def has_torch() -> bool:
    """Return whether networks can think here."""
    return importlib.util.find_spec("torch") is not None


def has_network(game: str) -> bool:
    """Return whether a network of the game is shipped; asked of its files, since who reads them needs torch."""
    folder = files("ninetka_agents").joinpath("checkpoints", game)
    return folder.is_dir() and any(path.name.endswith(".safetensors") for path in folder.iterdir())


@functools.cache
def adapter_of(game: str) -> Adapter:
    """Return a game's adapter; `ValueError` names the games that tables have."""
    names = games_at_tables()
    if game not in names:
        raise ValueError(f"no game {game[:40]!r} at tables: expected one of {', '.join(names)}")
    adapter: Adapter = importlib.import_module(f"ninetka_web.games.{game}").ADAPTER
    return adapter


@functools.cache
def games_at_tables() -> tuple[str, ...]:
    """Return the games that have an adapter, the usual one first."""
    known = [name for name in known_games() if importlib.util.find_spec(f"ninetka_web.games.{name}")]
    return tuple(sorted(known, key=lambda name: (name != DEFAULT, name)))


def adapter_in(text: str) -> Adapter:
    """Return the adapter of the game that a text is of: a record, an SGF file or a position.

    Raises:
        ValueError: if it is of no game that tables have.
    """
    text = text.lstrip("\ufeff \t\r\n")
    if text.startswith("("):
        if not re.match(r"\(\s*;", text):
            raise ValueError("no SGF: expected it to begin with '(;'")
        number = re.search(r"GM\s*\[\s*([0-9]+)", text)
        told = number[1] if number else "1"
        games = {str(one.sgf[0]): name for name in games_at_tables() if (one := get_definition(name)).sgf is not None}
        if told not in games:
            raise ValueError(f"GM[{told[:9]}]: no game of tables")
        return adapter_of(games[told])
    match = re.match(r"game record, format 2\s+game: ([a-z0-9_]+)", text)
    if match:
        return adapter_of(match[1])
    titles = {name: get_definition(name).title.lower() for name in games_at_tables()}
    return adapter_of(next((name for name in titles if text[:40].lower().startswith(titles[name])), DEFAULT))


def kind_of(variant: Variant) -> str:
    """Return the kind of a variant; see `Adapter.kind`."""
    return adapter_of(variant.definition.name).kind(dict(variant.options))


def usual_kinds() -> Iterable[str]:
    """Return the kinds that the games of the form have by default."""
    return [kind_of(load_variant(name)) for name in games_at_tables()]


def told_winner(winner: int) -> int | None:
    """Return a winner as browsers are told: the seat, `DRAWN`, or None for `UNFINISHED`."""
    return None if winner == UNFINISHED else winner


def final_shares(game: Game) -> npt.NDArray[np.float64]:
    """Return who has won a finished game as chances; a draw is shared."""
    n, winner = game.num_players, game.winner()
    return np.full(n, 1 / n) if winner == DRAWN else np.eye(n)[winner]

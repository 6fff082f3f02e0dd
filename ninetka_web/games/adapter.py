"""Base class of the adapters that connect a game to the web app, and functions that find the adapter of a game.

The rest of the web app uses only the rules of a game and its adapter, `ninetka_web/games/NAME.py`. An adapter has an
`Offer` (the form for a new game, and its agents), a `Board` (cells to draw, texts, the meaning of a click) and a
`Study` (game-specific analysis), and it proposes the score of a finished game if people must agree on it.
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

from ninetka_agents.plugins import agents_of
from ninetka_env.core.game import Game
from ninetka_env.core.outcome import DRAWN, UNFINISHED
from ninetka_env.core.registry import DEFAULT_GAME, PACKAGE_GAMES, Variant, get_definition, load_variant
from ninetka_web.games.board import Board
from ninetka_web.games.offer import NET, SOLVER, Json, Offer, OfferedAgent
from ninetka_web.games.study import Study


class Adapter:
    """Connects one game to the web app. The argument `game` of its methods is a position of that game."""

    offer: ClassVar[Offer]
    board: ClassVar[Board]
    study: ClassVar[Study]
    dry_run_setup: ClassVar[tuple[Json, str]] = ({}, "")
    """Options and first moves of the dry run (see `thinking/warm.py`), which must call all code of the rules.

    The moves are names of actions, separated by spaces.
    """
    settles: ClassVar[bool] = False
    """Whether people must agree on the score when the rules have ended a game: see `propose_score`."""

    @property
    def name(self) -> str:
        """The game's name in the registry."""
        return self.offer.name

    def options_of(self, game: Game) -> Json:
        """Return all options of a position's game."""
        raise NotImplementedError

    def compile_key(self, options: Json) -> str:
        """Return the key of the compiled code for `options`.

        Variants with the same state dtype share compiled code. The key is the spec of one of these variants.
        """
        return self.name

    def compile_key_of_text(self, text: str) -> str:
        """Return the key of the compiled code for the game in a text: a game record, an SGF file or a position."""
        return self.name

    def stage(self, game: Game) -> str:
        """Return the name of a position's stage; empty for games without successive stages."""
        return self.offer.definition.stages[game.stage] if self.offer.stages else ""

    def dry_run(self, game: Game) -> None:
        """Call functions of the rules that a table may need, but that are not called when a game is played to its end.

        `game` is a position after the first moves of `dry_run_setup`.
        """
        game.describe_illegal(int(game.legal_actions()[0]))

    def as_json(self) -> Json:
        """Return the description of the game for the start page."""
        offer, definition = self.offer, self.offer.definition
        return {
            "name": self.name,
            "title": definition.title,
            "slogan": offer.slogan,
            "steps": offer.steps,
            "rules": offer.rules,
            "form": [row.as_json() for row in offer.form],
            "defaults": {name: definition.option(name).default for row in offer.form for name in row.option_names},
            "seats": offer.seats,
            "colours": [seat.lower() for seat in definition.seats],
            "agents": [agent.as_json() for agent in self.agents()],
            "opponent": offer.opponent,
            "engines": self.engines(),
            "stages": offer.stages,
            "sgf": definition.sgf is not None,
        }

    def agents(self) -> tuple[OfferedAgent, ...]:
        """Return the agents that this server can run; `net` needs torch and a shipped network of the game."""
        offered = {agent.name for agent in self.offer.agents}
        can_run_net = has_torch() and has_network(self.name)
        available = tuple(agent for agent in self.offer.agents if agent.name != "net" or can_run_net)
        return (
            (*available, NET) if can_run_net and "net" not in offered and "net" in agents_of(self.name) else available
        )

    def engines(self) -> list[str]:
        """Return the names of the engines that can analyse this game."""
        return [agent.name for agent in self.agents() if agent.name in ("mcts", "net", SOLVER)]

    def may_settle(self, game: Game) -> bool:
        """Return whether people must agree on the score of `game`, a finished game."""
        return False

    def propose_score(self, game: Game) -> Json:
        """Propose a score for a finished game. This is slow, so it runs on a thread.

        Returns:
            A dict with `scores`, `winner`, `result` (as game records write it), `text` (the proposal as a sentence) and
            game-specific entries for the renderer in the browser.
        """
        raise NotImplementedError


def has_torch() -> bool:
    """Return whether torch is installed, which networks need."""
    return importlib.util.find_spec("torch") is not None


def has_network(game: str) -> bool:
    """Return whether a network of the game is shipped. Looks for the file only, because reading it needs torch."""
    folder = files("ninetka_agents").joinpath("checkpoints", game)
    return folder.is_dir() and any(path.name.endswith(".safetensors") for path in folder.iterdir())


@functools.cache
def adapter_of(game: str) -> Adapter:
    """Return a game's adapter.

    Raises:
        ValueError: if the web app does not have the game; the message names the games that it has.
    """
    names = web_games()
    if game not in names:
        raise ValueError(f"unknown game {game[:40]!r}: expected one of {', '.join(names)}")
    adapter: Adapter = importlib.import_module(f"ninetka_web.games.{game}").ADAPTER
    return adapter


@functools.cache
def web_games() -> tuple[str, ...]:
    """Return the names of the games that have an adapter, the default game first."""
    known = [name for name in PACKAGE_GAMES if importlib.util.find_spec(f"ninetka_web.games.{name}")]
    return tuple(sorted(known, key=lambda name: (name != DEFAULT_GAME, name)))


def adapter_for_text(text: str) -> Adapter:
    """Return the adapter of the game in a text: a game record, an SGF file or a position.

    A text that names no game gets the adapter of the default game.

    Raises:
        ValueError: if the text names a game that the web app does not have.
    """
    text = text.lstrip("\ufeff \t\r\n")
    if text.startswith("("):
        if not re.match(r"\(\s*;", text):
            raise ValueError("not an SGF file: expected it to begin with '(;'")
        number = re.search(r"GM\s*\[\s*([0-9]+)", text)
        number_text = number[1] if number else "1"
        games = {
            str(definition.sgf[0]): name for name in web_games() if (definition := get_definition(name)).sgf is not None
        }
        if number_text not in games:
            raise ValueError(f"GM[{number_text[:9]}]: no game of the web app has this number")
        return adapter_of(games[number_text])
    match = re.match(r"game record, format 2\s+game: ([a-z0-9_]+)", text)
    if match:
        return adapter_of(match[1])
    titles = {name: get_definition(name).title.lower() for name in web_games()}
    return adapter_of(next((name for name in titles if text[:40].lower().startswith(titles[name])), DEFAULT_GAME))


def compile_key_of(variant: Variant) -> str:
    """Return the key of a variant's compiled code; see `Adapter.compile_key`."""
    return adapter_of(variant.definition.name).compile_key(dict(variant.options))


def default_compile_keys() -> Iterable[str]:
    """Return the keys of the compiled code of all games with default options; see `Adapter.compile_key`."""
    return [compile_key_of(load_variant(name)) for name in web_games()]


def winner_json(winner: int) -> int | None:
    """Return a winner for JSON: the seat, `DRAWN`, or None for `UNFINISHED`."""
    return None if winner == UNFINISHED else winner


def final_shares(game: Game) -> npt.NDArray[np.float64]:
    """Return the (n,) win probabilities of a finished game: 1 for the winner, or 1 / n for all after a draw."""
    n, winner = game.num_players, game.winner()
    return np.full(n, 1 / n) if winner == DRAWN else np.eye(n)[winner]

"""What the table must know of a game beyond its rules: an adapter says it, one a game, in `ninetka_web.games`.

The table itself plays by the rules and knows no game. An adapter gives it words (how to play, what a move was, what is
to be done), the form of a new game, the agents that browsers may ask for, what is drawn, and what a click means.

What is drawn is a list of *cells*, small ints whose meaning only the adapter and the game's drawing file in the browser
share: those of the start, and with each move those that it changed. So browsers step through a game without asking.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_agents.parts import agents_of
from ninetka_env.core.game import Game
from ninetka_env.core.outcome import DRAWN, UNFINISHED
from ninetka_env.core.registry import DEFAULT, Definition, Variant, get_definition, known_games, load_variant

Json = dict[str, Any]
Stopped = Callable[[], bool]
"""Tells those who think for long whether nobody waits for them any more."""
AGENT = re.compile(r"([a-z]+)(?::([a-z]+)=([1-9][0-9]{0,5}))?")
"""An agent as browsers say it: its name, and one number."""


@dataclass(frozen=True)
class Player:
    """An agent that may sit down: browsers choose its name and one number, and nothing else."""

    name: str
    title: str
    strengths: tuple[tuple[int, str], ...] = ((0, ""),)
    """The numbers that the form offers, 0 for none, each with its words."""
    option: str = ""
    """What the number sets; empty for agents without one."""
    most: int = 0
    """The largest number, about two seconds a move."""
    usual: int = 0
    fixed: str = ""
    """Further options of its spec, the same for everybody."""
    seats: tuple[int, ...] = ()
    """At how many it plays; empty for any."""

    def told(self) -> Json:
        """Return what browsers are told."""
        return {"name": self.name, "title": self.title, "strengths": self.strengths, "option": self.option,
                "usual": self.usual, "seats": self.seats}  # fmt: skip


RANDOM = Player("random", "Random", ((0, "any legal move"),))
NET = Player(
    "net",
    "Neural network",
    ((0, "at first sight"), (64, "with 64 simulations"), (200, "with 200 simulations: hard"),
     (400, "with 400 simulations: hardest")),
    "simulations",
    400,
)  # fmt: skip


@dataclass(frozen=True)
class Choices:
    """A row of the form in which one of a few values is chosen; each sets one option or several."""

    title: str
    values: tuple[tuple[Json, str], ...]
    hidden: bool = False
    """Whether it stands under "More"."""

    def allows(self, name: str, value: Any) -> bool:
        """Tell whether an option may have a value, as far as this row knows it."""
        return any(sets.get(name) == value for sets, _ in self.values)

    @property
    def names(self) -> set[str]:
        """The options that it sets."""
        return {name for sets, _ in self.values for name in sets}

    def told(self) -> Json:
        """Return what browsers are told."""
        return {"title": self.title, "hidden": self.hidden, "values": self.values}


@dataclass(frozen=True)
class Number:
    """A row of the form with a number."""

    title: str
    name: str
    least: float
    most: float
    step: float = 1
    hidden: bool = True

    def allows(self, name: str, value: Any) -> bool:
        """Tell whether the option may have a value."""
        return type(value) in (int, float) and self.least <= value <= self.most

    @property
    def names(self) -> set[str]:
        """The option that it sets."""
        return {self.name}

    def told(self) -> Json:
        """Return what browsers are told."""
        return {"title": self.title, "hidden": self.hidden, "name": self.name, "least": self.least, "most": self.most,
                "step": self.step}  # fmt: skip


SOLVER = "solver"
"""The engine, and the agent, that knows perfect play."""


def never() -> bool:
    """Let those who think go on to the end."""
    return False


class Exact(NamedTuple):
    """What is known of a position under perfect play: winning seats, `DRAWN`, and `UNFINISHED` for what is not."""

    winner: int
    after: Mapping[int, int]
    """By legal action, who wins after it; empty if that was not asked for."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left to find out."""
        return UNFINISHED not in (self.winner, *self.after.values())


class Adapter:
    """One game at the table. `Game` is the readable position of its own rules in all of them."""

    name: ClassVar[str]
    """The game's name in the register."""
    slogan: ClassVar[str]
    steps: ClassVar[tuple[tuple[str, str], ...]]
    """What the first page tells: three times what is done, and more of it."""
    rules: ClassVar[tuple[tuple[str, str], ...]]
    """How to play, in paragraphs: what it is about, and what is to be known of it."""
    form: ClassVar[tuple[Choices | Number, ...]] = ()
    """The options that people choose; all others are as usual."""
    seats: ClassVar[tuple[int, ...]] = (2,)
    """How many may play."""
    players: ClassVar[tuple[Player, ...]]
    """The agents that may sit down, where the server has what they need."""
    opponent: ClassVar[str]
    """Who sits in the other seats of the form at first."""
    stand_in: ClassVar[str] = ""
    """The agent that plays on for one of several people who has given up; only for more than two seats."""
    stages: ClassVar[Mapping[str, str]] = {}
    """Headings in the list of moves, by stage; none where the stages do not follow one another."""
    rehearsal: ClassVar[tuple[Json, str]] = ({}, "")
    """Options and first moves with which the rules are tried, so that all they can do is compiled."""
    settles: ClassVar[bool] = False
    """Whether people must agree on something when the rules have ended a game: see `settle`."""
    score_word: ClassVar[str] = "points"
    budgets: ClassVar[Mapping[str, tuple[int, ...]]]
    """Simulations of the steps in which an analysis grows, by engine."""
    share_simulations: ClassVar[int] = 1_000
    """Of the tree search for one point of the band over the game."""
    solves: ClassVar[bool] = False
    """Whether perfect play is known somewhere: see `solvable`."""

    # The game and its options

    @property
    def definition(self) -> Definition:
        """The game in the register."""
        return get_definition(self.name)

    def variant(self, options: Json, seats: int) -> Variant:
        """Return the game with the options that somebody chose in the form; `ValueError` names what is wrong."""
        for name, value in options.items():
            rows = [row for row in self.form if name in row.names]
            if not rows:
                known = ", ".join(sorted({name for row in self.form for name in row.names}))
                raise ValueError(f"unknown option {name!r}: expected one of {known}")
            if not any(row.allows(name, value) for row in rows):
                raise ValueError(f"{name}={value!r}: not offered at tables")
        if seats not in self.seats:
            raise ValueError(f"{seats} seats: {self.definition.title} is for {' or '.join(map(str, self.seats))}")
        return self.definition.variant(**options)

    def options_of(self, game: Game) -> Json:
        """Return the options of a position, as far as it tells them."""
        return {one.name: getattr(game, one.name, one.default) for one in self.definition.options}

    def kind(self, options: Json) -> str:
        """Return the spec of a variant whose compiled code serves these options too: one for each record type."""
        return self.name

    def kind_in(self, text: str) -> str:
        """Return the same for the game that a text tells of: a record, an SGF file or a position."""
        return self.name

    def told(self) -> Json:
        """Return what the first page must know."""
        return {
            "name": self.name,
            "title": self.definition.title,
            "slogan": self.slogan,
            "steps": self.steps,
            "rules": self.rules,
            "form": [row.told() for row in self.form],
            "defaults": {name: self.definition.option(name).default for row in self.form for name in row.names},
            "seats": self.seats,
            "colours": [seat.lower() for seat in self.definition.seats],
            "agents": [player.told() for player in self.agents()],
            "opponent": self.opponent,
            "engines": self.engines(),
            "stages": self.stages,
            "sgf": self.definition.sgf is not None,
        }

    def config(self, game: Game) -> Json:
        """Return what the drawing file must know of a table before the first position."""
        return {}

    def rehearse(self, game: Game) -> None:
        """Do with a game under way what tables may do and a game played to its end does not show."""
        game.describe_illegal(int(game.legal_actions()[0]))

    # Agents

    def agents(self) -> tuple[Player, ...]:
        """Return the agents that can play here: a network where the game has a shipped one, and there is torch."""
        known = {player.name for player in self.players}
        can = has_torch() and has_network(self.name)
        found = tuple(player for player in self.players if player.name != "net" or can)
        return (*found, NET) if can and "net" not in known and "net" in agents_of(self.name) else found

    def engines(self) -> list[str]:
        """Return who analyses."""
        return [player.name for player in self.agents() if player.name in ("mcts", "net", SOLVER)]

    def player(self, spec: str, seats: int = 0) -> tuple[Player, str]:
        """Return the agent that a browser asks for, and its number as text; `seats` of the table, 0 if not known.

        Raises:
            ValueError: for all but those of `players`, naming what is allowed. Whatever way a spec has come, it starts
                no program and opens no file.
        """
        match = AGENT.fullmatch(spec)
        named = {one.name: one for one in (*self.players, NET)}
        if not match or match[1] not in named:
            raise ValueError(
                f"no agent {spec[:40]!r}: expected one of {', '.join(named)}, such as mcts:simulations=500"
            )
        player = named[match[1]]
        if match[2] and (match[2] != player.option or int(match[3]) > player.most):
            allowed = f"{player.name}:{player.option}=1..{player.most}" if player.option else f"{player.name} alone"
            raise ValueError(f"{spec!r}: expected {allowed}")
        if seats and player.seats and seats not in player.seats:
            raise ValueError(f"{player.title} plays at {' or '.join(map(str, player.seats))} seats, not at {seats}")
        return player, match[3] or ""

    def spec(self, text: str) -> str:
        """Return the whole spec of the agent that a browser asks for, on one thread; raises as `player` does."""
        player, number = self.player(text)
        if not player.option:
            return player.name
        number = number or (str(player.usual) if player.fixed else "")
        told = f"{player.option}={number}" if number else ""
        return f"{player.name}:{','.join(filter(None, (told, player.fixed, 'threads=1')))}"

    def stage(self, game: Game) -> str:
        """Return the stage of a position, empty in games whose stages do not follow one another."""
        return self.definition.stages[game.stage] if self.stages else ""

    # What is drawn

    def cells(self, game: Game) -> npt.NDArray[np.integer[Any]]:
        """Return what there is to draw, (K,) small ints."""
        raise NotImplementedError

    def scores(self, game: Game) -> list[float]:
        """Return the number that stands beside each seat."""
        scores: list[float] = game.scores().tolist()
        return scores

    def notes(self, game: Game) -> list[str]:
        """Return what is said of each seat in this position."""
        return [""] * game.num_players

    def cell_of(self, game: Game, action: int) -> int | None:
        """Return the cell on which a legal action is shown; None for one without a place, such as a pass."""
        return action

    def landing(self, game: Game, action: int) -> int | None:
        """Return the cell where what is moved comes to rest, if it is another one."""
        return None

    def move_name(self, game: Game, action: int) -> str:
        """Name an action that is about to be played."""
        return game.action_name(action)

    def says(self, game: Game, action: int, after: Game) -> str:
        """Say what a move did, without who."""
        raise NotImplementedError

    # What can be done

    def hits(self, game: Game) -> list[Any]:
        """Return what can be clicked: cells that are actions too, or [cell, action], or [cell, action, landing]."""
        return [action for action in game.legal_actions().tolist() if self.cell_of(game, action) is not None]

    def buttons(self, game: Game) -> list[Json]:
        """Return the legal actions that have no place on the board: what is written on them, and their key."""
        return []

    def previews(self, game: Game) -> Mapping[int, list[int]]:
        """Return what actions would do beyond what is plain to see: by cell, the cells that change."""
        return {}

    def ghost(self, game: Game) -> int:
        """Return the cell code of what the seat to move puts down."""
        return game.to_move + 1

    def verb(self, game: Game) -> str:
        """Say what a click does."""
        raise NotImplementedError

    def prompt(self, game: Game) -> tuple[str, str]:
        """Say what is to be done: to whom it is the turn of, and to the others."""
        raise NotImplementedError

    def why_not(self, game: Game, action: int) -> str:
        """Say, to people, why an action is illegal."""
        return game.describe_illegal(action).partition(": ")[2] or "this cannot be played"

    def outcome(self, game: Game) -> str:
        """Say more of how a game ended by its rules than who has won."""
        seats = self.definition.seats
        return ", ".join(f"{seats[n].capitalize()} {score:g}" for n, score in enumerate(game.scores().tolist())) + "."

    def may_settle(self, game: Game) -> bool:
        """Tell whether people have something to agree on before a finished game is counted."""
        return False

    def settle(self, game: Game) -> Json:
        """Propose how a finished game is counted; not quick.

        Returns:
            `scores`, `winner`, `result` as records write it, `say` in words, and what the drawing file shows.
        """
        raise NotImplementedError

    # Analysis; not quick

    def insight(self, game: Game) -> Json:
        """Return what else is known of a position, for its panel and the drawing file."""
        return {}

    def solvable(self, game: Game) -> bool:
        """Tell whether perfect play may be known in moments."""
        return False

    def solve(self, game: Game, seconds: float, stopped: Stopped = never, *, moves: bool = True) -> Exact:
        """Return what is found out in so many seconds about a position that is `solvable`, and about its moves."""
        raise NotImplementedError

    def told_action(self, game: Game, action: int) -> Json:
        """Return a move that may be played as browsers are told: its name, the cell that is touched, where it ends."""
        return {"action": action, "name": self.move_name(game, action), "cell": self.cell_of(game, action),
                "to": self.landing(game, action)}  # fmt: skip

    def told_line(self, game: Game, actions: Iterable[int]) -> list[Json]:
        """Return a line of play from a position as browsers are told, as far as it is legal."""
        game, told = game.copy(), []
        for action in actions:
            if game.is_over or not game.legal_mask()[action]:
                break
            told.append({"seat": game.to_move, **self.told_action(game, action)})
            game.play(action)
        return told


def has_torch() -> bool:
    """Tell whether networks can think here."""
    return importlib.util.find_spec("torch") is not None


def has_network(game: str) -> bool:
    """Tell whether a network of the game is shipped; asked of its files, since who reads them needs torch."""
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
    """Return the kinds that the games of the form have unless told otherwise."""
    return [kind_of(load_variant(name)) for name in games_at_tables()]


def told_winner(winner: int) -> int | None:
    """Return a winner as browsers are told: the seat, `DRAWN`, or None for `UNFINISHED`."""
    return None if winner == UNFINISHED else winner


def final_shares(game: Game) -> npt.NDArray[np.float64]:
    """Return who has won a finished game as chances; a draw is shared."""
    n, winner = game.num_players, game.winner()
    return np.full(n, 1 / n) if winner == DRAWN else np.eye(n)[winner]

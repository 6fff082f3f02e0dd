"""The base class of agents, the function `make_agent`, which makes an agent from a spec, and the random agent.

Start reading at `Agent`. The agents for every game are in `ninetka_agents.search.mcts` and `net_agent.py`; those of
single games are listed in `plugins.py`.
"""

from __future__ import annotations

import copy
import inspect
import sys
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ninetka_agents.plugins import GENERIC_AGENTS, agents_of, games_with_agent, import_object, plugins_of
from ninetka_agents.specs import parse_options
from ninetka_env.core import imports
from ninetka_env.core.batch import as_states, first_unplayable
from ninetka_env.core.game import Game
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_count, short_repr
from ninetka_env.core.random_streams import Streams, draw_each, draw_many
from ninetka_env.core.registry import DEFAULT_GAME, Variant, definition_of, load_variant
from ninetka_env.core.text import did_you_mean
from ninetka_env.core.threads import default_num_threads
from ninetka_env.core.verbs import StateArray, random_action

Actions = npt.NDArray[np.int64]
MAX_SPEC_LENGTH = 2000
"""Maximum length of an agent's spec, in characters."""


class Agent(ABC):
    """Base class of agents, which choose actions for the seat to move.

    An agent has no state per game, so one agent may play many games and seats at once. Where an agent is expected,
    other objects with a name and a method `act` are accepted as well; see `as_agent`.
    """

    name: str
    """The name shown in reports, usually the spec that the agent was made from."""
    game: str = ""
    """The name of the only game that the agent plays, see `check_agent_game`; empty if it plays any."""
    repeats_openings: bool = False
    """Whether the agent plays nearly the same opening in every game, as networks do. Matches between such agents start
    with random plies; see `ninetka_train.judging.schedule`."""
    has_seat_agents: bool = False
    """Whether `start` returns a `SeatAgent`, which has state for its game."""
    files: tuple[Path, ...] = ()
    """Files that determine the moves: weights of networks, and the module of an agent of another package."""

    @property
    def searcher(self) -> Agent:
        """The agent that chooses the actions: this agent, or the search of a network agent."""
        return self

    @abstractmethod
    def act(self, games: StateArray, rng: np.random.Generator) -> Actions:
        """Choose an action for the seat to move in each game.

        Args:
            games: (N,) unfinished states; not changed.
            rng: the only source of random numbers; the same generator state gives the same actions on any number of
                threads.

        Returns:
            (N,) int64 legal actions.

        Raises:
            ValueError: if a game is finished; see `as_unfinished_states`.
        """

    def caveat(self, variant: Variant) -> str:
        """Return what users should know about how the agent plays a variant, in one sentence; empty if nothing."""
        return ""

    def start(self, game: Game) -> SeatAgent | None:
        """Start to play a whole game.

        Args:
            game: the position at the start; not changed.

        Returns:
            A `SeatAgent` whose `act` is called in this game instead of `Agent.act`; None if the agent has no state per
            game.
        """
        return None


class RandomAgent(Agent):
    """Plays uniformly random legal actions in any game."""

    name = "random"

    def act(self, games: StateArray, rng: np.random.Generator) -> Actions:
        """Choose actions; see `Agent.act`."""
        games = as_unfinished_states(games)
        actions = np.empty(len(games), np.int64)
        _act_at_random(games, game_streams(games, rng), actions)
        return actions


@jit(refcount=False)
def _act_at_random(games: StateArray, streams: Streams, actions: Actions) -> None:
    for index in range(len(games)):
        actions[index] = random_action(games[index], streams, index)


class AgentLike(Protocol):
    """Protocol of objects that are accepted as agents: they have the name and the method `act` of an `Agent`."""

    name: str

    def act(self, games: StateArray, rng: np.random.Generator) -> Actions:
        """Choose an action for the seat to move in each game; see `Agent.act`."""
        ...


class Forfeit(Exception):  # noqa: N818  # resigning is not an error
    """Raised by a `SeatAgent` to end its game early and lose it."""

    def __init__(self, kind: str, failure: str = "") -> None:
        """Create the exception.

        Args:
            kind: one of `ninetka_env.core.game.EVENTS`.
            failure: what went wrong; empty if nothing did.
        """
        super().__init__(failure)
        self.kind = kind


class SeatAgent(Protocol):
    """An agent that plays one game and has state for it, such as a search tree or an engine process.

    `Agent.start` returns a seat agent. Code that plays whole games, such as the arena, then calls its `act` instead of
    `Agent.act`.

    To resign, or if it cannot continue, a seat agent raises `Forfeit` from `act` or `observe`; `Agent.start` may raise
    `Forfeit`, too.
    """

    def act(self, rng: np.random.Generator) -> int:
        """Return a legal action for the seat to move."""
        ...

    def observe(self, action: int) -> None:
        """Update the state of this object after an action of any seat, including its own."""
        ...

    def close(self) -> None:
        """Release the resources of this game."""
        ...


@runtime_checkable
class _SupportsStart(Protocol):
    def start(self, game: Game) -> SeatAgent: ...


@runtime_checkable
class _SupportsRepeatsOpenings(Protocol):
    repeats_openings: bool


@runtime_checkable
class _SupportsGame(Protocol):
    game: str


class _WrappedAgent(Agent):
    """Adapts an `AgentLike` object to `Agent`, with its `game`, `repeats_openings`, `files` and `start`, if any."""

    def __init__(self, agent: AgentLike) -> None:
        self._agent = agent
        self.game = agent.game if isinstance(agent, _SupportsGame) else ""
        self.repeats_openings = isinstance(agent, _SupportsRepeatsOpenings) and bool(agent.repeats_openings)
        self.has_seat_agents = isinstance(agent, _SupportsStart)
        self.files = tuple(getattr(agent, "files", ()))

    @property
    def name(self) -> str:
        return self._agent.name

    @name.setter
    def name(self, name: str) -> None:
        self._agent.name = name

    def act(self, games: StateArray, rng: np.random.Generator) -> Actions:
        return self._agent.act(games, rng)

    def start(self, game: Game) -> SeatAgent | None:
        return self._agent.start(game) if isinstance(self._agent, _SupportsStart) else None


def as_agent(agent: AgentLike | str, game: str = DEFAULT_GAME) -> Agent:
    """Convert a spec or an `AgentLike` object to an `Agent`; an `Agent` is returned unchanged.

    Args:
        agent: an `Agent`, an object with a name and a method `act`, or a spec for `make_agent`.
        game: the game that the agent plays, if `agent` is a spec.

    Raises:
        ValueError: if a spec is wrong, or the object is no agent.
    """
    if isinstance(agent, str):
        return make_agent(agent, game)
    check_agent(agent)
    return _wrapped(agent)


def _wrapped(agent: AgentLike) -> Agent:
    return agent if isinstance(agent, Agent) else _WrappedAgent(agent)


def check_agent(agent: object, what: str = "agent", *, needs_name: bool = True) -> None:
    """Raise `ValueError` if an object is no agent.

    Args:
        agent: any object that is not a spec.
        what: the first word of the message: the parameter that was given.
        needs_name: whether the agent must have a name. One that is only an opponent needs none.
    """
    if isinstance(agent, type):
        missing = f"create an instance, {agent.__name__}(...)"
    elif not callable(getattr(agent, "act", None)):
        missing = "it has no method act"
    elif needs_name and not isinstance(getattr(agent, "name", None), str):
        missing = "it has no text as its name"
    else:
        return
    raise ValueError(
        f"{what}: {short_repr(agent)} is neither an agent's spec nor an agent, "
        f"an object with a name and a method act(games, rng): {missing}"
    )


def make_agent(spec: str, game: str = DEFAULT_GAME) -> Agent:
    """Make an agent from a spec, a name with options: `"maxn"`, `"maxn:depth=3"` or `"mcts:simulations=2000"`.

    Options are `key=value`, separated by commas; they are the keyword arguments of the agent's constructor. A value
    without a key is the constructor's first argument, such as the path of a network. The name of a boolean option
    alone makes it true, as in `"mcts:simulations=1000,rave"`. A spec within a spec needs brackets if it has commas:
    `"phases:placement=[net:runs/quick,simulations=64],movement=maxn"`.

    Installed packages offer further names as entry points of the group `ninetka.agents`. A spec
    `"python:MODULE:NAME,key=value"` imports a module and makes the agent from NAME in it: a class or a function, whose
    keyword arguments are the options, or an agent. If it has a parameter `game`, it gets the name of the game. Such a
    spec runs code, so do not take it from a file or another user.

    Args:
        spec: the agent's name; options follow after a colon.
        game: the name or spec of the game that the agent plays.

    Raises:
        ValueError: if the spec is wrong; the message names the agents of the game, or the options of the agent.
    """
    if not isinstance(spec, str) or len(spec) > MAX_SPEC_LENGTH:
        raise ValueError(
            f"agent {short_repr(spec)}: expected text of at most {MAX_SPEC_LENGTH} characters, such as 'random'"
        )
    game_name, (name, _, text) = load_variant(game).definition.name, spec.partition(":")
    if own := imports.split_spec(spec):
        return _make_imported_agent(spec, *own, game_name)
    known = agents_of(game_name)
    if name not in known:
        offered = imports.entry_points(imports.AGENTS)
        if name in offered and not games_with_agent(name):
            return _make_imported_agent(spec, offered[name], text, game_name)
        raise ValueError(_unknown_agent_message(name, game_name, [*known, *offered]))
    try:
        constructor = import_object(known[name])
    except ImportError as error:
        raise ValueError(f"agent {name!r} needs {error.name}: {imports.install_command('train')}") from error
    options = parse_options(spec, text, constructor, game_name)
    if options.get("exact") and not plugins_of(game_name).prover:
        raise ValueError(f"agent {short_repr(spec)}: option exact: nothing can be proven in {game_name}")
    agent = _wrapped(constructor(**options))
    agent.name = spec
    if name not in GENERIC_AGENTS:
        agent.game = game_name
    return agent


def _make_imported_agent(spec: str, place: str, text: str, game: str) -> Agent:
    """Make an agent of another package from the class, function or agent at `"MODULE:NAME"`.

    Raises:
        ValueError: if it cannot be imported, an option is wrong, a constructor raises an exception, what is made is no
            agent, or it plays another game.
    """
    asked = f"agent {short_repr(spec)}"
    found = imports.import_place(place, asked)
    if isinstance(found, type) or inspect.isroutine(found):
        options = parse_options(spec, text, found, game)
        try:
            made = found(**options)
        except (Exception, SystemExit) as error:
            raise ValueError(f"{asked}: {place} fails: {imports.describe_error(error)}") from error
    elif text:
        raise ValueError(f"{asked}: {place} is no class and no function, so it has no options")
    else:
        check_agent(found, asked, needs_name=False)
        made = copy.copy(found)  # it gets another name
    check_agent(made, asked, needs_name=False)
    agent = _wrapped(made)
    try:
        agent.name = spec
    except AttributeError:
        raise ValueError(f"{asked}: the attribute name of {short_repr(made)} cannot be set") from None
    source = getattr(sys.modules.get(place.partition(":")[0]), "__file__", None)
    agent.files = (*agent.files, Path(source)) if source else agent.files
    check_agent_game(agent, game)
    return agent


def check_agent_game(agent: AgentLike, game: str) -> None:
    """Raise `ValueError` if an opponent is no agent, or an agent plays only another game than `game`."""
    check_agent(agent, "opponents", needs_name=False)
    own = _wrapped(agent).game
    if own and own != game:
        name = getattr(agent, "name", type(agent).__name__)
        raise ValueError(f"agent {name!r} was made for {own}, not {game}: expected make_agent(..., {game!r})")


def _unknown_agent_message(name: str, game: str, known: list[str]) -> str:
    """Return the error message for an agent that does not play a game."""
    others = games_with_agent(name)
    what = f"agent {name!r} plays {', '.join(others)}, not {game}" if others else f"unknown agent {short_repr(name)}"
    return f"{what}: known are {', '.join(sorted(known))}{_meant_agent(name, game) or did_you_mean(name, known)}"


def _meant_agent(name: str, game: str) -> str:
    """Return a hint if the text is an option without its agent, or the path of a network; otherwise an empty text."""
    option, equals, _ = name.partition("=")
    if equals:
        for agent, place in agents_of(game).items():
            with suppress(ImportError):
                if option in inspect.signature(import_object(place)).parameters:
                    return f" (options follow a colon: did you mean '{agent}:{name[:80]}'?)"
    try:
        is_path = "/" in name and Path(name).exists()
    except (OSError, ValueError):  # a name that is too long, or a null character
        is_path = False
    return f" (did you mean {'net:' + name!r}?)" if is_path and "net" in agents_of(game) else ""


class PerGameGenerator(np.random.Generator):
    """A generator with a separate random stream for each game of a call of `Agent.act`.

    `game_streams` draws from these streams if it is called with the same number of games. If an agent draws only with
    `game_streams`, its action in one game then does not depend on the other games of the call.

    An ordinary generator, seeded with the first stream, supplies the numbers for direct calls of this object, and for
    `game_streams` with a different number of games.
    """

    def __init__(self, streams: Streams) -> None:
        """Create a generator that draws from `streams`, (N,) uint64, one per game of the call, and advances them."""
        super().__init__(np.random.PCG64(int(streams[0])))
        self.streams = streams


def as_unfinished_states(games: Any, game: str = "") -> StateArray:
    """Return states in the form that compiled code accepts, after checking that no game is finished.

    See `ninetka_env.core.batch.as_states`.

    Args:
        games: (N,) states.
        game: the name of the only game that the agent plays; empty if it plays any.

    Raises:
        ValueError: if `games` is not an (N,) array of states of this game, or if a game is finished or was not started.
    """
    games = as_states(games)
    if game and (name := definition_of(games.dtype).name) != game:
        raise ValueError(f"games: states of {name}, which this agent does not play: expected states of {game}")
    if (index := first_unplayable(games)) >= 0:
        raise ValueError(f"games: the game at index {index} is over or has not been started: no seat is to move")
    return games


def game_streams(games: StateArray, rng: np.random.Generator) -> Streams:
    """Draw one random stream per game, (N,) uint64, so that results do not depend on the number of threads."""
    streams = np.empty(len(games), np.uint64)
    if isinstance(rng, PerGameGenerator) and len(rng.streams) == len(games):
        draw_each(rng.streams, streams)
    else:
        draw_many(rng.integers(0, 2**64, size=1, dtype=np.uint64), streams)
    return streams


def check_threads(threads: int) -> int:
    """Return the number of threads that an agent may use: `threads`, at most one per core; 0 means one per core."""
    most = default_num_threads()
    return most if threads == 0 else min(most, check_count("threads", threads, minimum=0))

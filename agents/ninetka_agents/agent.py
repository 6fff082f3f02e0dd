"""What an agent is, how one is made from a line of text, and the simplest one, which plays at random."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ninetka_agents.parts import GENERIC, agents_of, games_with, load, parts_of
from ninetka_env.core.batch import as_records, first_without_turn
from ninetka_env.core.chance import Streams, draw_each, draw_many
from ninetka_env.core.game import Game
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_count, shortened
from ninetka_env.core.registry import DEFAULT, definition_of, load_variant
from ninetka_env.core.text import did_you_mean
from ninetka_env.core.threads import most_threads
from ninetka_env.core.verbs import Records, random_action

Actions = npt.NDArray[np.int64]
MAX_SPEC = 2000
"""Characters of an agent's spec."""


class Agent(ABC):
    """Decides for a seat. It keeps no memory of games, so one agent may play many games and seats at once.

    Agents derive from this class. Where an agent is expected, other objects with a name and a method `act` are accepted
    as well; see `as_agent`.
    """

    name: str
    """How tables call the agent: usually the spec it was made from."""
    game: str = ""
    """The name of the only game that it plays, see `check_plays`; empty if it plays any."""
    opens_alike: bool = False
    """Whether it begins all games from the same start in much the same way, as networks do. Matches between such agents
    begin with random plies; see `ninetka_train.judging.schedule`."""
    remembers: bool = False
    """Whether `start` returns a player, which has a memory of its game."""

    @property
    def searcher(self) -> Agent:
        """The agent that chooses the actions: itself, or the search that a network plays by."""
        return self

    @abstractmethod
    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose an action for the seat to move in each game.

        Args:
            games: (N,) records of one game, none of them over (else `ValueError`, see `as_positions`); not changed.
            rng: the only source of chance; the same generator state gives the same actions on any number of threads.

        Returns:
            (N,) int64 legal actions.
        """

    def start(self, game: Game) -> Player | None:
        """Start to play a whole game.

        Args:
            game: the position at the start; not changed.

        Returns:
            The player to ask instead of `act` in this game; None if the agent keeps no memory of games.
        """
        return None


class RandomAgent(Agent):
    """Plays a uniformly random legal action, of any game."""

    name = "random"

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose actions; see `Agent.act`."""
        games = as_positions(games)
        actions = np.empty(len(games), np.int64)
        _act_at_random(games, game_streams(games, rng), actions)
        return actions


@jit(counted=False)
def _act_at_random(games: Records, streams: Streams, actions: Actions) -> None:
    for index in range(len(games)):
        actions[index] = random_action(games[index], streams, index)


class AgentLike(Protocol):
    """What is accepted as an agent: any object with a name and a method `act` like those of `Agent`."""

    name: str

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose an action for the seat to move in each game; see `Agent.act`."""
        ...


class Forfeit(Exception):  # noqa: N818  # no error if a player resigns
    """A player ends its game, to the loss of its seat."""

    def __init__(self, kind: str, failure: str = "") -> None:
        """Say which of `ninetka_env.core.game.EVENTS` it is, and what went wrong if something did."""
        super().__init__(failure)
        self.kind = kind


class Player(Protocol):
    """An agent in one game, with a memory of it: a kept tree, a thinking engine.

    `Agent.start` returns such players. Where whole games are played, as in the arena, they are asked instead of
    `Agent.act`.

    A player that resigns or cannot go on raises `Forfeit`, from `act` or `observe`, and so may `start`.
    """

    def act(self, rng: np.random.Generator) -> int:
        """Return a legal action for the seat to move."""
        ...

    def observe(self, action: int) -> None:
        """Take note of an action that was played, by whichever seat, its own included."""
        ...

    def close(self) -> None:
        """End what runs for this game."""
        ...


@runtime_checkable
class _Starting(Protocol):
    def start(self, game: Game) -> Player: ...


@runtime_checkable
class _OpeningAlike(Protocol):
    opens_alike: bool


@runtime_checkable
class _PlayingOneGame(Protocol):
    game: str


class _Wrapped(Agent):
    """An object that is like an agent; what it has of `Agent` beyond name and `act` counts."""

    def __init__(self, agent: AgentLike) -> None:
        self._agent = agent
        self.game = agent.game if isinstance(agent, _PlayingOneGame) else ""
        self.opens_alike = isinstance(agent, _OpeningAlike) and bool(agent.opens_alike)
        self.remembers = isinstance(agent, _Starting)

    @property
    def name(self) -> str:
        return self._agent.name

    @name.setter
    def name(self, name: str) -> None:
        self._agent.name = name

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        return self._agent.act(games, rng)

    def start(self, game: Game) -> Player | None:
        return self._agent.start(game) if isinstance(self._agent, _Starting) else None


def as_agent(agent: AgentLike | str, game: str = DEFAULT) -> Agent:
    """Return an agent as it is, a spec made into one, any other object wrapped into one.

    Args:
        agent: an `Agent`, an object with a name and a method `act`, or a spec as of `make_agent`.
        game: the game that it is to play, where it is made from a spec.

    Raises:
        ValueError: if a spec is wrong.
    """
    if isinstance(agent, str):
        return make_agent(agent, game)
    return agent if isinstance(agent, Agent) else _Wrapped(agent)


def make_agent(spec: str, game: str = DEFAULT) -> Agent:
    """Make an agent from text: a name, then options, such as `"maxn"`, `"maxn:depth=3"` or `"mcts:simulations=2000"`.

    Options are `key=value` with commas between them; they are the keyword arguments of the agent's constructor. A value
    without a key goes to the first argument (a path, for agents that load one); the name of one that is true or false
    alone makes it true, as in `"mcts:simulations=1000,rave"`. The spec of an agent inside another's
    stands in brackets if it has commas: `"phases:placement=[net:runs/quick,simulations=64],movement=maxn"`.

    Args:
        spec: the text.
        game: the name or spec of the game that it is to play.

    Raises:
        ValueError: naming the agents that play the game, or the options of the agent named.
    """
    if not isinstance(spec, str) or len(spec) > MAX_SPEC:
        raise ValueError(f"agent {shortened(spec)}: expected text of at most {MAX_SPEC} characters, such as 'random'")
    game_name, (name, _, text) = load_variant(game).definition.name, spec.partition(":")
    known = agents_of(game_name)
    if name not in known:
        raise ValueError(_unknown(name, game_name, list(known)))
    try:
        constructor = load(known[name])
    except ImportError as error:
        raise ValueError(f"agent {name!r} needs {error.name}: pip install 'ninetka-env[train]'") from error
    options = _parse_options(spec, text, constructor)
    if options.get("exact") and not parts_of(game_name).prover:
        raise ValueError(f"agent {shortened(spec)}: option exact: nothing can be proven in {game_name}")
    if "game" in inspect.signature(constructor).parameters:
        options["game"] = game_name
    agent = as_agent(constructor(**options))
    agent.name = spec
    if name not in GENERIC:
        agent.game = game_name
    return agent


def check_plays(agent: AgentLike, game: str) -> None:
    """Raise `ValueError` if an agent says that it plays another game than that of this name."""
    own = as_agent(agent).game
    if own and own != game:
        raise ValueError(f"agent {agent.name!r} was made for {own}, not {game}: expected make_agent(..., {game!r})")


def _unknown(name: str, game: str, known: list[str]) -> str:
    """Say who plays a game instead of an agent that does not."""
    others = games_with(name)
    what = f"agent {name!r} plays {', '.join(others)}, not {game}" if others else f"unknown agent {shortened(name)}"
    return f"{what}: known are {', '.join(sorted(known))}{did_you_mean(name, known)}"


def _parse_options(spec: str, text: str, constructor: Callable[..., Any]) -> dict[str, Any]:
    parameters = {key: one for key, one in inspect.signature(constructor).parameters.items() if key != "game"}
    options: dict[str, Any] = {}
    for item in filter(None, _at_commas(text)):
        key, equals, value = item.partition("=")
        if not equals and isinstance(getattr(parameters.get(item), "default", None), bool):
            key, value = item, "true"
        elif not equals or " " in key or key.startswith("["):
            key, value = next(iter(parameters), ""), item
        if key not in parameters:
            allowed = ", ".join(parameters) or "none"
            raise ValueError(
                f"agent {shortened(spec)}: unknown option {shortened(key)}, allowed are {allowed}"
                f"{did_you_mean(key, list(parameters))}"
            )
        if key in options:
            raise ValueError(f"agent {shortened(spec)}: option {key!r} is given twice")
        options[key] = _convert(spec, key, value, parameters[key])
    return options


def _at_commas(text: str) -> list[str]:
    """Cut text at its commas; those in brackets belong to the spec there."""
    parts, depth = [""], 0
    for letter in text:
        depth = max(0, depth + (letter == "[") - (letter == "]"))
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _convert(spec: str, key: str, value: str, parameter: inspect.Parameter) -> Any:
    """Convert an option's text to the kind of its default value; where that is None, as it is annotated."""
    default = parameter.default
    if isinstance(default, bool):
        if value in ("true", "false"):
            return value == "true"
        raise ValueError(f"agent {shortened(spec)}: option {key}={shortened(value)} must be true or false")
    if isinstance(default, str):
        return value[1:-1] if value.startswith("[") and value.endswith("]") else value
    whole = isinstance(default, int) or (default is None and "int" in str(parameter.annotation))
    kind = int if whole else float
    try:
        return kind(value)
    except ValueError:
        raise ValueError(f"agent {shortened(spec)}: option {key}={shortened(value)} must be a number") from None


class GameRandom(np.random.Generator):
    """A generator that holds a stream of its own for every game of a call.

    An agent that draws by `game_streams` then decides the same in a game whichever games share the call. Other draws,
    also for another number of games (those that an agent plays on from these, say), come from an ordinary generator,
    seeded by the first game's stream.
    """

    def __init__(self, streams: Streams) -> None:
        """Use, and move on, `streams`: (N,) uint64, one per game of the call."""
        super().__init__(np.random.PCG64(int(streams[0])))
        self.streams = streams


def as_positions(games: Any, game: str = "") -> Records:
    """Return games as the compiled code of agents takes them; see `ninetka_env.core.batch.as_records`.

    Args:
        games: (N,) records.
        game: the name of the only game that the agent plays; empty if it plays any.

    Raises:
        ValueError: if this is no (N,) array of the records of this game, or one of the games is over.
    """
    games = as_records(games)
    if game and (name := definition_of(games.dtype).name) != game:
        raise ValueError(f"games: records of {name}, which this agent does not play: expected those of {game}")
    if (index := first_without_turn(games)) >= 0:
        raise ValueError(f"games: the game at index {index} is over, or was never started: no seat is to move")
    return games


def game_streams(games: Records, rng: np.random.Generator) -> Streams:
    """Draw one random stream per game, (N,) uint64, so that what is drawn from them does not depend on threads."""
    drawn = np.empty(len(games), np.uint64)
    if isinstance(rng, GameRandom) and len(rng.streams) == len(games):
        draw_each(rng.streams, drawn)
    else:
        draw_many(rng.integers(0, 2**64, size=1, dtype=np.uint64), drawn)
    return drawn


def check_threads(threads: int) -> int:
    """Return how many threads an agent may use: `threads`, or one per core for 0; never more than those."""
    most = most_threads()
    return most if threads == 0 else min(most, check_count("threads", threads, least=0))

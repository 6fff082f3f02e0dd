"""An agent that uses different agents for the stages of a game, or for different board sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions, Agent, GameRandom, Player, as_positions
from ninetka_env.core.batch import write_stages
from ninetka_env.core.game import Game
from ninetka_env.core.registry import limits_of
from ninetka_env.core.verbs import Records

Choose: TypeAlias = Callable[[Records], npt.NDArray[np.integer[Any]]]
"""Returns the index of the agent for each game, (N,) integers for (N,) states of one dtype."""
AnyAgent = TypeVar("AnyAgent", bound=Agent)


def by_stage(games: Records) -> npt.NDArray[np.int8]:
    """Return the stage of each game as the index of its agent."""
    stages = np.zeros(len(games), np.int8)
    write_stages(games, stages)
    return stages


def by_size(least: Sequence[int]) -> Choose:
    """Return a function that chooses agents by board size, the number of points (in Kropki nodes) of the dtype.

    Args:
        least: for each agent the minimum number of points, ascending; the first is 0.
    """

    def choose(games: Records) -> npt.NDArray[np.int64]:
        return np.full(len(games), np.searchsorted(least, limits_of(games.dtype).targets, side="right") - 1)

    return choose


class Switch(Agent, Generic[AnyAgent]):
    """Plays each position by one of several agents."""

    def __init__(self, choose: Choose, agents: Sequence[AnyAgent], word: str = "then") -> None:
        """Combine agents.

        Args:
            choose: chooses the agent for each position; see `by_stage` and `by_size`.
            agents: one or more agents, indexed by the results of `choose`. An agent may occur several times.
                `opens_alike` is that of agent 0.
            word: separator between the names of the agents.
        """
        self.choose, self.agents = choose, tuple(agents)
        self.name = f" {word} ".join(dict.fromkeys(agent.name for agent in agents))
        self.opens_alike = self.agents[0].opens_alike
        self.remembers = any(agent.remembers for agent in agents)

    def agent_for(self, games: Records) -> AnyAgent:
        """Return the agent for the first of the games."""
        return self.agents[self.choose(games)[0]]

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        games = as_positions(games)
        actions, numbers = np.empty(len(games), np.int64), self.choose(games)
        for agent in dict.fromkeys(self.agents):
            theirs = np.isin(numbers, [number for number, other in enumerate(self.agents) if other is agent])
            if theirs.any():
                actions[theirs] = _ask(agent, games, theirs, rng)
        return actions

    def start(self, game: Game) -> Player | None:
        """Start to play a game, if one of the agents has state per game; see `ninetka_agents.agent.Agent.start`."""
        return _Player(self, game) if self.remembers else None


def _ask(agent: Agent, games: Records, chosen: npt.NDArray[np.bool_], rng: np.random.Generator) -> Actions:
    """Let an agent act in the `chosen` games; if `rng` has one stream per game, each game uses its own."""
    if not isinstance(rng, GameRandom):
        return agent.act(games[chosen], rng)
    part = GameRandom(rng.streams[chosen])
    actions = agent.act(games[chosen], part)
    rng.streams[chosen] = part.streams
    return actions


class _Player:
    """The agents in one game. An agent starts when it is first needed and then observes all earlier actions."""

    def __init__(self, switch: Switch[Any], game: Game) -> None:
        self._switch, self._first, self._game = switch, game.copy(), game.copy()
        self._actions: list[int] = []
        self._players: dict[Agent, Player | None] = {}

    def act(self, rng: np.random.Generator) -> int:
        """Act by the agent for this position; see `ninetka_agents.agent.Player.act`."""
        agent = self._switch.agent_for(self._game.records)
        if agent not in self._players:
            self._start(agent)
        player = self._players[agent]
        return int(agent.act(self._game.records, rng)[0]) if player is None else player.act(rng)

    def _start(self, agent: Agent) -> None:
        player = self._players[agent] = agent.start(self._first.copy())
        if player is not None:
            for action in self._actions:
                player.observe(action)

    def observe(self, action: int) -> None:
        """Pass an action to all players that have started."""
        self._game.play(action)
        self._actions.append(action)
        for player in filter(None, self._players.values()):
            player.observe(action)

    def close(self) -> None:
        """Close all players that have started."""
        for player in filter(None, self._players.values()):
            player.close()

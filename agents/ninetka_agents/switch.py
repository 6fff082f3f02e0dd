"""An agent that uses different agents for the stages of a game, or for different board sizes.

Start reading at `Switch`. `ninetka_agents.net_agent` uses this class to switch between searches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions, Agent, PerGameGenerator, SeatAgent, as_unfinished_states
from ninetka_env.core.batch import write_stages
from ninetka_env.core.game import Game
from ninetka_env.core.registry import limits_of
from ninetka_env.core.verbs import StateArray

Choose: TypeAlias = Callable[[StateArray], npt.NDArray[np.integer[Any]]]
"""Returns the index of the agent for each game, (N,) integers for (N,) states of one dtype."""
AgentT = TypeVar("AgentT", bound=Agent)


def by_stage(games: StateArray) -> npt.NDArray[np.int8]:
    """Return the stage of each game as the index of its agent."""
    stages = np.zeros(len(games), np.int8)
    write_stages(games, stages)
    return stages


def by_size(min_points: Sequence[int]) -> Choose:
    """Return a function that chooses agents by board size: the number of points (in Kropki, nodes) of the dtype.

    Args:
        min_points: the minimum number of points of each agent's boards, ascending; the first number is 0.
    """

    def choose(games: StateArray) -> npt.NDArray[np.int64]:
        return np.full(len(games), np.searchsorted(min_points, limits_of(games.dtype).targets, side="right") - 1)

    return choose


class Switch(Agent, Generic[AgentT]):
    """Plays each position with one of several agents."""

    def __init__(self, choose: Choose, agents: Sequence[AgentT], separator: str = "then") -> None:
        """Combine agents.

        Args:
            choose: chooses the agent for each position; see `by_stage` and `by_size`.
            agents: one or more agents, indexed by the results of `choose`. An agent may occur several times.
                Agent 0 determines `repeats_openings`.
            separator: text between the names of the agents in the name of this agent.
        """
        self.choose, self.agents = choose, tuple(agents)
        self.name = f" {separator} ".join(dict.fromkeys(agent.name for agent in agents))
        self.repeats_openings = self.agents[0].repeats_openings
        self.has_seat_agents = any(agent.has_seat_agents for agent in agents)
        self.files = tuple(dict.fromkeys(file for agent in agents for file in agent.files))

    def agent_for(self, games: StateArray) -> AgentT:
        """Return the agent for the first game of `games`."""
        return self.agents[self.choose(games)[0]]

    def act(self, games: StateArray, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        games = as_unfinished_states(games)
        actions, numbers = np.empty(len(games), np.int64), self.choose(games)
        for agent in dict.fromkeys(self.agents):
            chosen = np.isin(numbers, [number for number, other in enumerate(self.agents) if other is agent])
            if chosen.any():
                actions[chosen] = _act_on_subset(agent, games, chosen, rng)
        return actions

    def start(self, game: Game) -> SeatAgent | None:
        """Start to play a game, if one of the agents has state per game; see `ninetka_agents.agent.Agent.start`."""
        return _SwitchSeatAgent(self, game) if self.has_seat_agents else None


def _act_on_subset(agent: Agent, games: StateArray, chosen: npt.NDArray[np.bool_], rng: np.random.Generator) -> Actions:
    """Let an agent act in the `chosen` games; if `rng` has one stream per game, each game uses its own."""
    if not isinstance(rng, PerGameGenerator):
        return agent.act(games[chosen], rng)
    part = PerGameGenerator(rng.streams[chosen])
    actions = agent.act(games[chosen], part)
    rng.streams[chosen] = part.streams
    return actions


class _SwitchSeatAgent:
    """Plays one game with the agents of a `Switch`.

    An agent starts when it is first needed, and then observes all earlier actions.
    """

    def __init__(self, switch: Switch[Any], game: Game) -> None:
        self._switch, self._first, self._game = switch, game.copy(), game.copy()
        self._actions: list[int] = []
        self._seat_agents: dict[Agent, SeatAgent | None] = {}

    def act(self, rng: np.random.Generator) -> int:
        """Choose an action with the agent for this position; see `ninetka_agents.agent.SeatAgent.act`."""
        agent = self._switch.agent_for(self._game.records)
        if agent not in self._seat_agents:
            self._start(agent)
        player = self._seat_agents[agent]
        return int(agent.act(self._game.records, rng)[0]) if player is None else player.act(rng)

    def _start(self, agent: Agent) -> None:
        player = self._seat_agents[agent] = agent.start(self._first.copy())
        if player is not None:
            for action in self._actions:
                player.observe(action)

    def observe(self, action: int) -> None:
        """Pass an action to all seat agents that have started."""
        self._game.play(action)
        self._actions.append(action)
        for player in filter(None, self._seat_agents.values()):
            player.observe(action)

    def close(self) -> None:
        """Close all seat agents that have started."""
        for player in filter(None, self._seat_agents.values()):
            player.close()

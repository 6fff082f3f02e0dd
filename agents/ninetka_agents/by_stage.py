"""A different agent for each stage of a game."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions, Agent, GameRandom, Player, as_positions
from ninetka_env.core.batch import write_stages
from ninetka_env.core.game import Game
from ninetka_env.core.verbs import Records


class ByStage(Agent):
    """Asks one agent in each stage of a game; those that remember games play them by their players."""

    def __init__(self, agents: Sequence[Agent]) -> None:
        """Join agents: one per stage of the game, in order; an agent may stand there several times."""
        self.agents = tuple(agents)
        self.name = " then ".join(dict.fromkeys(agent.name for agent in agents))
        self.opens_alike = self.agents[0].opens_alike
        self.remembers = any(agent.remembers for agent in agents)

    def start(self, game: Game) -> Player | None:
        """Start to play a game, if one of the agents remembers it; see `ninetka_agents.agent.Agent.start`."""
        return _Player(self.agents, game) if self.remembers else None

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        games = as_positions(games)
        actions, stages = np.empty(len(games), np.int64), np.zeros(len(games), np.int8)
        write_stages(games, stages)
        for agent in dict.fromkeys(self.agents):
            theirs = np.isin(stages, [stage for stage, other in enumerate(self.agents) if other is agent])
            if theirs.any():
                actions[theirs] = _ask(agent, games, theirs, rng)
        return actions


def _ask(agent: Agent, games: Records, chosen: npt.NDArray[np.bool_], rng: np.random.Generator) -> Actions:
    """Let an agent act in some of the games, each with the stream that it has in `rng`, if it has one."""
    if not isinstance(rng, GameRandom):
        return agent.act(games[chosen], rng)
    part = GameRandom(rng.streams[chosen])
    actions = agent.act(games[chosen], part)
    rng.streams[chosen] = part.streams
    return actions


class _Player:
    """The agents in one game."""

    def __init__(self, agents: Sequence[Agent], game: Game) -> None:
        self._agents, self._game = agents, game.copy()
        self._players: dict[Agent, Player] = {}
        for agent in dict.fromkeys(agents):
            if (player := agent.start(game.copy())) is not None:
                self._players[agent] = player

    def act(self, rng: np.random.Generator) -> int:
        """Ask the agent whose stage it is; see `ninetka_agents.agent.Player.act`."""
        agent = self._agents[self._game.stage]
        if agent in self._players:
            return self._players[agent].act(rng)
        return int(agent.act(self._game.records, rng)[0])

    def observe(self, action: int) -> None:
        """Tell all of them."""
        self._game.play(action)
        for player in self._players.values():
            player.observe(action)

    def close(self) -> None:
        """Let all of them end."""
        for player in self._players.values():
            player.close()

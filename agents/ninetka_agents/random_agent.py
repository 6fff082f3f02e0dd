"""The agent that plays uniformly random legal actions, of any game."""

from __future__ import annotations

import numpy as np

from ninetka_agents.agent import Actions, Agent, as_positions, game_streams
from ninetka_env.core.chance import Streams
from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import Records, random_action


class RandomAgent(Agent):
    """Plays a uniformly random legal action."""

    name = "random"

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        games = as_positions(games)
        actions = np.empty(len(games), np.int64)
        _act(games, game_streams(games, rng), actions)
        return actions


@jit(counted=False)
def _act(games: Records, streams: Streams, actions: Actions) -> None:
    for index in range(len(games)):
        actions[index] = random_action(games[index], streams, index)

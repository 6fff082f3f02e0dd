"""The agent that plays uniformly random legal actions."""

from __future__ import annotations

import numpy as np

from ninetka_agents.agent import Actions, game_streams
from ninetka_env.core.jit import jit
from ninetka_env.core.chance import Streams, draw_bit
from ninetka_env.games.ninetka.geometry import PASS
from ninetka_env.games.ninetka.rules import Record, Records, bit_action, is_over, legal_bits, play_bit


class RandomAgent:
    """Plays a uniformly random legal action."""

    name = "random"

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        actions = np.empty(len(games), np.int64)
        _act(games, game_streams(games, rng), actions)
        return actions


@jit
def random_action(game: Record, streams: Streams, index: int) -> int:
    """Draw a uniformly random legal action from stream `index`."""
    bits = legal_bits(game)
    return bit_action(game, draw_bit(streams, index, bits)) if bits else PASS


@jit
def playout(game: Record, streams: Streams, index: int) -> None:
    """Play `game`, which must play forced passes itself, to its end with uniformly random actions."""
    while not is_over(game):
        play_bit(game, draw_bit(streams, index, legal_bits(game)))


@jit
def _act(games: Records, streams: Streams, actions: Actions) -> None:
    for index in range(len(games)):
        actions[index] = random_action(games[index], streams, index)

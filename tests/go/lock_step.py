"""Compare thousands of random games with other implementations of Go: `PYTHONPATH=tests python -m go.lock_step`.

The other implementations (peers) are the slow reference, which plays all options, OpenSpiel and pgx. A peer that is not
installed is skipped with a message. At every ply both games must have the same legal actions, and at the end the same
result. Any difference ends the command with an error. OpenSpiel and pgx may end a game when its board repeats; such a
game is compared up to that ply.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from go.go_helpers import assert_equal, play_in_lock_step

from ninetka_env import go_v0
from ninetka_env.games.go.rules import KO_RULES, SCORINGS

KOMI = 7.5
BATCH = 64
UPSIDE_DOWN = np.append(np.arange(81).reshape(9, 9)[::-1].ravel(), 81)
"""The pgx number of each action; pgx numbers points from the upper left."""


class Comparison(NamedTuple):
    """The numbers of compared games and plies, and of games that the peer ended early because a board repeated."""

    games: int
    plies: int
    cut_short: int


class Batch:
    """A batch of random games that are compared with a peer's; `excluded` marks games that the peer ended early."""

    def __init__(self, size: int = BATCH) -> None:
        self.env = go_v0.vector_env(size, komi=KOMI, num_threads=1)
        self.env.reset(seed=0)
        self.rng = np.random.default_rng(0)
        self.excluded = np.zeros(size, bool)
        self.games = self.plies = self.cut_short = 0

    def draw(self) -> Any:
        """Draw a uniformly random legal action in every game."""
        keys = self.rng.random(self.env.action_mask.shape) * self.env.action_mask
        return keys.argmax(axis=1)

    def compare_masks(self, masks: Any) -> None:
        active = ~self.excluded
        differ = np.flatnonzero((masks != self.env.action_mask)[active].any(axis=1))
        assert not len(differ), f"legal actions differ in game {np.flatnonzero(active)[differ[0]]}, ply {self.plies}"

    def step(self, actions: Any, is_over: Callable[[], Any], returns: Callable[[], Any]) -> None:
        """Play a ply; compare which games are over, and the results. A game that is over restarts.

        `is_over` and `returns` are called after the ply: they return which of the peer's games are over, and results.
        """
        self.plies += int((~self.excluded).sum())
        _, rewards, terminated = self.env.step(actions)
        ended, active = np.asarray(is_over(), bool), ~self.excluded
        assert not (terminated & ~ended & active).any(), "our game is over, the peer's is not"
        both = terminated & active
        wrong = both & (rewards != np.asarray(returns(), np.float32)).any(axis=1)
        assert (actions[wrong] < 81).all(), "results differ"  # except if the last placement repeated a board
        self.cut_short += int(wrong.sum())
        self.games += int(both.sum())
        cut = ended & ~terminated & active
        self.cut_short += int(cut.sum())
        self.excluded = (self.excluded | cut) & ~terminated


def openspiel(games: int) -> Comparison:
    import pyspiel

    batch, game = Batch(), pyspiel.load_game(f"go(board_size=9,komi={KOMI})")
    states = [game.new_initial_state() for _ in range(BATCH)]
    while batch.games < games:
        masks = [[0] * 82 if state.is_terminal() else state.legal_actions_mask() for state in states]
        batch.compare_masks(np.array(masks, np.int8))
        actions = batch.draw()
        for i, state in enumerate(states):
            if not batch.excluded[i]:
                state.apply_action(int(actions[i]))
        batch.step(actions, lambda: [one.is_terminal() for one in states], lambda: [one.returns() for one in states])
        for i in np.flatnonzero(batch.env.terminated):
            states[i] = game.new_initial_state()
    return Comparison(batch.games, batch.plies, batch.cut_short)


def pgx(games: int) -> Comparison:
    import jax
    import pgx

    env = pgx.make("go_9x9")
    assert env.observation_shape[:2] == (9, 9)
    batch, init, step = Batch(), jax.jit(jax.vmap(env.init)), jax.jit(jax.vmap(env.step))
    keys = jax.random.split(jax.random.PRNGKey(0), BATCH)
    fresh = state = init(keys)
    renew = jax.jit(lambda ended, new, old: jax.tree.map(lambda a, b: jax.vmap(jax.numpy.where)(ended, a, b), new, old))
    while batch.games < games:
        mask = np.asarray(state.legal_action_mask)[:, UPSIDE_DOWN].astype(np.int8)
        batch.compare_masks(mask)
        actions = batch.draw()
        state = step(state, jax.numpy.asarray(UPSIDE_DOWN[actions]))
        batch.step(actions, lambda state=state: state.terminated, lambda state=state: _by_seat(state))
        state = renew(jax.numpy.asarray(batch.env.terminated), fresh, state)
    return Comparison(batch.games, batch.plies, batch.cut_short)


def _by_seat(state: Any) -> Any:
    """Return pgx's rewards in seat order, Black first; pgx draws at random which player is Black."""
    return np.take_along_axis(np.asarray(state.rewards), np.asarray(state._player_order), axis=1)


def reference(games: int) -> Comparison:
    """Play games with all options in turn. On large boards not every ply is compared, because the reference is slow."""
    plies = 0
    options = _all_options()
    for seed in range(games):
        chosen = next(options)
        plies += play_in_lock_step(chosen, seed, assert_equal, every=1 + chosen["size"] // 2).ply
    return Comparison(games, plies, 0)


def _all_options() -> Iterator[dict[str, Any]]:
    numbers = itertools.cycle(itertools.product((3, 5, 9), KO_RULES, SCORINGS, (0, 3, 5), (False, True)))
    for size, ko, scoring, handicap, resign in numbers:
        if handicap == 0 or size == 9:
            komi = 0.5 * handicap - 1
            yield {"size": size, "ko": ko, "scoring": scoring, "handicap": handicap, "allow_resign": resign,
                   "komi": komi, "max_plies": min(4 * size * size, 200)}  # fmt: skip


PEERS = {"reference": (reference, "go"), "openspiel": (openspiel, "pyspiel"), "pgx": (pgx, "pgx")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peers", nargs="*", choices=[*PEERS, []], help="the peers to compare with; by default all")
    parser.add_argument("--games", type=int, default=2000, help="games per peer, a tenth of that for the reference")
    chosen = parser.parse_args()
    for name in chosen.peers or PEERS:
        play, module = PEERS[name]
        if importlib.util.find_spec(module) is None:
            print(f"{name}: not installed, skipped", flush=True)
            continue
        count = play(chosen.games // 10 if name == "reference" else chosen.games)
        print(f"{name}: {count.games} games, {count.plies} plies, {count.cut_short} ended by the peer for a repeated "
              "board, 0 differences", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()

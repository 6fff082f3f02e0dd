"""Measure every checkpoint of runs against perfect play: how often their networks give a win of 9tka away.

    ninetka train --config quick --set keep_checkpoints=0
    python -m benchmarks.regret runs/quick --out docs/regret

The positions are the same for all checkpoints: positions of the movement phase, from games of random play and of the
tree search, in which the exact solver knows the value of every move. The regret of a move is the win probability that
it gives away, 1 for a losing move and 0 for a winning one. It is measured where the mover wins with some moves and
loses with others.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ninetka_agents import make_agent
from ninetka_agents.agent import Actions
from ninetka_agents.checkpoint import load_checkpoint
from ninetka_agents.net_agent import network_evaluate
from ninetka_agents.ninetka.solver.solver import LOST, UNKNOWN, solve_batch
from ninetka_env.core.files import replace_files
from ninetka_env.core.verbs import StateArray
from ninetka_train.judging.arena import play_games
from ninetka_train.judging.ratings import clustered_interval
from ninetka_train.judging.ratings_page import markdown_table
from ninetka_train.learning.config import load_config
from ninetka_train.learning.resume import initial_network
from ninetka_train.ninetka.blunders import movement_positions
from ninetka_train.reporting.style import HEIGHT, REFERENCE, WIDTH, add_caption, picture_pair, series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SOURCES = {"random": 1, "mcts:simulations=2000": 2}
"""Agents whose games give the positions, and the seeds of the games."""
NUM_GAMES = 200
"""Games of each agent."""
NODES = 50_000
"""Maximum number of solver nodes per position."""
COMPARED = ("maxn", "mcts:simulations=400", "mcts:simulations=2000", "net:placements", "net")
"""Agents that play the same positions, for comparison."""


@dataclass(frozen=True)
class Share:
    """A share of positions, in percent, with its 95 % interval; the positions of a game are a cluster."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return the numbers as text."""
        return f"{self.value:.1f} [{self.low:.1f}, {self.high:.1f}]"


@dataclass(frozen=True)
class Positions:
    """N positions of the movement phase of two players, with the values of all moves."""

    states: StateArray
    """(N,) states."""
    games: npt.NDArray[np.int64]
    """(N,) number of the game of each position."""
    legal: npt.NDArray[np.bool_]
    """(N, 122) whether an action is legal."""
    losing: npt.NDArray[np.bool_]
    """(N, 122) whether a legal action loses under perfect play."""

    @property
    def is_won(self) -> npt.NDArray[np.bool_]:
        """(N,) whether the mover wins under perfect play."""
        return np.asarray((self.legal & ~self.losing).any(axis=1))

    @property
    def can_err(self) -> npt.NDArray[np.bool_]:
        """(N,) whether some of the moves win and others lose."""
        return self.is_won & self.losing.any(axis=1)

    def select(self, chosen: npt.NDArray[np.bool_]) -> Positions:
        """Return some of the positions."""
        return Positions(self.states[chosen], self.games[chosen], self.legal[chosen], self.losing[chosen])

    def share(self, hits: npt.NDArray[np.bool_]) -> Share:
        """Return the share of positions in which `hits`, (N,), is true."""
        return Share(*(100 * share for share in (float(hits.mean()), *clustered_interval(hits, self.games))))

    def regret(self, actions: Actions) -> Share:
        """Return the mean regret of an action in each position."""
        return self.share(self.losing[np.arange(len(actions)), actions])

    def __str__(self) -> str:
        """Return the number of positions and of their games."""
        return f"{len(self.states):,} positions of {len(np.unique(self.games))} games"


@dataclass(frozen=True)
class Measured:
    """The figures of one network without search."""

    step: int
    """Rounds (AlphaZero) or moves (PPO) that it has learned from."""
    source: str
    """Who played the newest games that it learned from."""
    move: Share
    """Regret of the most probable move."""
    policy: float
    """Mean regret of a move drawn from the policy, in percent."""
    predicted: Share
    """In how many of all solved positions the value is above one half exactly if the mover wins."""

    def cells(self) -> tuple[str, ...]:
        """Return a row of the table."""
        return f"step {self.step}", self.source, str(self.move), f"{self.policy:.1f}", str(self.predicted)


def solved_positions() -> Positions:
    """Play the games, solve their positions, and return those in which the value of every move is known."""
    parts = []
    for number, (source, seed) in enumerate(SOURCES.items()):
        results = play_games([make_agent(source)], 2, NUM_GAMES, seed=seed, neutral_placement="random")
        states, games, _, num_legal = movement_positions(results)
        _, values = solve_batch(states, NODES)
        is_known = (values != UNKNOWN).sum(axis=1) == num_legal
        parts.append((states[is_known], games[is_known] + number * NUM_GAMES, values[is_known]))
    states, games, values = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Positions(states, games, values != UNKNOWN, values == LOST)


def measure(network: Any, step: int, source: str, positions: Positions) -> Measured:
    """Measure a network."""
    logits, values = network_evaluate(network)(positions.states)
    chosen = positions.can_err
    decided = positions.select(chosen)
    policy = np.where(decided.legal, np.exp(logits[chosen]), 0)
    expected = (policy * decided.losing).sum(axis=1) / policy.sum(axis=1)
    predicted = positions.share((values[:, 0] > 0.5) == positions.is_won)
    return Measured(step, source, decided.regret(policy.argmax(axis=1)), 100 * float(expected.mean()), predicted)


def measure_run(folder: Path, positions: Positions) -> list[Measured]:
    """Measure the networks of a run, from the initial one on."""
    checkpoints = sorted(folder.glob("step-*.safetensors"))
    if not checkpoints:
        raise SystemExit(f"{folder}: no checkpoints; train with --set keep_checkpoints=0")
    config = load_config(folder / "config.yaml")
    found = [measure(initial_network(config).eval(), 0, "-", positions)]
    for path in checkpoints:
        network, about, _ = load_checkpoint(path)
        is_teacher = config.algorithm == "alphazero" and about.step <= config.alphazero.playout_rounds
        found.append(measure(network, about.step, "teacher" if is_teacher else "own", positions))
    return found


def compared_rows(positions: Positions, folder: Path) -> list[tuple[str, str]]:
    """Return the rows of agents, which play the same positions, and of a run's newest network with search."""
    decided = positions.select(positions.can_err)
    uniform = 100 * (decided.losing.sum(axis=1) / decided.legal.sum(axis=1)).mean()
    newest = max(folder.glob("step-*.safetensors"))
    specs = {spec: spec for spec in COMPARED} | {f"{folder.name},simulations=64": f"net:{newest},simulations=64"}
    agents = {name: make_agent(spec) for name, spec in specs.items()}
    regrets = {
        name: decided.regret(agent.act(decided.states, np.random.default_rng(0))) for name, agent in agents.items()
    }
    return [("random", f"{uniform:.1f}"), *((name, str(regret)) for name, regret in regrets.items())]


def draw(runs: dict[str, list[Measured]], positions: Positions) -> Figure:
    """Return a figure with the regret and the predicted winners of each run."""
    from matplotlib.figure import Figure  # matplotlib is slow to import

    figure = Figure((WIDTH, 1.4 * HEIGHT))
    decided = positions.select(positions.can_err)
    add_caption(
        figure,
        f"9tka, two players, networks without search. Regret: {decided}, in which some moves win and others lose. "
        f"Predicted winners: {positions}. Areas: 95 % intervals, with games as clusters.",
    )
    left, right = figure.subplots(1, 2)
    uniform = 100 * float((decided.losing.sum(axis=1) / decided.legal.sum(axis=1)).mean())
    always = 100 * max(float(positions.is_won.mean()), 1 - float(positions.is_won.mean()))
    _draw_panel(left, runs, lambda one: one.move, uniform, "random")
    _draw_panel(right, runs, lambda one: one.predicted, always, "always the same side")
    left.set(title="Regret of the most probable move", xlabel="rounds", ylabel="wins given away, %", ylim=(0, 60))
    right.set(title="Winner predicted by the value", xlabel="rounds", ylabel="positions, %", ylim=(40, 100))
    return figure


def _draw_panel(
    axes: Axes, runs: dict[str, list[Measured]], get: Callable[[Measured], Share], reference: float, label: str
) -> None:
    axes.axhline(reference, **REFERENCE, label=label)
    for number, (name, found) in enumerate(runs.items()):
        steps, shares, style = [one.step for one in found], [get(one) for one in found], series(number)
        lows, highs = [share.low for share in shares], [share.high for share in shares]
        axes.fill_between(steps, lows, highs, color=style["color"], alpha=0.14, linewidth=0)
        axes.plot(steps, [share.value for share in shares], label=name, **style)
    axes.legend(loc="best")


def print_tables(runs: dict[str, list[Measured]], folders: Sequence[Path], positions: Positions) -> None:
    """Print the figures of all runs, and those of other agents."""
    decided = positions.select(positions.can_err)
    print(f"Winners: {positions}. Regret: {decided}, in which some moves win and others lose. In percent [95 %].")
    columns = ("network", "newest games", "regret of its move", "regret of its policy", "winner predicted")
    for name, found in runs.items():
        print(f"\n{name}:\n")
        print("\n".join(markdown_table(columns, (one.cells() for one in found))))
    print()
    print("\n".join(markdown_table(("agent", "regret"), compared_rows(positions, folders[-1]))))


def main() -> None:
    """Print the tables of runs, and draw them."""
    parser = argparse.ArgumentParser(description="Measure every checkpoint of runs against perfect play.")
    parser.add_argument("runs", type=Path, nargs="+", help="folders of runs of two-player 9tka with all checkpoints")
    parser.add_argument("--out", type=Path, help="also write PATH.png and PATH-dark.png")
    asked = parser.parse_args()
    positions = solved_positions()
    runs = {folder.name: measure_run(folder, positions) for folder in asked.runs}
    print_tables(runs, asked.runs, positions)
    if asked.out:
        replace_files(picture_pair(asked.out.with_name(f"{asked.out.name}.png"), partial(draw, runs, positions)))


if __name__ == "__main__":
    main()

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
from ninetka_env.core.files import check_writable, replace_files, with_extension
from ninetka_env.core.verbs import StateArray
from ninetka_train.judging.arena import play_games
from ninetka_train.judging.ratings import clustered_interval
from ninetka_train.judging.ratings_page import markdown_table
from ninetka_train.learning.config import TrainConfig, load_config
from ninetka_train.learning.resume import initial_network
from ninetka_train.ninetka.blunders import movement_positions
from ninetka_train.reporting.style import HEIGHT, REFERENCE, WIDTH, add_caption, picture_pair, picture_paths, series

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
class Run:
    """The networks of a run."""

    config: TrainConfig
    networks: dict[int, Any]
    """By the number of rounds (AlphaZero) or moves (PPO) that they have learned from; the initial network is 0."""
    newest: str
    """Path of the newest checkpoint."""


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


def read_run(folder: Path) -> Run:
    """Read the networks of a run, from the initial one on.

    Raises:
        ValueError: if the folder has no run of two-player 9tka, or a checkpoint is damaged.
    """
    if not (folder / "config.yaml").is_file():
        raise ValueError(f"{folder}: expected the folder of a run, with config.yaml and checkpoints")
    config, checkpoints = load_config(folder / "config.yaml"), sorted(folder.glob("step-*.safetensors"))
    if config.definition.name != "ninetka" or 2 not in config.players:
        raise ValueError(f"{folder}: expected a run of two-player 9tka")
    if not checkpoints:
        raise ValueError(f"{folder}: no checkpoints; train with --set keep_checkpoints=0")
    if config.keep_checkpoints:
        print(f"note: {folder} has only its {len(checkpoints)} newest checkpoints; keep_checkpoints=0 keeps all")
    networks = {0: initial_network(config).eval()}
    for path in checkpoints:
        network, about, _ = load_checkpoint(path)
        networks[about.step] = network
    return Run(config, networks, str(checkpoints[-1]))


def source_of(config: TrainConfig, step: int) -> str:
    """Return who played the newest games that a run has learned from after `step` rounds or moves."""
    is_teacher = config.algorithm == "alphazero" and step <= config.alphazero.playout_rounds
    return "-" if step == 0 else "teacher" if is_teacher else "own"


def names_of(folders: Sequence[Path]) -> list[str]:
    """Return a name for each run: the folder's own name if these differ, else the path."""
    names = [folder.resolve().name for folder in folders]
    return names if len(set(names)) == len(names) else [str(folder) for folder in folders]


def compared_rows(positions: Positions, name: str, newest: str) -> list[tuple[str, str]]:
    """Return the rows of agents, which play the same positions.

    The last one is the search with the checkpoint `newest` of the run `name`.
    """
    decided = positions.select(positions.can_err)
    uniform = 100 * (decided.losing.sum(axis=1) / decided.legal.sum(axis=1)).mean()
    specs = {spec: spec for spec in COMPARED} | {f"{name},simulations=64": f"net:{newest},simulations=64"}
    agents = {name: make_agent(spec) for name, spec in specs.items()}
    regrets = {
        name: decided.regret(agent.act(decided.states, np.random.default_rng(0))) for name, agent in agents.items()
    }
    return [("random", f"{uniform:.1f}"), *((name, str(regret)) for name, regret in regrets.items())]


def draw(runs: dict[str, list[Measured]], unit: str, positions: Positions) -> Figure:
    """Return a figure with the regret and the predicted winners of each run; `unit` is that of the steps."""
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
    left.set(title="Regret of the most probable move", xlabel=unit, ylabel="wins given away, %", ylim=(0, None))
    right.set(title="Winner predicted by the value", xlabel=unit, ylabel="positions, %", ylim=(None, 100))
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


def print_tables(measured: dict[str, list[Measured]], newest: str, positions: Positions) -> None:
    """Print the figures of all runs, and those of other agents; `newest` is the last run's newest checkpoint."""
    decided = positions.select(positions.can_err)
    print(f"Winners: {positions}. Regret: {decided}, in which some moves win and others lose. In percent [95 %].")
    columns = ("network", "newest games", "regret of its move", "regret of its policy", "winner predicted")
    for name, found in measured.items():
        print(f"\n{name}:\n")
        print("\n".join(markdown_table(columns, (one.cells() for one in found))))
    print()
    rows = compared_rows(positions, [*measured][-1], newest)
    print("\n".join(markdown_table(("agent", "regret"), rows)))


def main() -> None:
    """Print the tables of runs, and draw them."""
    parser = argparse.ArgumentParser(description="Measure every checkpoint of runs against perfect play.")
    parser.add_argument("runs", type=Path, nargs="+", help="folders of runs of two-player 9tka with all checkpoints")
    parser.add_argument("--out", type=Path, help="also write PATH.png and PATH-dark.png")
    asked = parser.parse_args()
    try:
        runs = {name: read_run(folder) for name, folder in zip(names_of(asked.runs), asked.runs, strict=True)}
        pictures = picture_paths(with_extension(asked.out, ".png")) if asked.out else ()
        for path in pictures:
            check_writable(path)
    except (OSError, ValueError) as error:
        raise SystemExit(f"error: {error}") from None
    positions = solved_positions()
    measured = {
        name: [measure(network, step, source_of(run.config, step), positions) for step, network in run.networks.items()]
        for name, run in runs.items()
    }
    print_tables(measured, [*runs.values()][-1].newest, positions)
    if pictures:
        units = {"alphazero": "rounds", "ppo": "moves"}
        unit = " or ".join(sorted({units[run.config.algorithm] for run in runs.values()}))
        replace_files(picture_pair(pictures[0], partial(draw, measured, unit, positions)))


if __name__ == "__main__":
    main()

"""The work that a cluster does: tasks of self-play rounds, and batches of matches.

Start reading at `ClusterPlayer`. `workers.py` assigns the tasks to workers.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ray.util.metrics import Gauge

from ninetka_agents.agent import Agent
from ninetka_env.core.registry import Definition
from ninetka_train.cluster.workers import Workers
from ninetka_train.judging.arena import PlayBatches
from ninetka_train.judging.lockstep import play_range, warm_up
from ninetka_train.judging.results import MatchSettings, PartialResults
from ninetka_train.learning.alphazero import TrainState, playing_speed
from ninetka_train.learning.config import check_config
from ninetka_train.learning.losses import Metrics
from ninetka_train.learning.samples import Samples, join
from ninetka_train.learning.selfplay import play_task, tasks_of

GAUGES = {
    "games_per_second": "Games of the newest round per second of playing it",
    "samples_per_second": "Positions to learn from per second of playing the newest round",
    "workers": "Workers at the end of the newest round",
    "idle": "Share of the workers' time in which they had no task",
    "share_of_play": "Share of the time in which the learner waited for games",
    "staleness": "Rounds by which the weights that played the newest games were out of date",
    "again": "Tasks of the newest round that were assigned again",
}
"""Names and descriptions of the metrics of each round, which Ray's dashboard shows as `ninetka_<name>`."""


class ClusterPlayer:
    """Plays rounds and matches on a cluster, with the same results as in one process."""

    def __init__(self, workers: Workers) -> None:
        """Play on these workers, and register the metrics of `GAUGES`."""
        self.workers = workers
        self._gauges = {name: Gauge(f"ninetka_{name}", description) for name, description in GAUGES.items()}

    def play_round(self, state: TrainState) -> tuple[Samples, Metrics]:
        """Play a round of self-play; see `ninetka_train.learning.alphazero.PlayRound`."""
        start, config = time.perf_counter(), state.config
        recipe = _task_player, (config.definition, config.model_dump(mode="json"), state.network, state.rounds)
        samples = join(self.workers.map(recipe, tasks_of(config)))
        return samples, playing_speed(config, samples, time.perf_counter() - start) | self.workers.metrics

    def batch_player(self, agents: Sequence[Agent]) -> PlayBatches:
        """Return a function that plays batches of a match of these agents."""

        def play(settings: MatchSettings, batches: Sequence[range]) -> Iterator[PartialResults]:
            return self.workers.map((_part_player, (list(agents), settings)), batches)

        return play

    def publish(self, numbers: Mapping[str, float]) -> None:
        """Report the metrics of a round to Ray's dashboard. Metrics that are missing in `numbers` are not reported."""
        for name, gauge in self._gauges.items():
            if name in numbers:
                gauge.set(numbers[name])


def _task_player(
    definition: Definition, settings: dict[str, Any], network: Any, number: int
) -> Callable[[range], Samples]:
    """Return a function that plays tasks of the round with the index `number`.

    Settings are passed as plain values, because their class is created at run time. The definition is passed because
    its pickle imports the module of the game.
    """
    return functools.partial(play_task, check_config(settings), network.eval(), number)


def _part_player(agents: list[Agent], settings: MatchSettings) -> Callable[[range], PartialResults]:
    """Return a function that plays batches of a match on one torch thread, like everything on a cluster."""
    variant = settings.variant
    warm_up(agents, variant, variant.game_class.start(variant).records)
    return functools.partial(play_range, agents, settings)

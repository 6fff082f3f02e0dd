"""What is handed out: the tasks of a round of self-play, the batches of a match."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ninetka_agents.agent import Agent
from ninetka_train.cluster.workers import Workers
from ninetka_train.judging.arena import Part, PlayBatches, Settings, play_part
from ninetka_train.judging.players import warm_up
from ninetka_train.learning.alphazero import TrainState, pace_of
from ninetka_train.learning.config import check_config
from ninetka_train.learning.samples import Samples, join
from ninetka_train.learning.selfplay import play_task, tasks_of
from ninetka_train.learning.setup import Log


class ClusterPlayer:
    """Plays on a cluster what one process would play otherwise, with the same results."""

    def __init__(self, workers: Workers) -> None:
        """Use these workers."""
        self.workers = workers

    def play_round(self, state: TrainState) -> tuple[Samples, Log]:
        """Play a round of self-play; see `ninetka_train.learning.alphazero.Play`."""
        start, config = time.perf_counter(), state.config
        recipe = _play_tasks, (config.model_dump(mode="json"), state.network, state.rounds)
        samples = join(self.workers.map(recipe, tasks_of(config)))
        return samples, pace_of(config, samples, time.perf_counter() - start) | self.workers.figures

    def players_of(self, agents: Sequence[Agent]) -> PlayBatches:
        """Return what plays batches of a match of these agents."""

        def play(settings: Settings, batches: Sequence[range]) -> Iterator[Part]:
            return self.workers.map((_play_parts, (list(agents), settings)), batches)

        return play


def _play_tasks(settings: dict[str, Any], network: Any, number: int) -> Callable[[range], Samples]:
    """Return what plays tasks of a round; settings travel as plain values, since their class is made when needed."""
    return functools.partial(play_task, check_config(settings), network.eval(), number)


def _play_parts(agents: list[Agent], settings: Settings) -> Callable[[range], Part]:
    """Return what plays batches of a match, on one thread of torch's like everything on a cluster."""
    variant = settings.variant
    warm_up(agents, variant, variant.game_class.start(variant).records)
    return functools.partial(play_part, agents, settings)

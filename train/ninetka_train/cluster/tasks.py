"""What is handed out: the tasks of a round of self-play, the batches of a match."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ninetka_agents.agent import Agent
from ninetka_train.cluster.workers import Workers
from ninetka_train.judging.arena import Part, PlayBatches, Settings, play_part
from ninetka_train.judging.players import warm_up
from ninetka_train.learning.alphazero import Play, TrainState, pace_of
from ninetka_train.learning.config import check_config
from ninetka_train.learning.samples import Samples, join
from ninetka_train.learning.selfplay import play_task, tasks_of
from ninetka_train.learning.setup import Log, one_torch_thread


def rounds_on(workers: Workers) -> Play:
    """Return who plays rounds on a cluster, for `ninetka_train.learning.alphazero.train_alphazero`."""

    def play(state: TrainState) -> tuple[Samples, Log]:
        start, config = time.perf_counter(), state.config
        recipe = _player, (config.model_dump(mode="json"), state.network.eval(), state.rounds)
        samples = join(workers.map(recipe, tasks_of(config)))
        return samples, pace_of(config, samples, time.perf_counter() - start) | workers.figures

    return play


def _player(settings: dict[str, Any], network: Any, number: int) -> Callable[[range], Samples]:
    """Return what plays tasks of a round; settings travel as plain values, since their class is made when needed."""
    return functools.partial(play_task, check_config(settings), network.eval(), number)


def batches_on(workers: Workers, agents: Sequence[Agent]) -> PlayBatches:
    """Return who plays a match of these agents on a cluster, for `ninetka_train.judging.arena.play_games`."""

    def play(settings: Settings, batches: Sequence[range]) -> Iterator[Part]:
        return workers.map((_match, (list(agents), settings)), batches)

    return play


def _match(agents: list[Agent], settings: Settings) -> Callable[[range], Part]:
    variant = settings.variant
    with one_torch_thread():
        warm_up(agents, variant, variant.game_class.start(variant).records)

    def play(games: range) -> Part:
        with one_torch_thread():
            return play_part(agents, settings, games)

    return play


def check_repeatable(specs: Sequence[str]) -> None:
    """Raise `ValueError` for agents that a worker cannot have play as another one would.

    What plays by the clock depends on how busy its node is, and outside engines have a state and an installation of
    their own.
    """
    for spec in specs:
        if re.search(r"\bgtp\b", spec):
            raise ValueError(f"agent {spec!r}: outside engines cannot play on a cluster, which may lack them")
        if re.search(r"\bseconds=", spec):
            raise ValueError(f"agent {spec!r}: what plays by the clock cannot play on a cluster: give it simulations")

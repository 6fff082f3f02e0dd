"""Test the planes of Kropki against the reference: every plane for every viewer after every action."""

from __future__ import annotations

import numpy as np
import pytest
from kropki.reference import ReferenceGame

from ninetka_agents.agent import RandomAgent
from ninetka_env import kropki_v0
from ninetka_env.core.jit import jit
from ninetka_env.core.registry import get_definition, load_variant
from ninetka_env.core.verbs import (
    write_fast_planes,
    write_legal_mask,
    write_observation,
    write_slow_planes,
    write_targets,
)
from ninetka_env.games.kropki.game import Game
from ninetka_env.games.kropki.observation import NUM_PLANES, PLANES


def planes_of(game: Game, viewer: int) -> np.ndarray:
    planes = np.full(NUM_PLANES * game.width * game.height, 7, np.int8)
    _write(game.records, viewer, planes)
    return planes.reshape(NUM_PLANES, -1)


@jit
def _write(games, viewer, planes) -> None:
    write_observation(games[0], viewer, planes)


@pytest.mark.parametrize("territory", ["declared", "immediate"])
@pytest.mark.parametrize("size", [(7, 7), (8, 5), (3, 4)], ids=str)
def test_every_plane_for_every_viewer_at_every_ply(size: tuple[int, int], territory: str) -> None:
    for seed in range(2):
        rng = np.random.default_rng(seed)
        game, reference = Game.new(*size, territory=territory), ReferenceGame(*size, territory)
        drawn = game.copy()
        while True:
            for viewer in range(2):
                expected = np.array(reference.planes(viewer), np.int8)
                if reference.is_over():
                    expected[13] = viewer == game.to_move  # after the end, the reference may have another seat to move
                assert planes_of(game, viewer).tolist() == expected.tolist()
            assert drawn.records.tobytes() != game.records.tobytes() or game.ply == 0
            if reference.is_over():
                break
            action = int(rng.choice(reference.legal_actions()))
            game.play(action)
            reference.play(action)


def test_only_fast_planes_change_for_the_seat_to_move() -> None:
    rng = np.random.default_rng(4)
    for territory in ("declared", "immediate"):
        game = Game.new(8, 7, territory=territory)
        planes = np.full(NUM_PLANES * 56, 7, np.int8)
        _write_slow(game.records, planes)
        while not game.is_over:
            _write_fast(game.records, planes)
            assert planes.tolist() == planes_of(game, game.to_move).ravel().tolist()
            game.play(int(rng.choice(game.legal_actions())))


@jit
def _write_slow(games, planes) -> None:
    write_slow_planes(games[0], games[0].to_move, planes)


@jit
def _write_fast(games, planes) -> None:
    write_fast_planes(games[0], games[0].to_move, planes)


@pytest.mark.parametrize("territory", ["declared", "immediate"])
@pytest.mark.parametrize("size", [(3, 3), (4, 4), (6, 5), pytest.param((3, 13), marks=pytest.mark.exhaustive)], ids=str)
def test_batches_write_the_same_planes_as_single_games(size: tuple[int, int], territory: str) -> None:
    """Batches update planes incrementally, also when a new game replaces a finished one.

    If regions are declared, the random actions also draw regions and end turns.
    """
    envs = kropki_v0.vector_env(500, *size, territory=territory)
    envs.reset(seed=1)
    agent, rng, ended, kinds = RandomAgent(), np.random.default_rng(1), 0, np.zeros(NUM_PLANES, np.int64)
    for _ in range(6 * size[0] * size[1]):
        envs.step(agent.act(envs.games, rng))
        seen = envs.observations.reshape(500, -1)
        drawn, mask = np.full_like(seen, 7), np.full_like(envs.action_mask, 7)
        _write_all(envs.games, drawn, mask)
        assert (seen == drawn).all()
        assert (envs.action_mask == mask).all()
        ended += int(envs.terminated.sum())
        kinds += envs.observations.any(axis=(0, 2, 3))
    assert ended > 2000
    assert kinds.all() == (territory == "declared")


@jit
def _write_all(games, planes, masks) -> None:
    for index in range(len(games)):
        write_observation(games[index], games[index].to_move, planes[index])
        write_legal_mask(games[index], masks[index])


def test_the_shape_follows_from_the_options() -> None:
    sizes = load_variant("kropki:width=12,height=9").sizes
    assert (sizes.planes, sizes.num_actions, sizes.num_players) == ((14, 9, 12), 217, 2)
    assert load_variant("kropki:territory=immediate").sizes.num_actions == 100
    assert len(PLANES) == len({plane.name for plane in PLANES}) == 14


def test_targets_are_the_seats_whose_regions_contain_the_nodes() -> None:
    rng = np.random.default_rng(1)
    game = Game.new(6, 6, territory="immediate")
    while not game.is_over:
        game.play(int(rng.choice(game.legal_actions())))
    targets = np.full(get_definition("kropki").dtypes[game.records.dtype].targets, 7, np.int8)
    _write_targets(game.records, targets)
    assert targets[:36].tolist() == (game.region.ravel() - 1).tolist()
    assert (targets[36:] == -1).all()
    assert game.region.any()


@jit
def _write_targets(games, targets) -> None:
    write_targets(games[0], targets)

"""Tests of 9tka's features against a slow recomputation, and of properties that every network must have."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("torch")

import torch
from ninetka.positions import Options, random_positions

from ninetka_agents.net_agent import NetAgent, SearchSettings
from ninetka_agents.ninetka.feature_tables import (
    GLOBAL_FEATURES,
    RELATIONS,
    SECTION_FEATURES,
    SLOT_FEATURES,
    Feature,
)
from ninetka_agents.ninetka.features import (
    MIN_POSITIONS_PER_THREAD,
    Features,
    make_features,
    make_packed_features,
    permute,
)
from ninetka_agents.ninetka.network import Network, NetworkConfig, as_inputs
from ninetka_agents.outputs import MASKED
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import (
    ACTION_SYMMETRIES,
    EDGE,
    INNER,
    PASS,
    SECTION,
    SIZE,
    SLOT_SQUARE,
    SYMMETRIES,
)
from ninetka_env.games.ninetka.rules import Phase

CONFIGS = [NetworkConfig(width=16, blocks=2, mixing=mixing) for mixing in ("pool", "attention", "relations")]


def some_games(players: int, seed: int = 0, every: int = 5) -> list[Game]:
    games = random_positions(Options(players), seed)
    return [game.copy() for ply, game in enumerate(games) if ply % every == 0 and not game.is_over]


def states_of(games: list[Game]) -> StateArray:
    return np.concatenate([game.records for game in games])


def feature_values(rows: npt.NDArray[np.int8], feature: Feature) -> list[int]:
    return rows[..., feature.first : feature.first + feature.count].tolist()


class SlowFeatures:
    """A slow computation of features, from the board alone."""

    def __init__(self, game: Game, viewer: int) -> None:
        self.game, self.viewer, self.n = game, viewer, game.num_players
        self.cells = game.board.ravel().tolist()

    def relative(self, seat: int) -> int:
        return (seat - self.viewer) % self.n

    def path(self, slot: int) -> list[int]:
        """Return the inner squares of a slot's line, nearest first."""
        row, col = divmod(int(SLOT_SQUARE[slot]), SIZE)
        step = (1 if row == 0 else -1 if row == 10 else 0, 1 if col == 0 else -1 if col == 10 else 0)
        return [SIZE * (row + i * step[0]) + col + i * step[1] for i in range(1, 10)]

    def is_free(self, slot: int) -> bool:
        return self.cells[SLOT_SQUARE[slot]] == 0 and self.game.phase != Phase.MOVEMENT

    def way(self, slot: int) -> list[int]:
        """Return the squares that a stone from a slot would slide over, the landing square last."""
        if self.cells[SLOT_SQUARE[slot]] == 0 and not self.is_free(slot):
            return []
        return list(itertools.takewhile(lambda s: self.cells[s] == 0, self.path(slot)))

    def counts(self, section: int) -> list[int]:
        stones = [
            cell - 1 for square, cell in enumerate(self.cells) if cell and cell < 5 and SECTION[square] == section
        ]
        return [sum(self.relative(seat) == r for seat in stones) for r in range(4)]

    def owner(self, section: int) -> int:
        counts = self.counts(section)
        best = max(counts)
        return counts.index(best) if counts.count(best) == 1 else 4

    def slot(self, slot: int) -> dict[str, list[int]]:
        cell, way = self.cells[SLOT_SQUARE[slot]], self.way(slot)
        there = bool(cell) or self.is_free(slot)
        features = {
            "free": [int(self.is_free(slot))],
            "stone": [int(bool(cell) and self.relative(cell - 1) == r) for r in range(4)],
            "movable": [int(bool(way))],
            "blocked": [int(there and not way)],
            "line": [sum(self.cells[s] != 0 for s in self.path(slot))],
        }
        if way:
            section = int(SECTION[way[-1]])
            counts, slider = self.counts(section), self.relative(cell - 1) if cell else 0
            lead = counts[slider] + 1 - max(c for r, c in enumerate(counts) if r != slider)
            owner = self.owner(section)
            features |= {
                "distance": [sum(SECTION[s] == SECTION[self.path(slot)[3 * i]] for s in way) for i in range(3)],
                "landing_counts": counts,
                "landing_owner": [int(owner == r) for r in range(5)],
                "lead": [int(min(max(lead, -2), 2) == value) for value in range(-2, 3)],
                "conquers": [int(lead > 0 and owner != slider)],
                "takes": [int(lead == 0 and owner != 4)],
            }
        return features | self.effects(slot)

    def effects(self, slot: int) -> dict[str, list[int]]:
        features: dict[str, list[int]] = {
            name: [0] * SLOT_FEATURES[name].count
            for name in ("blocks", "blocks_free", "shortens", "threats", "cutters")
        }
        for other in range(36):
            if other != slot:
                self.add_effect(features, slot, other)
        return features

    def relations(self, slot: int, other: int) -> list[str]:
        """Return the names of the relations from one slot to another."""
        mine, theirs = self.way(slot), self.way(other)
        if slot == other or not mine or not theirs:
            return []
        found = []
        if mine[-1] in theirs:
            found.append("blocks" if mine[-1] == theirs[0] else "shortens")
        if theirs[-1] in mine:
            found.append("blocked by" if theirs[-1] == mine[0] else "shortened by")
        if SECTION[mine[-1]] == SECTION[theirs[-1]]:
            found.append("lands in the same section")
        return found

    def add_effect(self, features: dict[str, list[int]], slot: int, other: int) -> None:
        mine, theirs = self.way(slot), self.way(other)
        cell = self.cells[SLOT_SQUARE[other]]
        if not mine or not theirs:
            return
        if mine[-1] in theirs and cell:
            features["blocks" if mine[-1] == theirs[0] else "shortens"][self.relative(cell - 1)] += 1
        elif mine[-1] == theirs[0]:
            features["blocks_free"][0] += 1
        if theirs[-1] in mine and cell:
            features["threats" if theirs[-1] == mine[0] else "cutters"][int(self.relative(cell - 1) != 0)] += 1


@pytest.mark.parametrize("players", [2, 3, 4])
def test_features_match_a_slow_recomputation(players):
    games = some_games(players, every=7)
    for viewer in range(players):
        features = make_features(states_of(games), np.full(len(games), viewer, np.int8))
        for index, game in enumerate(games):
            slow = SlowFeatures(game, viewer)
            for slot in range(36):
                for name, expected in slow.slot(slot).items():
                    assert feature_values(features.slots[index, slot], SLOT_FEATURES[name]) == expected, (
                        name,
                        slot,
                        str(game),
                    )
            for section in range(9):
                row = features.sections[index, section]
                assert feature_values(row, SECTION_FEATURES["counts"]) == slow.counts(section)
                assert feature_values(row, SECTION_FEATURES["owner"]) == [
                    int(slow.owner(section) == r) for r in range(5)
                ]
                aimed = [slow.way(s) for s in range(36) if slow.cells[SLOT_SQUARE[s]] == viewer + 1]
                assert row[SECTION_FEATURES["aimed"].first] == sum(bool(w) and SECTION[w[-1]] == section for w in aimed)
                inside = [slow.cells[s] for s in range(121) if SECTION[s] == section]
                assert feature_values(row, SECTION_FEATURES["empty"]) == [inside.count(0)]
                assert feature_values(row, SECTION_FEATURES["neutral"]) == [inside.count(5)]


@pytest.mark.parametrize("players", [2, 4])
def test_relations_match_a_slow_recomputation(players):
    for game in some_games(players, seed=4, every=9):
        slow, relations = SlowFeatures(game, 0), make_features(game.records).relations[0]
        for slot, other in itertools.product(range(36), repeat=2):
            found = [RELATIONS[kind] for kind in np.flatnonzero(relations[slot, :, other])]
            assert sorted(found) == sorted(slow.relations(slot, other)), (slot, other, str(game))


@pytest.mark.parametrize("players", [2, 3, 4])
def test_global_features_match_the_game(players):
    for game in some_games(players, seed=1):
        row = make_features(game.records).globals[0]
        seat = game.to_move
        relative = [(seat + r) % players for r in range(players)]
        rest = [0] * (4 - players)
        assert feature_values(row, GLOBAL_FEATURES["phase"]) == [int(game.phase == p) for p in Phase]
        assert feature_values(row, GLOBAL_FEATURES["num_players"]) == [int(players == n) for n in (2, 3, 4)]
        assert feature_values(row, GLOBAL_FEATURES["viewer"]) == [int(seat == s) for s in range(4)]
        assert feature_values(row, GLOBAL_FEATURES["to_move"]) == [1, 0, 0, 0]
        assert feature_values(row, GLOBAL_FEATURES["scores"]) == [int(game.scores()[s]) for s in relative] + rest
        assert feature_values(row, GLOBAL_FEATURES["leader"]) == [int(game.winner() == s) for s in relative] + rest
        assert row[GLOBAL_FEATURES["ply"].first] == game.ply - (0, 9, 45)[game.phase]


@pytest.mark.parametrize("symmetry", range(8))
def test_symmetries_permute_features_and_policy(symmetry):
    games = some_games(3, seed=2)
    turned = []
    for game in games:
        board = np.empty(121, np.int8)
        board[SYMMETRIES[symmetry]] = game.board.ravel()
        turned.append(Game.from_board(board.reshape(SIZE, SIZE), game.to_move, 3))
    features, expected = make_features(states_of(games)), make_features(states_of(turned))
    for one, other in zip(permute(features, symmetry), expected, strict=True):
        np.testing.assert_array_equal(one, other)
    for config in CONFIGS:
        torch.manual_seed(0)
        network = Network(config).eval()
        with torch.inference_mode():
            plain, after = network(as_inputs(features)), network(as_inputs(expected))
        torch.testing.assert_close(
            after.logits[:, torch.tensor(ACTION_SYMMETRIES[symmetry]).long()], plain.logits, atol=1e-4, rtol=1e-4
        )
        torch.testing.assert_close(after.values, plain.values, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.mixing)
@pytest.mark.parametrize("players", [2, 3, 4])
def test_illegal_actions_and_absent_seats_have_probability_zero(config, players):
    games = some_games(players, seed=3)
    features = make_features(states_of(games))
    outputs = Network(config)(as_inputs(features))
    policy, mask = outputs.logits.softmax(-1), torch.from_numpy(features.mask) == 1
    assert (policy[~mask] == 0).all()
    assert (policy[mask] > 0).all()
    assert (outputs.logits[~mask] == MASKED).all()
    assert (outputs.values[:, players:] == 0).all()
    torch.testing.assert_close(outputs.values.sum(-1), torch.ones(len(games)))
    assert [tuple(t.shape[1:]) for t in outputs[:3]] == [(122,), (5,), (9, 5)]
    assert (outputs.value_logits[:, players:] == MASKED).all()  # the draw, output 4, is masked too


def test_every_legal_action_has_its_own_logit():
    network = Network(CONFIGS[0])
    entries = network.table_actions.numpy()
    neutral = [s for s in range(121) if INNER[s] and entries[s] < entries.max()]
    own = [*SLOT_SQUARE.tolist(), *neutral, PASS]
    assert len(neutral) == 49
    assert len(set(entries[own].tolist())) == 36 + 49 + 1 == int(entries.max()) + 1
    assert all(entries[s] == entries.max() for s in range(121) if not EDGE[s] and s not in neutral)


def test_a_forced_pass_is_played():
    plays = (random_positions(Options(2, auto_pass=False), seed) for seed in itertools.count())
    game = next(game for play in plays for game in play if game.legal_actions().tolist() == [PASS])
    assert NetAgent(Network(CONFIGS[0])).act(game.records, np.random.default_rng(0)).tolist() == [PASS]


@pytest.mark.parametrize("temperature", [0.0, 1.0, 1e-60, 1e-30, 1e9, 1e30])
def test_the_agent_plays_legal_actions_reproducibly(temperature):
    records = states_of(some_games(2) + some_games(4))
    agent = NetAgent(Network(CONFIGS[0]), SearchSettings(temperature=temperature))
    actions = agent.act(records, np.random.default_rng(5))
    assert (make_features(records).mask[np.arange(len(records)), actions] == 1).all()
    assert actions.tolist() == agent.act(records, np.random.default_rng(5)).tolist()


def test_features_do_not_depend_on_the_batch():
    records = states_of(some_games(4))
    together = make_features(records)
    for index in range(len(records)):
        alone: Features = make_features(records[index : index + 1])
        for one, many in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one[0], many[index])


def test_features_do_not_depend_on_the_number_of_threads():
    games = [game for players in (2, 3, 4) for game in some_games(players)]
    records = states_of(games * (4 * MIN_POSITIONS_PER_THREAD // len(games) + 1))
    for one, shared in zip(make_packed_features(records), make_packed_features(records, threads=3), strict=True):
        np.testing.assert_array_equal(one, shared)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_packed_relations_are_the_same_relations(players):
    records = states_of(some_games(players))
    features, packed = make_features(records), make_packed_features(records)
    for one, other in zip(features[:3] + features[4:], packed[:3] + packed[4:], strict=True):
        np.testing.assert_array_equal(one, other)
    bits = np.packbits(features.relations.reshape(len(records), -1), axis=1, bitorder="little")
    np.testing.assert_array_equal(bits, packed.relations)
    assert 0 < features.relations.mean() < 0.2
    with torch.inference_mode():
        for network in (Network(config).eval() for config in CONFIGS):
            assert all(map(torch.equal, network(as_inputs(features))[:3], network(as_inputs(packed))[:3]))


def test_no_positions_have_no_features():
    assert [len(array) for array in make_features(states_of(some_games(2))[:0])] == [0] * 5


@pytest.mark.parametrize("options", [{"mixing": "glue"}, {"width": 0}, {"width": 30, "mixing": "attention"}])
def test_impossible_shapes_are_refused(options):
    with pytest.raises(ValueError, match=next(reversed(options)) if "width" not in options else "width"):
        NetworkConfig(**options)

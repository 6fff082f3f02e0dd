"""Tests of states with damaged memory, given as starting positions: they are refused, or they are playable."""

from __future__ import annotations

import numpy as np
import pytest

from ninetka_env.api.observing import observe
from ninetka_env.api.positions import starting_game, starting_states
from ninetka_env.core.batch import first_inconsistent
from ninetka_env.core.registry import load_variant

SPECS = (
    "ninetka:num_players=3",
    "ninetka:auto_pass=False",
    "go:size=5",
    "go:size=5,ko=situational,planes=alphazero",
    "kropki:width=5,height=4",
    "kropki:width=6,height=6,territory=immediate,start=cross",
)
every_spec = pytest.mark.parametrize("spec", SPECS)


def random_positions(variant, seed):
    """Yield the unfinished positions of a random game; the same object changes in place."""
    rng, game = np.random.default_rng(seed), variant.game_class.start(variant, seed)
    while not game.is_over:
        yield game
        game.play(int(rng.choice(game.legal_actions())))


def damage(state, kind, rng):
    """Return a copy of a (1,) state array with damage of one of four kinds."""
    copy = state.copy()
    memory = np.frombuffer(bytearray(copy.tobytes()), np.uint8)
    place = int(rng.integers(len(memory) - 1))
    if kind == 0:
        memory[rng.integers(len(memory), size=3)] = rng.integers(256, size=3)
    elif kind == 1:
        memory[place] = (int(memory[place]) + int(rng.choice([-1, 1, 2]))) % 256
    elif kind == 2:
        memory[place : place + 2] = memory[place : place + 2][::-1].copy()
    else:  # one element of one field
        elements = copy[rng.choice(copy.dtype.names)].reshape(-1)
        elements[rng.integers(len(elements))] ^= elements.dtype.type(1)
        return copy
    return np.frombuffer(memory.tobytes(), copy.dtype).copy()


def read_back(game):
    """Return the game that the text of `game` describes, or None if the text cannot be written or read."""
    try:
        return type(game).from_text(str(game))
    except (ValueError, KeyError, IndexError):
        return None


def play_to_the_end(game, variant, rng):
    """Call every query at every ply of a random continuation."""
    while not game.is_over:
        observe(game.records, variant)
        assert np.isfinite(game.scores()).all()
        assert first_inconsistent(game.records, np.zeros(3, variant.dtype)) == -1
        game.play(int(rng.choice(game.legal_actions())))
    assert abs(game.returns().sum()) < 1e-6


@every_spec
def test_every_position_is_consistent(spec):
    variant = load_variant(spec)
    for seed in range(10):
        states = np.concatenate([game.records.copy() for game in random_positions(variant, seed)])
        scratch = np.frombuffer(bytearray(b"\xaa" * 3 * variant.dtype.itemsize), variant.dtype)  # any contents
        before = states.copy()
        assert first_inconsistent(states, scratch) == -1
        assert (states == before).all()
        assert (starting_states(states, variant, np.ones(len(states), np.bool_)) == states).all()


@every_spec
def test_damaged_states_are_refused_or_playable(spec):
    variant, rng, refused, accepted = load_variant(spec), np.random.default_rng(7), 0, 0
    for seed in range(6):
        for game in random_positions(variant, seed):
            state = damage(game.records, int(rng.integers(4)), rng)
            try:
                read = starting_game(state[0], variant)
            except ValueError as error:
                assert str(error).startswith("position: ")  # noqa: PT017  # the other branch continues the game
                refused += 1
                continue
            accepted += 1
            play_to_the_end(read, variant, rng)
    assert refused > 20
    assert accepted > 0


@pytest.mark.parametrize("spec", [one for one in SPECS if not one.startswith("go")])
def test_states_are_consistent_exactly_if_their_text_describes_them(spec):
    """Of these games, all fields follow from what the text contains."""
    variant, rng, equal = load_variant(spec), np.random.default_rng(8), 0
    for seed in range(20):
        for game in random_positions(variant, seed):
            state = damage(game.records, 3, rng)
            if state["num_players"] != variant.num_players:
                continue
            read = read_back(variant.game_class(state))
            is_described = read is not None and read.records.tobytes() == state.tobytes()
            is_accepted = first_inconsistent(state, np.zeros(3, variant.dtype)) == -1
            if is_described:
                assert is_accepted
            elif is_accepted:  # the text of 9tka is checked for the order of turns, too
                assert read is None
                assert variant.definition.name == "ninetka"
            equal += is_described
    assert equal > 10


@pytest.mark.parametrize("spec", ["go:size=5", "go:size=5,ko=situational,planes=alphazero"])
def test_chains_and_empty_points_of_go_must_follow_from_the_board(spec):
    variant, scratch = load_variant(spec), np.zeros(3, load_variant(spec).dtype)
    wrong = dict.fromkeys(("chain", "next_stone", "stones", "liberties", "empty", "empty_index"), 0)
    for seed in range(6):
        for game in random_positions(variant, seed):
            record, points = game.records[0], game.size**2
            stones = np.flatnonzero(game.board)
            heads = np.unique(record["chain"][stones])
            empty = record["empty"][: record["num_empty"]]
            used = {"chain": range(points + 1), "next_stone": stones, "stones": heads, "liberties": heads}
            used |= {"empty": range(len(empty)), "empty_index": empty}
            for name, places in used.items():
                for place in places:
                    state = game.records.copy()
                    state[name][0, place] += 1
                    assert first_inconsistent(state, scratch) == 0
                    wrong[name] += 1
    assert min(wrong.values()) > 100


def test_the_game_of_a_damaged_state_in_a_batch_is_named():
    variant = load_variant("go:size=5")
    states = np.repeat(next(random_positions(variant, 0)).records, 4)
    states["empty_index"][2, 3] += 1
    where = np.array([True, False, True, True])
    message = "position of game 2: the fields of the state contradict each other"
    with pytest.raises(ValueError, match=message):
        starting_states(states, variant, where)
    where[2] = False  # positions of games that do not restart are not read
    assert len(starting_states(states, variant, where)) == 2

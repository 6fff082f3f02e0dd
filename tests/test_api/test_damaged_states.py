"""Tests of states with damaged memory, given as starting positions: they are refused, or they are playable."""

from __future__ import annotations

import numpy as np
import pytest

from ninetka_env import go_v0, kropki_v0
from ninetka_env.api.observing import observe
from ninetka_env.api.positions import starting_game, starting_states
from ninetka_env.core.batch import first_inconsistent
from ninetka_env.core.registry import load_variant
from ninetka_env.games.ninetka.geometry import SQUARE_SLOT

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


# States that can be played, but that no game has


def test_the_seats_of_9tka_must_have_placed_in_turn():
    """With 35 stones of one seat, a seat without a stone would have to move, and searches would read out of bounds."""
    variant = load_variant("ninetka:num_players=2")
    for game in random_positions(variant, 1):
        state, seats = game.records.copy(), game.records["board"][0]
        for square in np.flatnonzero((seats > 0) & (seats <= 2) & (SQUARE_SLOT >= 0)):
            taken = np.int64(1) << SQUARE_SLOT[square]
            if state["movable"][0].sum() & taken:
                seat = seats[square] - 1
                state["board"][0, square] = 2 - seat
                state["movable"][0, [seat, 1 - seat]] += [-taken, taken]
                with pytest.raises(ValueError, match="the fields of the state contradict each other"):
                    starting_game(state, variant)
                state = game.records.copy()


@pytest.mark.parametrize(
    ("field", "place", "value"),
    [("captured", (0, 1), 32767), ("captured", (0, 0), -1), ("ko_point", 0, 20), ("last", 0, 20), ("passes", 0, 1)],
)
def test_numbers_of_go_that_are_impossible(field, place, value):
    game = go_v0.Game.new(size=5)
    game.records["plies"] = 0 if field == "passes" else 4
    for point in (0, 12, 1, 13):
        game.play(point)
    game.records["plies"] = 0 if field == "passes" else 4
    state = game.records.copy()
    assert starting_game(state, load_variant("go:size=5")) == game
    state[field][place] = value
    with pytest.raises(ValueError, match="the fields of the state contradict each other"):
        starting_game(state, load_variant("go:size=5"))


def test_the_ko_point_of_go_must_be_that_of_a_captured_stone():
    """A point may be the ko point exactly if the seat that has just moved could take back a single stone there."""
    variant, count = load_variant("go:size=5"), 0
    for seed in range(40):
        for game in random_positions(variant, seed):
            real = int(game.records["ko_point"][0])
            for point in range(25) if real >= 0 else ():
                state = game.records.copy()
                state["ko_point"] = point
                assert is_accepted(state) == (read_back(go_v0.Game(state)) is not None)
                assert is_accepted(state) or point != real
            count += real >= 0
    assert count > 5


def is_accepted(state):
    return first_inconsistent(state, np.zeros(3, state.dtype)) == -1


def test_the_start_of_kropki_is_an_option_like_the_others():
    for start, other in (("cross", "empty"), ("empty", "cross")):
        game = kropki_v0.Game.new(5, 4, start=start)
        game.play(0)
        for position in (game, str(game), game.records, [game, game], game.records[[0, 0]]):
            with pytest.raises(ValueError, match=r"^position.*states of games with another start"):
                kropki_v0.vector_env(2, width=5, height=4, start=other).reset(options={"position": position})


def test_positions_of_kropki_with_a_cross_have_its_points():
    board = np.zeros((4, 5), int)
    with pytest.raises(ValueError, match="start='cross': the four points of the cross are in the middle"):
        kropki_v0.Game.from_board(board, start="cross")
    state = kropki_v0.Game.from_board(board).records
    state["start"] = 1
    assert not is_accepted(state)
    game = kropki_v0.Game.new(5, 4, start="cross")
    assert kropki_v0.Game.from_board(game.board, start="cross") == game


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

"""Compare `seat_advantages` with a slow reference, which lists each seat's decisions game by game."""

from __future__ import annotations

import numpy as np
import pytest

from ninetka_env import ninetka_v0
from ninetka_train.learning.advantages import seat_advantages


def games_of(terminated):
    """Yield (first, stop, has_ended) for each game in a column of (T,) flags."""
    first = 0
    for stop in [ply + 1 for ply, ended in enumerate(terminated) if ended]:
        yield first, stop, True
        first = stop
    if first < len(terminated):
        yield first, len(terminated), False


def reference(seats, rewards, terminated, values, last_values, gamma, gae_lambda):
    """Return advantages (T, N) and returns (T, N, n), computed by the definition for each game, seat and decision."""
    advantages, returns = np.full(seats.shape, np.nan), np.full(rewards.shape, np.nan)
    for row in range(seats.shape[1]):
        for first, stop, has_ended in games_of(terminated[:, row]):
            for seat in range(rewards.shape[2]):
                own = [ply for ply in range(first, stop) if seats[ply, row] == seat]
                deltas = []
                for ply, following in zip(own, [*own, stop][1:], strict=True):
                    gained = sum(rewards[ply:following, row, seat])
                    if following < stop:
                        ahead = gamma * values[following, row]
                    else:
                        ahead = 0.0 if has_ended else gamma * last_values[row, seat]
                    deltas.append(gained + ahead - values[ply, row])
                for number, ply in enumerate(own):
                    terms = enumerate(deltas[number:])
                    advantages[ply, row] = sum((gamma * gae_lambda) ** power * delta for power, delta in terms)
                for ply in range(first, stop):
                    next_own = next((one for one in own if one >= ply), stop)
                    target = sum(rewards[ply:next_own, row, seat])
                    if next_own < stop:
                        target += values[next_own, row] + advantages[next_own, row]
                    elif not has_ended:
                        target += last_values[row, seat]
                    returns[ply, row, seat] = target
    return advantages, returns


def random_rollout(players, rng):
    """Return the arrays of a rollout in which seats repeat, are passed over, and never move in some games."""
    plies, count = int(rng.integers(1, 30)), int(rng.integers(1, 6))
    seats = rng.integers(0, players, (plies, count))
    seats[rng.random(seats.shape) < rng.choice([0, 0.5, 0.9])] = 0
    terminated = rng.random((plies, count)) < rng.choice([0, 0.1, 0.5, 1])
    rewards = rng.normal(size=(plies, count, players))
    if rng.random() < 0.7:  # as in the environments
        rewards *= terminated[..., None]
    return seats, rewards, terminated, rng.normal(size=(plies, count)), rng.normal(size=(count, players))


@pytest.mark.parametrize("players", [2, 3, 4])
def test_targets_equal_the_reference(players, scaled):
    rng = np.random.default_rng(players)
    for _ in range(scaled(100)):
        rollout = random_rollout(players, rng)
        gamma, gae_lambda = rng.choice([0, 0.5, 0.99, 1, 1], 2)
        found = seat_advantages(*rollout, gamma, gae_lambda)
        advantages, returns = reference(*rollout, gamma, gae_lambda)
        np.testing.assert_allclose(found.advantages, advantages, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(found.returns, returns, rtol=1e-4, atol=1e-4)
        own = np.take_along_axis(found.returns, rollout[0][..., None], 2)[..., 0]
        np.testing.assert_allclose(own, rollout[3] + found.advantages, rtol=1e-4, atol=1e-4)


def test_a_seat_is_rewarded_for_a_game_that_another_seat_ends():
    seats, rewards = [[0], [1], [1]], [[(0, 0)], [(0, 0)], [(1, -1)]]
    found = seat_advantages(seats, rewards, [[False], [False], [True]], [[0.25], [0.5], [0.125]], [(9, 9)], 0.5, 1.0)
    # Seat 0 decides at ply 0 only: 1 - 0.25. Seat 1 at plies 1 and 2: -1 - 0.125; 0.5 * 0.125 - 0.5 - 0.5 * 1.125.
    assert found.advantages.tolist() == [[0.75], [-1.0], [-1.125]]
    assert found.returns[:, 0].tolist() == [[1, -0.5], [1, -0.5], [1, -1]]


def test_a_cut_game_continues_with_the_last_value_of_the_seat_that_decided():
    found = seat_advantages([[0], [1]], np.zeros((2, 1, 3)), [[False], [False]], [[0.5], [0.5]], [(0.25, 1, -1)], 0.5)
    assert found.advantages.tolist() == [[0.5 * 0.25 - 0.5], [0.5 * 1 - 0.5]]
    assert found.returns[1, 0].tolist() == [0.25, 0.5, -1]


@pytest.mark.parametrize("players", [2, 3, 4])
def test_without_values_every_decision_of_a_finished_game_gets_its_reward(players):
    envs, rng = ninetka_v0.vector_env(6, num_players=players, neutral_placement="random"), np.random.default_rng(0)
    envs.reset(seed=0)
    rows = []
    for _ in range(150):
        before = envs.to_move.copy()
        envs.step((envs.action_mask * rng.random(envs.action_mask.shape)).argmax(axis=1))
        rows.append((before, envs.rewards.copy(), envs.terminated.copy()))
    seats, rewards, terminated = map(np.stack, zip(*rows, strict=True))
    assert (seats[1:] == seats[:-1])[~terminated[:-1]].any(), "no seat moved twice in a row"
    found = seat_advantages(seats, rewards, terminated, np.zeros(seats.shape), np.zeros((6, players)), gae_lambda=1)
    for row in range(6):
        for first, stop, has_ended in games_of(terminated[:, row]):
            final = rewards[stop - 1, row]
            assert final.any() == has_ended
            assert (found.returns[first:stop, row] == final).all()
            assert (found.advantages[first:stop, row] == final[seats[first:stop, row]]).all()


GOOD = {
    "seats": np.zeros((4, 3), np.int8),
    "rewards": np.zeros((4, 3, 2), np.float32),
    "terminated": np.zeros((4, 3), np.bool_),
    "values": np.zeros((4, 3), np.float32),
    "last_values": np.zeros((3, 2), np.float32),
}


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("seats", np.full((4, 3), 2), r"seats: from 2 to 2: expected 0..1, as `rewards` has"),
        ("seats", np.full((4, 3), -1), "seats: from -1 to -1: expected 0..1"),
        ("seats", np.zeros(4, int), r"seats: expected shape \(T, N\), got \(4,\)"),
        ("seats", np.zeros((4, 3)), "seats: expected an array of integers, got "),
        ("rewards", np.zeros((4, 3)), r"rewards: expected shape \(4, 3, n\), got \(4, 3\)"),
        ("rewards", [[1], [1, 2]], r"rewards: expected an array of numbers, got \[\[1\], \[1, 2\]\]"),
        ("terminated", np.zeros((4, 3)), "terminated: expected an array of integers"),
        ("terminated", np.zeros((3, 4), bool), r"terminated: expected shape \(4, 3\), got \(3, 4\)"),
        ("values", np.zeros((5, 3)), r"values: expected shape \(4, 3\), got \(5, 3\)"),
        ("values", None, "values: expected an array of numbers, got None"),
        ("last_values", np.zeros((3, 3)), r"last_values: expected shape \(3, 2\), got \(3, 3\)"),
        ("gamma", 1.01, "gamma=1.01: expected a number from 0 to 1"),
        ("gae_lambda", -1, "gae_lambda=-1: expected a finite number of at least 0"),
        ("gae_lambda", "x", "gae_lambda='x': expected"),
    ],
)
def test_wrong_arguments_are_refused(name, wrong, message):
    assert seat_advantages(**GOOD).advantages.shape == (4, 3)
    with pytest.raises(ValueError, match=message):
        seat_advantages(**GOOD | {name: wrong})


def test_an_empty_rollout_has_no_targets():
    found = seat_advantages(**{name: array[:0] for name, array in GOOD.items()} | {"last_values": np.zeros((3, 2))})
    assert found.advantages.shape == (0, 3)
    assert found.returns.shape == (0, 3, 2)


def test_tensors_are_taken_unless_numpy_cannot_read_them():
    torch = pytest.importorskip("torch")
    values = torch.rand(4, 3)
    found, expected = (seat_advantages(**GOOD | {"values": array}) for array in (values, values.numpy()))
    assert (found.advantages == expected.advantages).all()
    with pytest.raises(ValueError, match=r"values: expected an array of numbers, got tensor.*: use tensor.detach\(\)"):
        seat_advantages(**GOOD | {"values": values.requires_grad_()})
    with pytest.raises(ValueError, match=r"values: expected an array of numbers, got tensor.*torch.bf"):
        seat_advantages(**GOOD | {"values": torch.zeros(4, 3, dtype=torch.bfloat16)})


@pytest.mark.parametrize("players", [2, 3, 4])
def test_tensors_of_seats_give_tensors_with_the_same_numbers(players):
    torch, rng = pytest.importorskip("torch"), np.random.default_rng(players)
    for _ in range(20):
        rollout = random_rollout(players, rng)
        expected = seat_advantages(*rollout, 0.9, 0.8)
        listed = [list(map(torch.from_numpy, array)) for array in rollout[1:]]
        for others in (map(torch.from_numpy, rollout[1:]), rollout[1:], [a[::-1][::-1] for a in rollout[1:]], listed):
            found = seat_advantages(torch.from_numpy(rollout[0]), *others, 0.9, 0.8)
            for tensor, array in zip(found, expected, strict=True):
                assert tensor.dtype == torch.float32
                assert (tensor.numpy() == array).all()


def test_wrong_tensors_are_refused():
    torch = pytest.importorskip("torch")
    good = {name: torch.from_numpy(array) for name, array in GOOD.items()}
    for name, wrong, message in (
        ("seats", torch.full((4, 3), 2), r"seats: from 2 to 2: expected 0..1, as `rewards` has"),
        ("seats", torch.zeros(4, 3), "seats: expected an array of integers"),
        ("seats", torch.zeros(4, 3, dtype=torch.bool), "seats: expected an array of integers"),
        ("values", torch.zeros(5, 3), r"values: expected shape \(4, 3\), got \(5, 3\)"),
        ("values", torch.zeros(4, 3, dtype=torch.complex64), "values: expected an array of numbers"),
        ("values", torch.zeros(4, 3, requires_grad=True), r"values: expected an array of numbers.*use tensor.detach"),
        ("values", None, "values: expected an array of numbers, got None"),
        ("rewards", [[1], [1, 2]], "rewards: expected an array of numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            seat_advantages(**good | {name: wrong})

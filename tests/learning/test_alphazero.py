"""Test AlphaZero: searched games and their targets, losses, and resumed runs."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from learning.searches import LowestSlide, StoneEvaluator, some_search, with_network, with_playouts

from ninetka_agents.ninetka.features import make_features
from ninetka_agents.ninetka.network import Network, NetworkConfig
from ninetka_agents.outputs import MASKED, Outputs, forward_states
from ninetka_agents.search.gumbel import GumbelOptions, GumbelSearch
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.rules import MOVEMENT, STATE_DTYPE, Phase
from ninetka_train.learning.alphazero import (
    TrainState,
    learn,
    losses,
    make_examples,
    minibatches_of,
    new_state,
    play_round,
    train_alphazero,
)
from ninetka_train.learning.config import TrainConfig, check_config
from ninetka_train.learning.losses import UNKNOWN_OWNER, owner_losses, policy_losses
from ninetka_train.learning.samples import (
    Samples,
    draw,
    join,
    read_samples,
    relative_seats,
    relative_values,
    take,
    write_samples,
)
from ninetka_train.learning.selfplay import policy_targets


def small(**changes: object) -> TrainConfig:
    """Return a configuration of four small rounds: two play games by playouts, two by the network."""
    settings = {
        "rounds": 4, "playout_rounds": 2, "games": 1, "playouts": 8, "simulations": 4, "leaf_playouts": 2,
        "share": 0.4, "value_share": 0.1, "exact_nodes": 200, "window": 2, "steps": 6, "minibatch": 32,
        "microbatch": 16,
    }  # fmt: skip
    values = {
        "algorithm": "alphazero",
        "players": [2, 3, 4],
        "threads": 1,
        "device": "cpu",
        "bf16": False,
        "checkpoint_every": 1,
        "network": {"width": 8, "blocks": 1},
        "alphazero": settings,
    }
    return check_config(values | changes)


def same(one: Samples, other: Samples) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))


@pytest.fixture(scope="module")
def searched() -> dict[str, Samples]:
    """Return the samples of each kind of search, which played one game each with 2, 3 and 4 players."""
    players = np.array([2, 3, 4])
    return {
        "playouts": with_playouts(players, 4, 8, power=2.0),
        "network": with_network(some_search(8), players, 4, share=1.0, value_mix=0.5),
    }


@pytest.mark.parametrize("source", ["playouts", "network"])
def test_samples_have_legal_policies_and_outcomes(searched, source):
    samples = searched[source]
    assert ((samples.policy > 0) <= (make_features(samples.games).mask > 0)).all()
    np.testing.assert_allclose(samples.policy.astype(float).sum(1), 1, atol=4e-3)
    assert samples.values.shape == (len(samples.games), 5)
    np.testing.assert_allclose(samples.values.sum(1), 1, atol=1e-4)
    assert (samples.values >= -1e-6).all()
    assert (samples.values[samples.games["num_players"] == 2, 2:] == 0).all()
    for players in (2, 3, 4):
        mine = samples.games["num_players"] == players
        if source == "playouts":
            assert np.bincount(samples.games["phase"][mine])[:2].tolist() == [9, 36]
        assert len(np.unique(samples.owners[mine], axis=0)) == 1


def test_final_owners_and_winner_fit_the_last_position(searched):
    samples = searched["playouts"]
    for players in (2, 3, 4):
        game = Game(samples.games[samples.games["num_players"] == players][-1:].copy())
        winners = []
        for action in game.legal_actions():
            after = game.copy()
            after.play(int(action))
            if after.is_over:
                winners.append((after.winner(), after.section_owners().tolist()))
        row = np.flatnonzero(samples.games["num_players"] == players)[-1]
        assert (int(samples.values[row].argmax()), samples.owners[row].tolist()) in winners


def test_searched_games_repeat_and_do_not_depend_on_threads(searched):
    players = np.array([2, 3, 4])
    assert same(searched["playouts"], with_playouts(players, 4, 8, power=2.0, threads=2))
    again = with_network(some_search(8), players, 4, share=1.0, value_mix=0.5)
    assert same(searched["network"], again)
    assert not same(searched["playouts"], with_playouts(players, 5, 8, power=2.0))


@pytest.mark.slow
def test_few_positions_are_searched_and_all_of_the_games_share_one_winner():
    samples = with_network(some_search(2), np.full(40, 3), 1000, share=0.1)
    assert 0.02 < len(samples.games) / (40 * 70) < 0.08  # a tenth of the positions after the random ply
    assert set(np.unique(samples.values)) == {0, 1}


def test_positions_without_a_search_have_only_value_targets():
    samples = with_network(some_search(2), np.full(40, 3), 0, share=0.1, value_share=0.3)
    searched = samples.policy.any(1)
    assert 0.15 < searched.mean() < 0.35
    assert set(np.unique(samples.values)) == {0, 1}
    network, settings = Network(NetworkConfig(width=8, blocks=1)), small().alphazero

    def parts(chosen: np.ndarray) -> torch.Tensor:
        examples = make_examples(network, Samples(*(array[chosen] for array in samples)))
        return losses(network(examples.inputs), examples, settings, (searched[chosen].mean(), 1.0))[1]

    policy, value = [0, 4], [1, 2]
    everything, some, none = parts(np.full(len(searched), True)), parts(searched), parts(~searched)
    torch.testing.assert_close(everything[policy], some[policy])
    assert none[policy].tolist() == [0, 0]
    share = searched.mean()
    torch.testing.assert_close(everything[value], share * some[value] + (1 - share) * none[value])


def test_positions_without_values_do_not_change_value_owner_and_score_losses():
    samples = with_network(some_search(2), np.full(12, 3), 0, share=0.1, value_share=0.3)
    network, settings = Network(NetworkConfig(width=8, blocks=1)), small().alphazero
    left_out = np.arange(len(samples.games)) % 3 == 0

    def endings(some: Samples, share: float) -> list[float]:
        examples = make_examples(network, some)
        return losses(network(examples.inputs), examples, settings, (1.0, share))[1][1:4].tolist()

    rest = endings(Samples(*(array[~left_out] for array in samples)), 1.0)
    without = samples._replace(values=np.where(left_out[:, None], np.float32(0), samples.values))
    assert endings(without, float(1 - left_out.mean())) == pytest.approx(rest, rel=1e-5)


def test_microbatches_do_not_change_gradients():
    samples = with_network(some_search(2), np.full(12, 3), 0, share=0.1, value_share=0.3)
    samples.values[::5] = 0  # some positions have no value target

    def learned(microbatch: int) -> torch.Tensor:
        settings = {"rounds": 1, "steps": 1, "minibatch": 32, "microbatch": microbatch, "warm_up": 1, "turned": False}
        state = new_state(small(alphazero=settings))
        state.window = [samples]
        learn(state)
        return torch.cat([p.grad.flatten() for p in state.network.parameters()])

    torch.testing.assert_close(learned(4), learned(32), rtol=1e-3, atol=1e-5)


def test_owners_are_not_learned_beyond_the_board():
    logits = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    owners = torch.tensor([[0, 1, 2, 0, UNKNOWN_OWNER], [1, 1, 0, 2, 2]])
    beyond = torch.tensor([[MASKED, MASKED, 0.0]]).expand(2, 3, 3)
    padded = torch.cat([logits, beyond], 1), torch.cat([owners, torch.full((2, 3), 2)], 1)
    outputs = [Outputs(None, None, each) for each in (logits, padded[0])]
    torch.testing.assert_close(owner_losses(outputs[0], owners), owner_losses(outputs[1], padded[1]))


def test_policy_losses_by_hand():
    """Every position has the probabilities 0.5, 0.2, 0.2, 0.1.

    The targets are a searched policy, two winning moves, one winning move, and no target.
    """
    logits = torch.tensor([[0.5, 0.2, 0.2, 0.1]] * 4).log()
    policy = torch.tensor([[0.0, 0.25, 0.75, 0], [1, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    expected = -np.log([0.2, 0.7, 0.1, 1])
    np.testing.assert_allclose(policy_losses(logits, policy), expected, atol=1e-6)


def test_gradients_of_winning_moves_are_proportional_to_their_probabilities():
    logits = torch.tensor([[1.0, 0.0, 0.5, MASKED]], requires_grad=True)
    policy_losses(logits, torch.tensor([[1.0, 1, 0, 0]])).sum().backward()
    gradient = logits.grad[0]
    chances = logits.detach().softmax(-1)[0]
    torch.testing.assert_close(gradient[0] / chances[0], gradient[1] / chances[1])
    assert gradient[:2].max() < 0 < gradient[2]
    assert gradient[3] == 0


def test_games_without_a_searched_position_are_skipped():
    nothing = with_network(some_search(2), np.array([2, 3]), 0, share=1e-9)
    assert [len(array) for array in nothing] == [0, 0, 0, 0, 0]
    something = with_network(some_search(2), np.array([2, 3]), 0, share=1.0)
    assert set(draw([nothing, something], 50, np.random.default_rng(0))) <= set(range(len(something.games)))
    with pytest.raises(ValueError, match=r"alphazero\.share"):
        draw([nothing], 1, np.random.default_rng(0))


def test_a_network_game_ends_by_its_most_probable_moves():
    """All samples are later than the last randomly drawn move, so each game can be replayed to its end."""
    search = some_search(2)
    samples = with_network(search, np.array([2, 3, 4]), 1, share=1.0)
    for row in np.linspace(0, len(samples.games) - 1, 12).astype(int):
        games = samples.games[row : row + 1].copy()
        while not (game := Game(games)).is_over:
            game.play(int(search.evaluate(games)[0].argmax()))
        assert samples.values[row].argmax() == game.winner()
        assert samples.owners[row].tolist() == game.section_owners().tolist()


def test_a_game_with_slides_ends_by_most_probable_placements_and_the_agents_slides():
    search = some_search(2)
    samples = with_network(search, np.array([2, 3, 4]), 1, share=0.5, value_share=0.5, slide_playouts=8)
    for row in np.linspace(0, len(samples.games) - 1, 20).astype(int):
        games = samples.games[row : row + 1].copy()
        while not (game := Game(games)).is_over:
            sliding = game.phase == Phase.MOVEMENT
            actions = LowestSlide().act(games, None) if sliding else search.evaluate(games)[0].argmax(1)
            game.play(int(actions[0]))
        assert samples.values[row].argmax() == game.winner()
        assert samples.owners[row].tolist() == game.section_owners().tolist()


def test_policy_targets_are_guided_visits_for_slides_and_gumbel_policies_for_placements():
    samples = with_network(some_search(2), np.array([2, 3, 4, 4]), 1, share=1.0, slide_playouts=8)
    sliding = samples.games["phase"] == MOVEMENT
    assert 10 < sliding.sum() < len(sliding) - 10
    visits = samples.policy * 8  # playouts
    whole = (visits == visits.round()).all(1)
    assert whole[sliding].all()
    assert not whole[~sliding].all()


def evaluated_games(**changes: object) -> Samples:
    players = np.array([2, 3, 4, 4, 2, 3])
    return with_network(some_search(2), players, 1, share=0.3, value_share=0.4, slide_playouts=8, **changes)


@pytest.mark.slow
def test_placements_learn_the_values_of_the_search_at_the_first_slide():
    """Slides after the first have the winner as value target. Without this search, only the samples' values differ."""
    search, plain, samples = some_search(2), evaluated_games(), evaluated_games(first_slide_playouts=1)
    firsts = 0
    for row, (values, games) in enumerate(zip(samples.values, samples.games[:, None].copy(), strict=True)):
        game = Game(games)
        while game.phase != Phase.MOVEMENT:
            game.play(int(search.evaluate(game.records)[0].argmax()))
        slid = game.counts().any()
        firsts += samples.games[row]["phase"] == MOVEMENT and not slid
        if not slid:
            assert values[:4].tolist() == StoneEvaluator().run(game.records, None).values[0].tolist()
            assert values[4] == 0
        else:
            assert values.tolist() == plain.values[row].tolist()
    assert firsts > 0
    assert plain.values.max(1).min() == 1
    assert same(plain._replace(values=samples.values), samples)


def test_the_solver_values_first_slides_of_two_players():
    plain, samples = evaluated_games(exact_nodes=2000), evaluated_games(exact_nodes=2000, first_slide_playouts=1)
    for_two, placing = samples.games["num_players"] == 2, samples.games["phase"] != MOVEMENT
    assert samples.values[for_two].tobytes() == plain.values[for_two].tobytes()
    assert (samples.values[~for_two & placing].max(1) < 1).all()


def test_slide_share_keeps_fewer_slides():
    kept = [
        with_network(
            some_search(2), np.full(60, 3), 0, share=0.01, value_share=0.5, slide_playouts=8, slide_share=share
        )
        for share in (1.0, 0.25)
    ]
    (all_placed, all_slid), (placed, slid) = (np.bincount(s.games["phase"] == MOVEMENT) for s in kept)
    assert 0.8 < placed / all_placed < 1.25
    assert 0.15 < slid / all_slid < 0.35


@pytest.mark.parametrize("mix", [0.0, 0.3, 1.0])
def test_targets_are_the_searchs_policy_and_a_mix_of_its_values_and_the_winner(mix):
    network = some_search(8)
    search = GumbelSearch(network.evaluate, GumbelOptions(16, gumbel_scale=0, playouts=0))
    plain = with_network(search, np.array([2, 3, 4]), 7, share=1.0, value_mix=0.0)
    samples = with_network(search, np.array([2, 3, 4]), 7, share=1.0, value_mix=mix)
    found = search.run(samples.games, np.random.default_rng(0))
    np.testing.assert_allclose(samples.policy, found.policy, atol=2e-3)
    mixed = mix * np.pad(found.values, ((0, 0), (0, 1))) + (1 - mix) * plain.values
    np.testing.assert_allclose(samples.values, mixed, atol=1e-4)
    assert set(np.unique(plain.values)) == {0, 1}  # the winner, see test_a_network_game_ends_by_its_most_probable_moves


def test_policy_targets_sum_to_one():
    visits = np.array([[0, 1, 3], [65535, 0, 0]], np.uint16)
    np.testing.assert_allclose(policy_targets(visits, 2.0), [(0, 0.1, 0.9), (1, 0, 0)], atol=1e-3)


def test_targets_are_relative_to_the_mover():
    """Values are rotated, not negated; the value of a draw stays last. Movers: seats 1 of 3, 1 of 2, 3 of 4, 3 of 4."""
    games = np.zeros(4, STATE_DTYPE)
    games["num_players"], games["to_move"] = (3, 2, 4, 4), (1, 1, 3, 3)
    values = np.array([[0.5, 0.3, 0.1, 0, 0.1], [1, 0, 0, 0, 0], [0.1, 0.2, 0.3, 0.4, 0], [0, 0, 0, 1, 0]], np.float32)
    owners = np.tile(np.arange(-1, 8, dtype=np.int8) % 2, (4, 1))
    owners[:, 0] = -1
    samples = Samples(games, np.zeros((4, 122), np.float16), values, owners, np.zeros((4, 4), np.float32))
    np.testing.assert_allclose(
        relative_values(samples),
        [[0.3, 0.1, 0.5, 0, 0.1], [0, 1, 0, 0, 0], [0.4, 0.1, 0.2, 0.3, 0], [1, 0, 0, 0, 0]],
    )
    assert relative_seats(samples)[:, :3].tolist() == [[4, 2, 0], [4, 1, 0], [4, 1, 2], [4, 1, 2]]


def test_positions_are_taken_from_all_rounds(searched):
    window = [searched["playouts"], searched["network"]]
    total = sum(len(samples.games) for samples in window)
    everything = take(window, np.arange(total))
    assert same(everything, join(window))
    assert set(draw(window, 5000, np.random.default_rng(0)).tolist()) == set(range(total))


def test_minibatches_that_are_made_ahead_are_the_same(searched):
    def made(ahead: int) -> tuple[list[list[torch.Tensor]], dict[str, object]]:
        state = new_state(small())
        state.window = [searched["playouts"], searched["network"]]
        pieces = [piece for minibatch, *_ in minibatches_of(state, ahead) for piece in minibatch]
        tensors = [[*piece.inputs, piece.policy, piece.values, piece.owners] for piece in pieces]
        return tensors, state.rng.bit_generator.state

    (one, rng), (other, other_rng) = made(0), made(4)
    assert len(one) == 6 * 2
    assert rng == other_rng
    for ours, theirs in zip(one, other, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.slow
def test_the_loss_falls_on_a_fixed_window(searched):
    state = new_state(small(alphazero={"rounds": 1, "steps": 100, "minibatch": 64, "learning_rate": 2e-2}))
    state.window = [searched["playouts"]]
    examples = make_examples(state.network, searched["playouts"])

    def parts() -> list[float]:
        with torch.inference_mode():
            return losses(state.network(examples.inputs), examples, state.config.alphazero, (1.0, 1.0))[1].tolist()

    before = parts()
    learn(state)
    after = parts()
    assert after[0] < before[0] - 0.01
    assert after[1] < before[1] - 0.2
    assert after[2] < before[2] - 0.2
    assert after[4] > before[4]


@pytest.mark.parametrize("killed", [False, True])
def test_an_interrupted_run_gives_the_same_network(tmp_path, killed):
    """Stop a run after its first round with the network. A killed run has no checkpoint of the round and repeats it."""
    whole = train_alphazero(small(), tmp_path / "whole")

    def stop(state: TrainState, log: dict[str, float]) -> None:
        if state.rounds == 3:
            raise KeyboardInterrupt

    config = small(checkpoint_every=2)
    with pytest.raises(KeyboardInterrupt):
        train_alphazero(config, tmp_path / "cut", stop)
    kept = sorted(path.stem for path in (tmp_path / "cut").glob("*.safetensors"))
    assert kept == ["resume-000000000003", "step-000000000002"]
    if killed:  # a killed process writes no checkpoint
        (tmp_path / "cut" / f"{kept[0]}.safetensors").unlink()
    logs = []
    resumed = train_alphazero(config, tmp_path / "cut", lambda state, log: logs.append(log), resume=True)
    assert len(logs) == 2
    assert not resumed.training
    for one, other in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, other)


def test_resuming_skips_damaged_checkpoints(tmp_path):
    whole = train_alphazero(small(), tmp_path)
    newest = sorted(tmp_path.glob("*.safetensors"))
    assert len(newest) == 2
    newest[1].write_bytes(newest[1].read_bytes()[:-1])
    with pytest.warns(
        UserWarning, match=f"{newest[1].name}.*cut short.*resuming from the one before it, {newest[0].name}"
    ):
        resumed = train_alphazero(small(), tmp_path, resume=True)
    for one, other in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, other)
    damaged = sorted((tmp_path / "games").glob("*.npz"))[-1]
    damaged.write_bytes(damaged.read_bytes()[:100])
    with pytest.raises(ValueError, match=damaged.name):
        train_alphazero(small(), tmp_path, resume=True)


def test_a_file_of_samples_that_lacks_an_array_is_named(tmp_path, searched):
    arrays = searched["network"]._asdict()
    del arrays["scores"]
    np.savez_compressed(tmp_path / "short.npz", **arrays)
    with pytest.raises(ValueError, match=r"short\.npz: cannot be read: .*scores"):
        read_samples(tmp_path / "short.npz", STATE_DTYPE)


def test_samples_are_written_whole_or_not_at_all(tmp_path, searched, monkeypatch):
    path = tmp_path / "games" / "round.npz"
    write_samples(path, searched["network"])
    assert same(read_samples(path, STATE_DTYPE), searched["network"])
    before = path.read_bytes()

    def full_disk(file: object, **arrays: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full_disk)
    with pytest.raises(OSError, match="No space"):
        write_samples(path, searched["playouts"])
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_trained_network_evaluates_any_number_of_players():
    network = train_alphazero(small(alphazero={"rounds": 1, "games": 1, "playouts": 4, "steps": 2, "minibatch": 8}))
    games = np.concatenate([Game.new(players).records for players in (2, 3, 4)])
    with torch.inference_mode():
        outputs = forward_states(network, games)
    assert outputs.logits.isfinite().all()
    torch.testing.assert_close(outputs.values.sum(1), torch.ones(3))


@pytest.mark.parametrize("overlap", [False, True])
def test_overlapping_rounds_are_played_with_the_previous_rounds_weights(overlap):
    config = small(alphazero={"rounds": 4, "games": 1, "playouts": 4, "steps": 2, "minibatch": 8, "overlap": overlap})
    played, learned, staleness = [], [weights_of(new_state(config))], []

    def play(state: TrainState) -> tuple[Samples, dict[str, float]]:
        played.append((state.rounds, weights_of(state)))
        return play_round(state)

    def report(state: TrainState, log: dict[str, float]) -> None:
        learned.append(weights_of(state))
        staleness.append(log["staleness"])

    train_alphazero(config, report=report, play=play)
    assert len(set(learned)) == 5
    assert staleness == ([0, 1, 1, 1] if overlap else [0, 0, 0, 0])
    assert played == [(number, learned[number - staleness[number]]) for number in range(4)]


def weights_of(state: TrainState) -> bytes:
    return b"".join(parameter.detach().numpy().tobytes() for parameter in state.network.parameters())


def test_an_error_in_an_overlapping_round_ends_the_run():
    def play(state: TrainState) -> tuple[Samples, dict[str, float]]:
        if state.rounds == 2:
            raise RuntimeError("no more games")
        return play_round(state)

    config = small(alphazero={"rounds": 4, "games": 1, "playouts": 4, "steps": 2, "minibatch": 8, "overlap": True})
    with pytest.raises(RuntimeError, match="no more games"):
        train_alphazero(config, play=play)

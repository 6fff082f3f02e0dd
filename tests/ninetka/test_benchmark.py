"""Tests of the benchmark: the protocol never changes, games repeat exactly, and cards and pages are correct.

Whole runs use a small protocol, with weak opponents and few openings.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scipy.optimize import minimize_scalar
from typer.testing import CliRunner

from ninetka_agents.agent import Forfeit, as_agent, make_agent
from ninetka_agents.ninetka.solver.solver import solve
from ninetka_env.core.registry import load_variant
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.rules import Phase
from ninetka_train import cli
from ninetka_train.judging.fixed_pool import FixedPoolRating
from ninetka_train.judging.ratings import ELO_PER_NAT, PRIOR_WEIGHT
from ninetka_train.ninetka.benchmark import protocol as protocol_module
from ninetka_train.ninetka.benchmark import runner
from ninetka_train.ninetka.benchmark.card import card_json, figures_of, read_card
from ninetka_train.ninetka.benchmark.leaderboard import (
    interquartile_mean,
    leaderboard_page,
    rating_text,
    read_cards,
)
from ninetka_train.ninetka.benchmark.make_protocol import (
    OPENINGS_PER_ROUND,
    ROUNDS,
    draw_openings,
    make_protocol,
    protocol_json,
    rate_opponents,
    same_rounds,
    with_canaries,
)
from ninetka_train.ninetka.benchmark.matches import games_sha256, make_round, play_canary, won_placements
from ninetka_train.ninetka.benchmark.protocol import (
    FULL,
    QUICK,
    Opponent,
    load_protocol,
    positions_sha256,
    protocol_of,
)
from ninetka_train.ninetka.benchmark.report import print_card
from ninetka_train.ninetka.benchmark.runner import Callbacks, resumed_card, run_benchmark, start_card

SHA256 = {1: "c1089723e786bf11c2e951ef0606a998a728dd4fe6c5fb67bd16a7f32036a963"}
"""The protocols, which never change."""
PLAYERS = (2, 3, 4)
OPENINGS = 5
"""Openings of a round of the small protocol."""
STRONGEST = "mcts:simulations=10"
"""The strongest opponent of the small protocol."""


@pytest.fixture(scope="module")
def small():
    """A protocol with weak opponents, one of which only the full tier has, and rounds of 5 openings."""
    opponents = (
        Opponent("random", same_rounds(1, 2)),
        Opponent("maxn", {**same_rounds(1, 1), FULL: {"2": 2, "3": 1, "4": 1}}),
        Opponent(STRONGEST, {**same_rounds(0, 0), FULL: {"2": 2, "3": 1, "4": 1}}),
    )
    protocol = replace(
        load_protocol(),
        opponents=opponents,
        ratings={str(players): {"random": -200.0, "maxn": 0.0, STRONGEST: 50.0} for players in PLAYERS},
        openings_per_round={str(players): OPENINGS for players in PLAYERS},
        placement_opponent="maxn",
        placement_rounds={QUICK: 1, FULL: 1},
        placement_nodes=100_000,
        canary_openings=2,
    )
    return with_canaries(protocol)


@pytest.fixture(scope="module")
def card(small):
    return run_benchmark("maxn", protocol=small)


@pytest.fixture
def stored(small, tmp_path, monkeypatch):
    """Store the small protocol as protocol 1, and work in an empty folder."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "protocol-1.json").write_text(protocol_json(small), encoding="utf-8")
    monkeypatch.setattr(protocol_module, "DATA", folder)
    load_protocol.cache_clear()
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    yield small
    load_protocol.cache_clear()


def results_of(card):
    """The parts of a card that do not depend on time and machine."""
    values = asdict(card)
    for one in values["rounds"]:
        del one["seconds"]
    del values["milliseconds_alone"], values["date"], values["machines"]
    return values


# The protocol


@pytest.mark.parametrize("version", sorted(SHA256))
def test_a_protocol_never_changes(version):
    protocol = load_protocol(version)
    assert protocol.version == version
    assert protocol.sha256 == SHA256[version], "make a new protocol instead"
    assert protocol_of(json.loads(protocol_json(protocol))).sha256 == protocol.sha256


def test_the_openings_are_legal_and_different_and_follow_from_the_seed():
    protocol = load_protocol()
    for players, count in OPENINGS_PER_ROUND.items():
        openings = protocol.openings_of(players, 0, ROUNDS * count)
        assert openings.shape == (ROUNDS * count, 4)
        assert len(np.unique(openings, axis=0)) == len(openings)
        assert (draw_openings(players, len(openings), protocol.seed) == openings).all()
        assert (protocol.round_openings(players, 1) == openings[count : 2 * count]).all()
        for opening in openings:
            game = Game.start(load_variant(f"ninetka:num_players={players}"))
            for action in opening.tolist():
                assert action in game.legal_actions()
                game.play(action)


def test_seeds_differ_between_all_rounds():
    protocol = load_protocol()
    steps = protocol.steps_of(FULL)
    assert len({protocol.seed_of(*step) for step in steps}) == len(steps)
    assert set(protocol.steps_of(QUICK)) < set(steps)
    assert protocol.num_games(QUICK) == 900
    assert protocol.num_games(FULL) == 9_480


def test_the_positions_are_those_of_the_protocol():
    protocol = load_protocol()
    assert {str(players): positions_sha256(players) for players in PLAYERS} == protocol.positions


@pytest.mark.parametrize("num_players", PLAYERS)
def test_canary_games_repeat_in_batches_of_any_size(num_players):
    protocol = load_protocol()
    for spec in ("random", "maxn", "mcts:simulations=20", "mcts:simulations=200"):
        for batch in (1, 7, 256) if spec == "mcts:simulations=20" else (256,):
            results = play_canary(replace(protocol, batch=batch), spec, num_players)
            assert games_sha256(results) == protocol.canaries[str(num_players)][spec], (spec, batch)


@pytest.mark.exhaustive
def test_the_protocol_is_that_of_its_constants():
    """All canary games, and everything but the ratings, follow from the code."""
    protocol = load_protocol()
    assert replace(make_protocol(rounds=0), ratings=protocol.ratings) == protocol


def test_games_repeat_on_any_number_of_threads(small):
    hashes = set()
    for threads in (1, 2):
        agent = make_agent(f"mcts:simulations=30,threads={threads}")
        hashes.add(games_sha256(make_round(small, agent, "maxn", 3, 1).play()))
    assert len(hashes) == 1


def test_a_round_has_the_agent_in_every_seat_after_every_opening(small):
    results = make_round(small, make_agent("random"), "maxn", 3, 1).play()
    assert (results.actions[::3, :4] == small.openings_of(3, OPENINGS, OPENINGS)).all()
    for group in results.schedule.seatings.reshape(OPENINGS, 3, 3):
        assert (group == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]).all()


def test_placements_are_judged_by_the_solver(small):
    results = make_round(small, make_agent("maxn"), "maxn", 2, 0).play()
    found = won_placements(small, results)
    assert sum(won is not None for won in found) >= OPENINGS
    for game, won in enumerate(found):
        state = Game.start(load_variant("ninetka"))
        for action in results.actions[game].tolist():
            if state.phase == Phase.MOVEMENT:
                break
            state.play(action)
        if won is not None:
            winner = solve(state, moves=False).winner
            assert won == (results.schedule.seatings[game, winner] == 0)


class Resigning:
    """Resigns in seat 0 before its first move, and plays random moves in other seats."""

    name = "resigning"

    def act(self, games, rng):
        return make_agent("random").act(games, rng)

    def start(self, game):
        return ResigningSeat(game.copy())


class ResigningSeat:
    phases = (Phase.NEUTRAL, Phase.PLACEMENT)

    def __init__(self, game):
        self.game = game

    def act(self, rng):
        if self.game.to_move == 0 and self.game.phase in self.phases:
            raise Forfeit("resigned")
        return int(rng.choice(self.game.legal_actions()))

    def observe(self, action):
        self.game.play(action)

    def close(self):
        pass


def test_placements_of_a_resigned_game_are_lost(small):
    results = make_round(small, as_agent(Resigning()), "maxn", 2, 0).play()
    found = won_placements(small, results)
    resigned = sorted(results.events)
    assert len(resigned) >= OPENINGS - 1
    assert [found[game] for game in resigned] == [False] * len(resigned)
    card = run_benchmark(Resigning(), protocol=small)
    assert card.is_complete(small)
    assert card.agent == "resigning"


def test_placements_before_a_resignation_at_the_first_slide_are_judged(small, monkeypatch):
    monkeypatch.setattr(ResigningSeat, "phases", (Phase.MOVEMENT,))
    results = make_round(small, as_agent(Resigning()), "maxn", 2, 0).play()
    found = won_placements(small, results)
    monkeypatch.setattr(ResigningSeat, "phases", ())
    played = make_round(small, as_agent(Resigning()), "maxn", 2, 0).play()
    assert len(results.events) == OPENINGS
    assert found == won_placements(small, played)


def test_opponents_are_rated_by_their_games(small):
    """With two agents and two players, the rating maximises the likelihood of the games, with a weak prior."""
    rounds = [make_round(small, make_agent("random"), "maxn", 2, number).play() for number in (0, 1)]
    won, games = sum(results.shares[:, 0].sum() for results in rounds), 4 * OPENINGS

    def loss(nats):
        chance = 1 / (1 + np.exp(-nats))
        return PRIOR_WEIGHT * nats**2 / 2 - won * np.log(chance) - (games - won) * np.log(1 - chance)

    two = replace(small, opponents=small.opponents[:2])
    rated = rate_opponents(two, 2, 2, lambda line: None)
    assert rated["maxn"] == 0
    assert rated["random"] == pytest.approx(ELO_PER_NAT * minimize_scalar(loss).x, abs=0.1)


# Cards


def test_a_card_has_all_results_of_a_tier(card, small):
    assert card.is_complete(small)
    assert card.is_official
    assert [one.step for one in card.rounds] == small.steps_of(QUICK)
    assert not card.missing_steps(small)
    for one in card.rounds:
        results = make_round(small, make_agent("maxn"), one.opponent, one.players, one.number).play()
        assert one.wins == (one.players * results.shares[:, 0].reshape(OPENINGS, -1).mean(1)).tolist()
        assert one.sha256 == games_sha256(results)
        assert one.moves == results.times.moves[0].sum()
        assert (one.won_placements is not None) == ((one.players, one.opponent) == (2, "maxn"))


def test_the_figures_follow_from_the_rounds(card, small):
    figures = figures_of(card, small)
    for players, one in figures.players.items():
        assert one.games == 2 * OPENINGS * players
        for spec, found in one.shares.items():
            (wins,) = [each.wins for each in card.rounds if (each.players, each.opponent) == (players, spec)]
            assert (found.hits, found.cases) == (sum(wins), OPENINGS * players)
        assert one.shares["maxn"].share == pytest.approx(1 / players)  # against itself
        assert one.errors.positions == (2000 if players == 2 else 500)
        assert one.errors.wins_given_away <= min(one.errors.errors, one.errors.wins)
    judged = [won for one in card.rounds for won in one.won_placements or () if won is not None]
    assert (figures.placements.hits, figures.placements.cases) == (sum(judged), len(judged))
    assert figures.judged == 2 * OPENINGS
    assert figures.milliseconds > 0


def test_a_card_is_read_as_it_was_written(card, small, stored, tmp_path):
    path = Path("card.json")
    path.write_text(card_json(card, small), encoding="utf-8")
    assert read_card(path) == card
    values = json.loads(path.read_text("utf-8"))
    assert values["figures"]["players"]["2"]["errors"] == card.positions[0].rate
    assert values["games_sha256"] == card.games_sha256
    path.write_text(json.dumps({**values, "from a later version": 1}), encoding="utf-8")
    assert read_card(path) == card


def test_a_stopped_run_is_continued_with_the_same_results(card, small, stored):
    class StopError(Exception):
        pass

    def stop(latest):
        if len(latest.rounds) == 2:
            raise StopError

    started = start_card("maxn", QUICK, small)
    with pytest.raises(StopError):
        run_benchmark("maxn", card=started, protocol=small, callbacks=Callbacks(on_result=stop))
    assert not started.is_complete(small)
    Path("card.json").write_text(card_json(started, small), encoding="utf-8")
    again = resumed_card(read_card(Path("card.json")), start_card("maxn", QUICK, small))
    done = []
    finished = run_benchmark("maxn", card=again, protocol=small, callbacks=Callbacks(on_games=done.append))
    assert results_of(finished) == results_of(card)
    assert min(done) > 4 * OPENINGS  # the games of two rounds are not played again
    assert max(done) == small.num_games(QUICK)


def test_a_quick_card_becomes_a_full_one(card, small):
    again = resumed_card(card, start_card("maxn", FULL, small))
    full = run_benchmark("maxn", FULL, card=again, protocol=small)
    assert full.is_complete(small)
    assert full.rounds[: len(card.rounds)] == card.rounds
    assert sorted(one.step for one in full.rounds) == sorted(small.steps_of(FULL))
    straight = run_benchmark("maxn", FULL, protocol=small)
    assert straight.games_sha256 == full.games_sha256 != card.games_sha256
    assert figures_of(straight, small).players == figures_of(full, small).players
    with pytest.raises(ValueError, match="of the tier full, which cannot be continued as quick"):
        resumed_card(full, start_card("maxn", QUICK, small))
    with pytest.raises(ValueError, match="its agent: maxn, here random: write another file"):
        resumed_card(full, start_card("random", FULL, small))
    with pytest.raises(ValueError, match="its files: x 0 there or here only: write another file"):
        resumed_card(replace(full, files=[("x", "0")]), start_card("maxn", FULL, small))
    older = replace(full, versions={**full.versions, "numpy": "1.0"})
    with pytest.raises(ValueError, match=r"its versions: numpy 1.0, here \d"):
        resumed_card(older, start_card("maxn", FULL, small))
    with pytest.raises(ValueError, match="card: of maxn, tier full: expected one of maxn, tier quick"):
        run_benchmark("maxn", QUICK, card=full, protocol=small)


def test_what_differs_from_the_protocol_makes_a_card_unofficial(small):
    canaries = {**small.canaries, "3": {**small.canaries["3"], "maxn": "0" * 64}}
    positions = {**small.positions, "4": "0" * 64}
    changed = replace(small, canaries=canaries, positions=positions, placement_canary="0" * 64)
    card = run_benchmark("random", protocol=changed)
    assert not card.is_official
    assert card.differences == ["games of maxn, 3 players", "judgements of placements", "positions of 4 players"]


def test_the_card_names_the_files_of_an_agent(small, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from ninetka_agents.checkpoint import shipped_network

    path = shipped_network()
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    for spec in ("net", "phases:placement=[net:simulations=4],movement=maxn"):
        assert start_card(spec, QUICK, small).files == [(path.name, digest)]
    assert start_card("maxn", QUICK, small).files == []
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "failing_agent.py").write_text(FAILING, encoding="utf-8")
    digest = hashlib.sha256(FAILING.encode()).hexdigest()
    assert start_card("python:failing_agent:Failing", QUICK, small).files == [("failing_agent.py", digest)]
    agent = Resigning()
    agent.files = [str(path)]
    assert [name for name, _ in start_card(agent, QUICK, small).files] == [path.name]
    agent.name = " "
    with pytest.raises(ValueError, match="agent: its name is empty"):
        start_card(agent, QUICK, small)


@pytest.mark.parametrize(
    ("spec", "is_timed"),
    [
        ("mcts:seconds=0.1", True),
        ("mcts:threads=1,seconds=.5", True),
        ("phases:placement=[mcts:seconds=1],movement=maxn", True),
        ("mcts:seconds=0", False),
        ("mcts:seconds=0.0,simulations=5", False),
        ("maxn", False),
    ],
)
def test_agents_with_a_time_limit_are_marked(spec, is_timed, small):
    assert start_card(spec, QUICK, small).is_timed == is_timed


def change(values, *path, value):
    for key in path[:-1]:
        values = values[key]
    values[path[-1]] = value


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("tier",), "long", "tier='long': expected one of 'quick', 'full'"),
        (("protocol",), 2, "version=2: expected one of 1"),
        (("protocol",), "x", "protocol: Input should be a valid integer"),
        (("protocol_sha256",), "", "protocol_sha256: expected "),
        (("rounds", 1, "opponent"), "random", "round 0 of 2 players against 'random': it is there twice"),
        (("rounds", 1, "opponent"), "maxn:depth=3", "the tier has no such round"),
        (("rounds", 1, "number"), 7, "the tier has no such round"),
        (("agent",), " ", "agent: expected a spec"),
        (("rounds", 0, "wins"), [1, 1], "expected the wins after each of 5 openings, got 2"),
        (("rounds", 0, "wins"), [1, 1, 1, 1, 3], "wins: expected 0 to 2 after each opening"),
        (("rounds", 0, "wins"), [1, 1, 1, 1, float("nan")], "wins: expected 0 to 2"),
        (("rounds", 0, "seconds"), -1, "moves or seconds: out of range"),
        (("rounds", 0, "moves"), 10**400, "moves or seconds: out of range"),
        (("rounds", 0, "won_placements"), [True] * 10, "won_placements: expected values for 0 games"),
        (("rounds", 1, "won_placements"), None, "won_placements: expected values for 10 games"),
        (("positions", 0, "players"), 3, "expected each number of players once"),
        (("positions", 0, "players"), 5, "positions of 5 players: impossible numbers"),
        (("positions", 0, "rate"), float("inf"), "positions of 2 players: impossible numbers"),
        (("positions", 1, "errors"), 501, "positions of 3 players: impossible numbers"),
        (("positions", 1, "positions"), 10, "positions of 3 players: impossible numbers"),
        (("milliseconds_alone",), -1, "milliseconds_alone=-1: expected a finite number"),
        (("rounds",), None, "rounds: Input should be a valid list"),
    ],
)
def test_a_wrong_card_is_refused_with_one_line(card, small, stored, path, value, message):
    values = json.loads(card_json(card, small))
    change(values, *path, value=value)
    Path("card.json").write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(ValueError, match=r"card\.json: no card of the benchmark: ") as caught:
        read_card(Path("card.json"))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "{}", "[" * 100_000, "\x00", '{"agent": "maxn"}'])
def test_a_file_that_is_no_card_is_refused(stored, text):
    Path("card.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"card\.json: no card of the benchmark: "):
        read_card(Path("card.json"))


def test_the_printed_figures_fit_into_80_columns(card, small):
    console = Console(width=80, record=True, file=io.StringIO())
    print_card(card, small, console)
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 80
    assert re.search(r"Elo +[-+]\d+ +[-+]\d+ +[-+]\d+\n", text)
    assert re.search("% against maxn +50.0 +33.3 +25.0\n", text)
    assert card.games_sha256 in text
    spec = "phases:placement=[/home/x],movement=[b]maxn"  # no markup of the console
    print_card(replace(card, agent=spec), small, console)
    assert " ".join(f"one {spec}, that".split()) in " ".join(console.export_text().split())


# The page


def test_the_page_has_a_table_for_each_number_of_players(card, small, stored):
    cards = Path("cards")
    cards.mkdir()
    other = run_benchmark("random", protocol=small)
    differences = ["games of maxn", "<script>\n\n# Title"]
    unofficial = replace(other, agent="<b>|`x", author="A *b* www.c.d <c>", differences=differences)
    for name, one in {"a b": card, "random": other, "x": unofficial}.items():
        (cards / f"{name}.json").write_text(card_json(one, small), encoding="utf-8")
    (cards / "part.json").write_text(card_json(start_card("brs", QUICK, small), small), encoding="utf-8")
    (cards / "package.json").write_text("{}", encoding="utf-8")
    (cards / "folder.json").mkdir()
    entries, left_out = read_cards(cards)
    assert len(left_out) == 2
    assert left_out[0].startswith("cards/package.json: no card of the benchmark: agent: ")
    assert left_out[1] == "cards/part.json: it is not complete"
    page = leaderboard_page(entries, cards, Path("page.md"))
    for players in PLAYERS:
        assert f"## Protocol 1, {players} players" in page
    rows = [row for row in page.splitlines() if row.startswith("| `")]
    assert len(rows) == 6
    elo = figures_of(card, small).players[2].rating
    assert f"| `maxn` | {rating_text(elo)} |" in rows[0]
    assert rows[0].endswith("| [quick](cards/a%20b.json) |")
    wins = [f"{100 * one.share:.0f}" for one in figures_of(card, small).players[2].shares.values()]
    assert f"| {' / '.join([*wins, '-'])} |" in rows[0]
    for players, full in ((2, 60), (3, 60), (4, 80)):
        assert (
            f"Number of games: {10 * players} (quick), {full} (full). Equal agents win {100 / players:.0f} %." in page
        )
    author = "A &#42;b&#42; www&#46;c&#46;d &#60;c&#62;"
    assert f"- `<b>??x` by {author}: games of maxn, &#60;script&#62; &#35; Title\n" in page
    columns = {row.count("|") for row in page.split("## Protocol 1, 3")[0].splitlines() if row.startswith("|")}
    assert len(columns) == 1


def test_the_leaderboard_in_the_docs_is_that_of_its_cards(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    folder, page = Path("docs/leaderboard"), Path("docs/leaderboard.md")
    entries, left_out = read_cards(folder)
    assert not left_out
    assert all(entry.card.is_official for entry in entries)
    assert leaderboard_page(entries, folder, page) == page.read_text("utf-8"), "ninetka benchmark --page writes it"
    for entry in entries:
        texts = entry.path.read_text("utf-8"), card_json(entry.card, load_protocol(entry.card.protocol))
        stored, computed = (json.loads(text, parse_float=lambda digits: round(float(digits), 6)) for text in texts)
        assert stored == computed, f"{entry.path}: its figures are not those of its rounds"


def written(**cards):
    """Write cards into the current folder, and read them."""
    for name, one in cards.items():
        Path(f"{name}.json").write_text(card_json(one, load_protocol()), encoding="utf-8")
    return read_cards(Path())[0]


def rerun(card, **changes):
    return replace(card, rounds=[replace(one, seconds=2 * one.seconds) for one in card.rounds], **changes)


def test_a_second_run_with_the_same_results_verifies_a_card(card, stored):
    (copied,) = written(first=card, copy=card)
    assert not copied.is_verified
    (entry,) = written(first=card, copy=card, second=rerun(card))
    assert entry.is_verified
    worse = replace(card.positions[0], errors=card.positions[0].errors - 1, wins_given_away=0)
    assert len(written(copy=rerun(card, positions=[worse, *card.positions[1:]]), second=card)) == 2
    forged = replace(card, rounds=[replace(card.rounds[0], wins=[2] * OPENINGS), *card.rounds[1:]])
    assert [entry.is_verified for entry in written(copy=card, second=rerun(forged))] == [False] * 2
    part = rerun(card)
    part.rounds[0] = card.rounds[0]
    assert not any(entry.is_verified for entry in written(copy=card, second=part))
    others = written(copy=rerun(card, author="Ada"), second=rerun(card, files=[("x.py", "0")]))
    assert [entry.is_verified for entry in others] == [False] * 3


def test_the_last_digits_of_rates_do_not_matter_for_verification(card, stored):
    rounded = [replace(one, rate=float(np.nextafter(one.rate, 1))) for one in card.positions]
    (entry,) = written(first=card, second=rerun(card, positions=rounded))
    assert entry.is_verified


def test_a_full_card_replaces_the_quick_one_of_the_same_games(card, small, stored):
    full = run_benchmark("maxn", FULL, protocol=small)
    (entry,) = written(quick=card, full=full)
    assert entry.card.tier == FULL
    other = replace(card, rounds=[replace(card.rounds[0], sha256="0"), *card.rounds[1:]])
    assert len(written(quick=other, full=full)) == 2
    assert len(written(quick=replace(card, author="Ada"), full=full)) == 2


def test_a_stopped_full_run_still_shows_its_quick_part(card, small, stored):
    """All rounds of the quick tier are played first."""

    class StopError(Exception):
        pass

    def stop(latest):
        if len(latest.rounds) == len(card.rounds) + 1:
            raise StopError

    full = start_card("maxn", FULL, small)
    with pytest.raises(StopError):
        run_benchmark("maxn", FULL, card=full, protocol=small, callbacks=Callbacks(on_result=stop))
    (entry,) = written(full=full)
    assert entry.card.tier == QUICK
    assert entry.card.rounds == full.rounds[:-1]
    assert figures_of(entry.card, small).players == figures_of(card, small).players


def test_a_training_method_is_shown_by_the_interquartile_mean(card, small, stored):
    assert interquartile_mean([5.0]) == 5
    assert interquartile_mean([100.0, 1.0, 2.0, 3.0, -100.0]) == 2
    assert interquartile_mean([float(number) for number in range(8)]) == 3.5
    seeds = {f"s{number}": replace(card, agent=f"net:runs/{number}", method="quick | lr") for number in range(5)}
    again = rerun(seeds["s0"], positions=[replace(card.positions[0], rate=0.38), *card.positions[1:]])
    entries = written(**seeds, again=again)  # one network counts once
    assert len(entries) == 6
    same = [entry._replace(card=replace(entry.card, files=[("net", "0")])) for entry in entries]
    assert "| quick &#124; lr | quick | 1 | - | - | - |" in leaderboard_page(same, Path(), Path("page.md"))
    others = [entry._replace(card=replace(entry.card, author=entry.path.stem)) for entry in entries]
    assert "| quick &#124; lr by s1 | quick | 1 | - | - | - |" in leaderboard_page(others, Path(), Path("page.md"))
    page = leaderboard_page(entries, Path(), Path("page.md"))
    elos = [f"{figures_of(card, small).players[players].rating.elo:+.0f}" for players in PLAYERS]
    assert f"| quick &#124; lr | quick | 5 | {' | '.join(elos)} |" in page
    four = [entry for entry in entries if entry.path.stem != "s1"]
    assert "| 4 | - | - | - |" in leaderboard_page(four, Path(), Path("page.md"))


def test_ratings_with_one_bound():
    assert rating_text(FixedPoolRating(None, 900.4, None)) == "above +900"
    assert rating_text(FixedPoolRating(None, None, -12.0)) == "below -12"
    assert rating_text(FixedPoolRating(-0.3, -5.0, 5.2)) == "+0 [-5, +5]"


# The command


def run(*arguments):
    return CliRunner().invoke(cli.app, ["benchmark", *map(str, arguments)])


def test_the_command_writes_a_card_and_a_page(stored):
    result = run("random", "--out", "cards.json", "--author", "Ada", "--method", "none")
    assert result.exit_code == 0, result.output
    assert "wrote cards.json" in result.output
    card = read_card(Path("cards.json"))
    assert (card.agent, card.author, card.method) == ("random", "Ada", "none")
    assert card.is_complete(stored)
    again = run("random", "--out", "cards.json", "--resume", "--author", "Eve")
    assert again.exit_code == 0
    assert again.stderr == ""
    assert read_card(Path("cards.json")) == replace(card, author="Eve")
    before = Path("cards.json").read_bytes()
    refused = run("maxn", "--out", "cards.json")
    assert refused.exit_code == 2
    assert (
        "--out cards.json: the file exists: add --resume to continue its card, or name another file" in refused.stderr
    )
    refused = run("maxn", "--out", "cards.json", "--resume")
    assert "cards.json cannot be continued: its agent: random, here maxn" in refused.stderr
    assert Path("cards.json").read_bytes() == before
    page = run("--page", ".", "--out", "page.md")
    assert page.exit_code == 0, page.output
    assert "| `random` by Eve |" in Path("page.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected an agent, such as ninetka benchmark maxn, or --page FOLDER"),
        (["random", "--tier", "long"], "tier='long': expected one of 'quick', 'full'"),
        (["randm"], "unknown agent 'randm'"),
        (["random", "maxn"], "expected one agent"),
        (["random", "--players", "3"], "the protocol fixes the games: choose --tier quick or --tier full"),
        (["random", "--resume"], "--resume continues with the results in the file of --out: give both"),
        (["random", "--out", "none/x.json"], "cannot write: there is no folder none"),
        (["random", "--out", "broken.json", "--resume"], "broken.json: no card of the benchmark"),
        (["random", "--out", "broken.json"], "--out broken.json: the file exists: add --resume"),
        (["random", "--page", ".", "--out", "x.md"], "AGENT: --page plays no games, so this has no meaning"),
        (["--page", ".", "--tier", "full"], "--tier: --page plays no games"),
        (["--page", "."], "--page needs the file to write: add --out leaderboard.md"),
        (["--page", "none", "--out", "x.md"], "--page none: there is no such folder"),
        (["--page", "empty", "--out", "x.md"], "empty: it has no complete card"),
        (["--page", ".", "--out", "broken.json"], "--out broken.json: the command reads this file"),
    ],
)
def test_wrong_arguments_end_with_one_line(stored, arguments, message):
    Path("broken.json").write_text("{", encoding="utf-8")
    Path("empty").mkdir()
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert Path("broken.json").read_text("utf-8") == "{"
    assert not Path("x.md").exists()


def test_ctrl_c_keeps_the_finished_rounds(card, stored, monkeypatch):
    rounds = []

    def make_round_until_stopped(*arguments):
        rounds.append(arguments)
        if len(rounds) == 4:
            raise KeyboardInterrupt
        return make_round(*arguments)

    monkeypatch.setattr(runner, "make_round", make_round_until_stopped)
    stopped = run("maxn", "--out", "card.json")
    assert stopped.exit_code == 130
    assert stopped.stderr.endswith("stopped after 35 of 90 games: continue with --out card.json --resume\n")
    assert len(read_card(Path("card.json")).rounds) == 3
    monkeypatch.setattr(runner, "make_round", make_round)
    assert run("maxn", "--out", "card.json", "--resume").exit_code == 0
    assert results_of(read_card(Path("card.json"))) == results_of(card)


def test_ctrl_c_without_a_file_says_that_nothing_is_kept(stored, monkeypatch):
    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "make_round", stop)
    stopped = run("random")
    assert stopped.exit_code == 130
    assert stopped.stderr.endswith("stopped after 0 of 90 games: nothing is kept without --out FILE\n")


def test_a_failing_agent_keeps_the_finished_rounds(stored, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "failing_agent.py").write_text(FAILING, encoding="utf-8")
    result = run("python:failing_agent:Failing", "--out", "card.json")
    assert result.exit_code == 1
    assert "stopped after 20 of 90 games: continue with --out card.json --resume\n" in result.stderr
    assert re.search("error: game \\d+: agent .*: RuntimeError: three players are too many\n$", result.stderr)
    assert len(read_card(Path("card.json")).rounds) == 2


FAILING = """
from ninetka_agents.agent import RandomAgent

class Failing(RandomAgent):
    fails = False

    def act(self, games, rng):
        self.fails |= games["num_players"][0] == 3 and len(games) > 2 and games["phase"][0] == 1
        if self.fails:
            raise RuntimeError("three players are too many")
        return super().act(games, rng)
"""

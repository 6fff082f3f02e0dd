"""Test ratings of a pool, strength curves and gates: games, files and errors."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from ninetka_agents import make_agent
from ninetka_train.cli import app
from ninetka_train.judging.arena import make_match, play_games
from ninetka_train.judging.curve import play_points, with_budget
from ninetka_train.judging.evaluate import summarise
from ninetka_train.judging.ratings import default_pool, wilson_interval
from ninetka_train.judging.ratings_page import ratings_page

pytestmark = pytest.mark.slow

GO = "go:komi=0.5,size=5"


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


# The pool


def test_default_pool_has_benchmark_opponents_and_all_known_networks():
    pytest.importorskip("torch")
    pool = default_pool("ninetka")
    assert {"random", "maxn", "mcts:simulations=2000", "net:gen-1", "net:gen-4", "net:simulations=64"} <= set(pool)
    assert len(pool) == len(set(pool))
    for game in ("go", "kropki"):
        assert {"random", "mcts:simulations=200"} <= set(default_pool(game))


def test_an_anchor_is_the_zero_of_ratings_and_of_their_intervals():
    agents = [make_agent(spec, GO) for spec in ("random", "mcts:simulations=4", "mcts:simulations=8")]
    results = play_games(agents, game=GO, num_games=60, seed=2)
    around_mean, anchored = summarise(results), summarise(results, anchor="random")
    zero = around_mean.agents[0].elo
    assert anchored.agents[0].elo == 0
    assert anchored.agents[0].elo_interval is None
    for one, other in zip(around_mean.agents[1:], anchored.agents[1:], strict=True):
        assert other.elo == pytest.approx(one.elo - zero)
        low, high = other.elo_interval
        assert low < other.elo < high
        # a difference to the anchor is about as uncertain as a difference to the mean
        assert high - low > 0.8 * (one.elo_interval[1] - one.elo_interval[0])
    with pytest.raises(ValueError, match="anchor='missing': expected one of 'random', "):
        summarise(results, anchor="missing")


def test_the_pool_links_maxn_to_the_tree_search():
    """With MaxN at 0, ratings have intervals only if MaxN wins some games against the weakest tree search."""
    specs = ["maxn", *[spec for spec in default_pool("ninetka") if spec.startswith("mcts")][:2]]
    results = play_games([make_agent(spec) for spec in specs], 2, 20, seed=0, opening_plies=4)
    maxn, *others = summarise(results, anchor="maxn").agents
    assert maxn.elo_interval is None
    assert all(other.elo_interval for other in others)


def test_ratings_page_ranks_agents_and_quotes_the_command():
    agents = [make_agent(spec, GO) for spec in ("random", "mcts:simulations=30")]
    page = ratings_page(
        summarise(play_games(agents, game=GO, num_games=20, seed=3), anchor="random"), "x.md", ["a b", "c"]
    )
    options = "--games 20 --seed 3 --opening-plies 0 --anchor random --markdown x.md"
    assert f"`ninetka rate 'a b' c --game {GO} {options}`.\n" in page
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == ["mcts:simulations=30", "random"]
    assert all("[" in row for row in rows)


def test_rate_writes_a_table_and_json(tmp_path):
    table, json_file = tmp_path / "ratings.md", tmp_path / "ratings.json"
    done = run("rate", "random", "mcts:simulations=8", "--game", GO, "--games", 4, "--anchor", "random",
               "--opening-plies", 2, "--markdown", table, "--json", json_file)  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "random 0" in done.stdout
    assert "opening_plies=2" in table.read_text(encoding="utf-8")
    written = json.loads(json_file.read_text(encoding="utf-8"))
    assert (written["anchor"], written["settings"]["opening_plies"]) == ("random", 2)
    assert written["agents"][0]["seconds"] > 0


# Curves


def test_a_curve_plays_each_budget_against_the_same_opponent(tmp_path):
    out = tmp_path / "strength.5"
    done = run("curve", "mcts:threads=1", "mcts:rave,threads=1", "--against", "random", "--game", GO, "--games", 6,
               "--simulations", "1,40", "--seconds", "0.001", "--out", out, "--seed", 4)  # fmt: skip
    assert done.exit_code == 0, done.output
    assert done.stdout.endswith(f"wrote {out}.png, -dark.png and .json\n")
    for name in ("strength.5.png", "strength.5-dark.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    written = json.loads((tmp_path / "strength.5.json").read_text(encoding="utf-8"))
    points = written["points"]
    assert [(point["agent"], point["budget"], point["amount"]) for point in points] == [
        ("mcts:threads=1", "seconds", 0.001), ("mcts:rave,threads=1", "seconds", 0.001),
        ("mcts:threads=1", "simulations", 1), ("mcts:threads=1", "simulations", 40),
        ("mcts:rave,threads=1", "simulations", 1), ("mcts:rave,threads=1", "simulations", 40),
    ]  # fmt: skip
    for point in points:
        credit = point["wins"] + point["draws"] / 2
        assert point["games"] == 6
        assert point["share"] == pytest.approx(credit / 6)
        assert point["interval"] == pytest.approx(wilson_interval(credit, 6))
        assert point["seconds"] > 0
    assert written["settings"]["seed"] == 4
    assert written["machine"]
    match = make_match(["mcts:threads=1,simulations=40", "random"], game=GO, num_games=6, seed=4)
    (fresh,) = play_points([match])
    assert fresh.agents[0].share == points[3]["share"]


def test_budgets_are_written_as_options():
    assert with_budget("net", "seconds", 0.1) == "net:seconds=0.1"
    assert with_budget("mcts:rave", "simulations", 10_000_000.0) == "mcts:rave,simulations=10000000"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rate", "random"], "a pool of 1 agent: expected at least 2"),
        (["rate", "random", "random", "--anchor", "maxn"], "anchor='maxn': expected one of 'random', 'random (2)'"),
        (["rate", "random", "missing"], "unknown agent 'missing'"),
        (["rate", "--game", "chess"], "unknown game 'chess'"),
        (["rate", "random", "random", "--markdown", "/none/x.md"], "/none/x.md: cannot write"),
        (["rate", "random", "random", "--markdown", "x", "--json", "x"], "--json and --markdown name the same file, x"),
        (["curve", "mcts"], "no points: expected at least one agent, and --seconds or --simulations"),
        (["curve", "mcts", "--seconds", "0"], "seconds='0': expected numbers above 0, such as 0.01,0.1"),
        (["curve", "mcts", "--seconds", "1,x"], "seconds='1,x': expected numbers above 0"),
        (["curve", "mcts", "--simulations", "1.5"], "simulations='1.5': expected integers above 0, such as 16,64"),
        (["curve", "mcts:seconds=1", "--seconds", "1"], "agent 'mcts:seconds=1': the curve sets seconds"),
        (["curve", "random", "--seconds", "1"], "agent 'random:seconds=1': unknown option 'seconds'"),
        (
            ["evaluate", "random", "--gate", "0.5,0.6"],
            "gate: expected 2 agents, the one to be tested and its opponent, got 1",
        ),
        (["evaluate", "random", "random", "--gate", "0.5"], "gate='0.5': expected two shares of games"),
        (
            ["evaluate", "random", "random", "--gate", "0.5,0.6", "--alpha", "2"],
            "alpha=2.0: expected a probability above 0",
        ),
        (["evaluate", "random", "random", "--gate", ""], "argument '' after --gate: it is empty; write a value"),
        (["evaluate", "random", "random", "--beta", "0.1"], "beta=0.1: it is a setting of the gate"),
        (["evaluate", "random", "--opening-plies", "-1"], "opening_plies=-1: expected an integer of at least 0"),
    ],
)
def test_bad_input_ends_in_one_line(arguments, message, tmp_path):
    if arguments[0] == "curve":
        arguments = [*arguments, "--against", "random", "--out", tmp_path / "x"]
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert "Traceback" not in done.output
    assert len(done.stderr.strip().splitlines()) <= 4
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("gate", "status", "word"), [("0.2,0.3", 0, "passed"), ("0.7,0.8", 3, "failed")])
def test_a_gate_ends_the_command_with_its_verdict(gate, status, word, tmp_path):
    json_file, saved = tmp_path / "x.json", tmp_path / "games.txt"
    done = run("evaluate", "random", "random", "--games", 400, "--gate", gate, "--json", json_file,
               "--save-games", saved)  # fmt: skip
    assert done.exit_code == status, done.output
    assert f"gate: random {word} after " in done.stdout
    found = json.loads(json_file.read_text(encoding="utf-8"))["gate"]
    assert (found["verdict"], found["games"]) == (word, saved.read_text(encoding="utf-8").count("result: "))
    assert found["games"] < 400


def test_an_undecided_gate_is_reported():
    done = run("evaluate", "random", "random", "--games", 4, "--gate", "0.49,0.51")
    assert done.exit_code == 4
    assert "undecided after 4 of at most 4 games" in " ".join(done.stdout.split())


@pytest.mark.usefixtures("one_torch_thread")
def test_networks_alone_start_with_random_plies_by_default(tmp_path):
    done = run("evaluate", "net:gen-1", "--games", 2, "--json", tmp_path / "x.json")
    assert done.exit_code == 0, done.output
    assert "networks repeat their openings, so each rotation starts with 4 random" in " ".join(done.stderr.split())
    assert json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))["distinct_games"] == 2
    done = run("evaluate", "net:gen-1", "--games", 2, "--opening-plies", 0)
    assert "1 game repeats others move by move" in " ".join(done.stdout.split())

"""Test Kropki's agents: the greedy agent, and the solver against a plain search with the slow reference."""

from __future__ import annotations

import copy
import functools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from kropki.reference import ReferenceGame

from ninetka_agents.agent import make_agent
from ninetka_agents.kropki.exact import Solver, board_values, count_open_choices
from ninetka_env.games.kropki.game import Game

RULES = [(territory, start) for territory in ("declared", "immediate") for start in ("empty", "cross")]


def plain_value(game: ReferenceGame) -> int:
    """Search all continuations of a reference game to the end; return Black's lead with best play."""
    known: dict[object, int] = {}

    def value(game: ReferenceGame) -> int:
        key = (*game.board.values(), *game.region.values(), game.to_move, game.placed)
        if key not in known:
            if game.is_over():
                known[key] = game.scores()[0] - game.scores()[1]
            else:
                known[key] = (min if game.to_move else max)(map(value, followers(game)))
        return known[key]

    return value(game)


def followers(game: ReferenceGame) -> list[ReferenceGame]:
    found = []
    for action in game.legal_actions():
        after = copy.copy(game)
        after.board, after.region = dict(game.board), dict(game.region)
        after.play(action)
        found.append(after)
    return found


def random_pair(sides: tuple[int, int], rule: tuple[str, str], free: int, seed: int) -> tuple[Game, ReferenceGame]:
    """Return the same random position in both implementations: at most `free` nodes are free, or the game is over."""
    rng = np.random.default_rng(seed)
    game, reference = Game.new(*sides, territory=rule[0], start=rule[1]), ReferenceGame(*sides, *rule)
    while game.records["free"][0] > free and not game.is_over:
        action = int(rng.choice(game.legal_actions()))
        game.play(action)
        reference.play(action)
    return game, reference


@functools.cache
def solver_of(sides: tuple[int, int]) -> Solver:
    return Solver(*sides, table_bits=16)


@pytest.mark.parametrize("rule", RULES, ids="-".join)
@pytest.mark.parametrize("sides", [(3, 3), (4, 3), (5, 4), (5, 5)], ids=str)
def test_the_solver_agrees_with_a_plain_search(sides: tuple[int, int], rule: tuple[str, str]) -> None:
    for seed in range(4):
        game, reference = random_pair(sides, rule, 5, seed)
        assert solver_of(sides).solve(game).value == plain_value(reference)


def test_the_value_of_an_action_is_the_value_of_the_position_after_it() -> None:
    decided = 0
    for seed in range(24):
        game, reference = random_pair((5, 5), RULES[0], 5, seed)
        if game.is_over:
            continue
        values = solver_of((5, 5)).action_values(game)
        plain = dict(zip(reference.legal_actions(), map(plain_value, followers(reference)), strict=True))
        assert values == plain
        decided += len(set(values.values())) > 1
    assert decided > 3


def test_one_solver_distinguishes_the_two_rules() -> None:
    """Black closes its chain on D2. If regions are declared, Black need not draw until White has to fill C2.

    White then loses two points. If regions are drawn immediately, White loses only one.
    """
    solver, rows = Solver(4, 3), "OXXO/XO../OXXO"
    declared, immediate = (game_of(rows, territory=rule) for rule in ("declared", "immediate"))
    assert [solver.solve(game).value for game in (declared, immediate)] == [
        Solver(4, 3).solve(game).value for game in (declared, immediate)
    ]
    assert solver.solve(declared).value != solver.solve(immediate).value


def test_the_solver_refuses_other_boards() -> None:
    with pytest.raises(ValueError, match="board of 4 x 3: expected 3 x 3"):
        solver_of((3, 3)).solve(Game.new(4, 3))


def test_the_published_values_match_the_solver() -> None:
    published = json.loads(
        (Path(__file__).parents[2] / "docs" / "games" / "kropki-exact.json").read_text(encoding="utf-8")
    )
    assert len(published) == 7
    small = ["3x3", "4x3", "5x3", "4x4"]
    assert board_values(small) == {board: published[board] for board in small}


def game_of(rows: str, **options: object) -> Game:
    return Game.from_board(np.array([[".XO".index(s) for s in row] for row in rows.split("/")]), **options)


@pytest.mark.parametrize("territory", ["declared", "immediate"])
@pytest.mark.parametrize(
    ("rows", "seat", "best"),
    [
        (".XX../XOO../.XX../.....", 0, "D3"),  # captures two points
        (".OO../OXX../.OO../.....", 0, "D3"),  # saves two points
        (".XX../XOO../.XX../..X../.XO.X/..X..", 0, "D5"),  # two points rather than one
    ],
)
def test_greedy_takes_and_saves_the_most(rows: str, seat: int, best: str, territory: str) -> None:
    game = game_of(rows, to_move=seat, territory=territory)
    for spec in ("greedy", "greedy:caution=1"):
        (action,) = make_agent(spec, "kropki").act(game.records, np.random.default_rng(0))
        assert game.action_name(int(action)) == best


def test_greedy_draws_every_region_it_may() -> None:
    game = game_of(".X.X./XO.OX/.X.X.")
    game.play(game.action_index("C2"))
    agent, rng = make_agent("greedy", "kropki"), np.random.default_rng(0)
    while game.drawing:
        game.play(int(agent.act(game.records, rng)[0]))
    assert game.scores().tolist() == [2, 0]


def enclosing_position(free: int, held: int) -> Game:
    """Return a 10 x 10 position with many regions that may be drawn and few free nodes.

    White fills every other node, and Black encloses these nodes one by one. A seat draws regions only while it could
    capture more than `held` points by drawing.
    """
    game, nodes = Game.new(10, 10), 100
    black = [node for node in range(nodes) if sum(divmod(node, 10)) % 2]
    white = [node for node in range(nodes) if node not in black and 0 < node // 10 < 9 and 0 < node % 10 < 9]
    while game.records["free"][0] > free:
        wanted = (white if game.to_move else black) + list(range(nodes))
        game.play(next(node for node in wanted if game.legal_mask()[node]))
        while game.drawing and not game.is_over:
            draws = game.records["capturable"][0][game.to_move] > held
            game.play(int(game.legal_actions()[0 if draws else -1]))
    return game


@pytest.mark.parametrize(("free", "held"), [(1, 16), (2, 14)])
def test_many_undrawn_regions_are_searched_or_left_to_greedy(free: int, held: int) -> None:
    game = enclosing_position(free, held)
    assert game.records["capturable"].sum() > 20
    assert count_open_choices(game.records)[0] == free + game.records["capturable"].sum()
    rng = np.random.default_rng(0)
    actions = [make_agent(spec, "kropki").act(game.records, rng) for spec in ("exact", "greedy")]
    assert actions[0] == actions[1]


def test_a_search_has_room_for_all_regions_that_may_be_drawn() -> None:
    solver, game = Solver(10, 10, table_bits=16), enclosing_position(1, 9)
    best = (min if game.to_move else max)(solver.action_values(game).values())
    assert solver.solve(game).value == best


def test_exact_plays_optimally_to_the_end() -> None:
    agent, rng = make_agent("exact:free=6", "kropki"), np.random.default_rng(1)
    for seed in range(6):
        game, _ = random_pair((5, 5), RULES[seed % 4], 6, seed)
        value = solver_of((5, 5)).solve(game).value
        while not game.is_over:
            game.play(int(agent.act(game.records, rng)[0]))
        assert np.diff(game.scores())[0] == -value


def test_wrong_options_are_refused() -> None:
    for spec, error in (("greedy:caution=-1", "caution"), ("exact:free=30", "free=30"), ("exact:nodes=1", "nodes")):
        with pytest.raises(ValueError, match=error):
            make_agent(spec, "kropki")


def test_the_command_that_solves_boards_refuses_other_texts() -> None:
    command = [sys.executable, "-m", "ninetka_agents.kropki.exact", "3x3y"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "error: board '3x3y': expected width and height, such as 5x4\n"

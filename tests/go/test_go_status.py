"""Dead stones at the end of a game: positions, and finished games with results from players or other programs."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ninetka_agents.go.status import agreed_result, find_statuses, remove_chains
from ninetka_env.games.go.game import Game

ONE_STONE = """
    . . X O . . . . .
    . . X O . . . . .
    . . X O . . . . .
    . . X O . . . . .
    . O X O . . . . .
    . . X O . . . . .
    . . X O . . . . .
    . . X O . . . . .
    . . X O . . . . .
"""
INVADER = """
    . . . . X O . . .
    . . . . X O . . .
    . . . . X O . . .
    . . . O X O . . .
    . . . . X O . . .
    . . . . X O . . .
    . . . . X O . . .
    . . . . X O . . .
    . . . . X O . . .
"""
KATAGO_366 = """
    . . . . . . . . .
    . . . . . . . . .
    . . O O O O . . .
    . O . O X O O O O
    O O O X X X X O X
    O X X X . X X X X
    X . . O O X O O .
    . X . . X . X O .
    . . . . X X . X .
"""
KATAGO_596 = """
    . . . . . . .
    O O O X O . .
    X X X O O O .
    . X . X X O .
    . . X O X O .
    . . X . X O O
    . . . . X X O
"""
NAKADE = """
    . O X X . . . X .
    . O O X X . . . .
    O . O O X . X X X
    O O X O X X O O O
    O O X O X X X X O
    O X X X O O O O O
    X X X O O . . O .
    . . X X O . O X O
    X X . X X O . X .
"""
"""The end of a game on GoQuest, W+6."""
NEXT_TO_DEAD = """
    . O . O . . . . .
    O X X X O X . . .
    . X X O X X . . .
    X X O O O X . . .
    X O . O X X . . .
    O . O O O X X X .
    . . O . O O X X .
    . . . O . O X X .
    . . . . O O X . .
"""
"""The end of a game on GoQuest, B+12: A8, B9 and D9 look like stones in seki until E8 is removed."""

SEKIS = {
    "without eyes": (
        """
        . . . . . O X . .
        . . . . . O X X X
        . . . . . O X X .
        . . . . . O O X .
        . . . . . . O X .
        . . . . . . O X .
        O O O O O O O X .
        X X X X X X O X .
        . O O O . X O X .
        """,
        "A2 B2 C2 D2 E2 F2 F1 B1 C1 D1",
        "",
    ),
    "an eye each": (
        """
        . . . . X O . . .
        . . X . X O . . .
        . . X . X O . . .
        . . X . X O . . .
        . . X X X O . . .
        X X X O O O O . .
        O O O X X X O . .
        O . O X . X O . .
        O O O . X X O . .
        """,
        "A3 B3 C3 A2 C2 A1 B1 C1 D3 E3 F3 D2 F2 E1 F1",
        "",
    ),
    "two chains with a false eye": (
        """
        . X O . O X . . .
        X . O O O X X X .
        O O O X X O O X .
        X X O O X X O X .
        . X O X X O O X X
        X X X X O . O O X
        . O . X O O . . O
        O O X X X O X O .
        . X . X O O O O .
        """,
        "B9 C9 E9 C8 D8 E8 A7 B7 C7 C6 D6 C5 A8",
        "A2 B2 B3 G2",
    ),
    "in a corner": (
        """
        . X . O . O X
        X X X O O O X
        O O O X X X X
        . . O O . . .
        . . . . . . .
        . . . . . . .
        . . . . . . .
        """,
        "B7 A6 B6 C6 D7 F7 D6 E6 F6",
        "",
    ),
}
"""Maps a name to a position, its stones in seki and its dead stones. Sources: seki1.sgf, seki2.sgf and seki3.sgf in GNU
Go's regression/games/seki_exotics, with GNU Go's `final_status_list`; and Little Go's seki-9b.sgf."""

FINISHED = [
    pytest.param(
        "B+4",
        7,
        "area",
        "fddfefegfgeeffedfeecdgcgehcffcebcdcechgbfbfabgbfahhdbdcbafaebeageabhgacidbdcdacafaccdhdieibihftthbtttt",
        id="GoQuest, 2015-07-04",
    ),
    pytest.param(
        "B+2",
        7,
        "area",
        "cdfeggdfedfdeeefffecdcfccecfegdgehgffgdhgehehfhdebfbbfbgbededdbhdbhhghhbgdgciegfgeidifeifidihieadafa"
        "agahafgdgftttt",
        id="GoQuest, 2015-11-12",
    ),
    pytest.param(
        "B+8",
        7,
        "area",
        "eeecdcddedccdbfccddedfcebdcfgdcbcgefdgfdfegeffgffgdahdggfhebhehbbfhfghifigbeaedcbgbcadacafhchggcieicidtttt",
        id="GoQuest, 2015-10-14",
    ),
    pytest.param(
        "B+8",
        7,
        "area",
        "fedeegcgccdccdceddedeeecbebfbdcbbbdbbaaeacgddhchdfcfgeafadcihdhcgcgbfdfchbgdbhahgcicgdhabibgfbibcafa"
        "daebeafbdihfheggfhghfgieidffifgfefighhhiihiefihggiiihhaiihdgtteheitttt",
        id="GoQuest, 2015-12-07",
    ),
    pytest.param(
        "W+2",
        7,
        "area",
        "eeecdcddedccdbfcgddedfcfcbbccgbfdggchdhcbbbdfdabicibidgbbgagahafbhebggcetttt",
        id="GoQuest, 2015-11-18",
    ),
    pytest.param(
        "B+6",
        7,
        "area",
        "fedeegdccfgdgedfdgcgbgchbheffffgggfdcecdbdbchdhcheehfhdhfgbebfadedechbahbigbicgcafhaibaeeeddidgaiatteitttt",
        id="GoQuest, 2015-10-12",
    ),
    pytest.param(
        "B+10.5",
        6.5,
        "area",
        "gdedggfffggfefhffehhhghdhccecgfcbfbeaeadafgcheeegehbidccbdbcaccdaddfegdgdhcfbgibbbcbicbaabfdaacatthattgbtttt",
        id="gnu-kin.sgf of GNU Go",
    ),
    pytest.param(
        "B+2.5",
        6.5,
        "area",
        "eedfehefcgffcdgdggfcecgfhgcfebbgchbebdfbideadafabbedcbddibbhdcdebihfifhcichbaeahdgafadfhfgegghdidhai"
        "eihdcebfciheiehaigiatttt",
        id="mfg-gnu.sgf of GNU Go",
    ),
    pytest.param(
        "W+1.5",
        6.5,
        "area",
        "eeffgggefgefegdfchceccdccbcdedebhffchdbdgbheiegdhcgcbfcgbghbibgfhahgifaefbdgecidicghhhehigfhhgbhdddh"
        "gifihibcbbacabdeeacidbbifdttfetttt",
        id="gnu-crazy.sgf of GNU Go",
    ),
    pytest.param(
        "W+19.5",
        6.5,
        "area",
        "gcdcgfcfeggghgffgefgghfhebhhdbccihgicbhfbcbdbbigadbeheedieaeacfcfbefecfdgdddfeeeifhgttdgtttt",
        id="gnu-mag.sgf of GNU Go",
    ),
    pytest.param(
        "W+2",
        0,
        "territory",
        "fdffeeefdedfcegdgcgehccfifiehehfidighgiegghdbebfafagaebgicfefctttt",
        id="9x9-4.sgf of GNU Go",
    ),
]
"""Results, komi, scoring and moves of real games, taken from their files; `tt` is a pass. `benchmarks/dead_stones.py`
names the collections. If all stones were counted as alive, the other seat would win each of these games."""


def position(text: str, **options: object) -> Game:
    """Return the position of a diagram, the highest rank first; X is Black."""
    cells = [[".XO".index(word) for word in line.split()] for line in text.strip().splitlines()]
    return Game.from_board(np.array(cells, np.int8)[::-1], **options)


def names(game: Game, chains: list[list[int]]) -> set[str]:
    return {game.action_name(point) for chain in chains for point in chain}


@pytest.mark.parametrize(
    ("text", "komi", "dead", "result"),
    [
        pytest.param(ONE_STONE, 0, "B5", "W+27", id="GNU Go: one stone in two files"),
        pytest.param(INVADER, 6.5, "D6", "B+2.5", id="GNU Go: one stone in four files"),
        pytest.param(KATAGO_366, 0, "D3 E3 G3 H3 H2", "B+1", id="KataGo issue 366"),
        pytest.param(KATAGO_596, 7, "D6 D3", "W+8", id="KataGo issue 596"),
        pytest.param(NAKADE, 7, "H1 H2", "W+6", id="a dead shape inside an eye"),
        pytest.param(NEXT_TO_DEAD, 7, "B9 D9 A8 E8", "B+", id="next to a dead stone"),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_dead_stones(text, komi, dead, result, seed):
    game = position(text, komi=komi)
    assert names(game, find_statuses(game, seed).dead) == set(dead.split())
    assert agreed_result(game, seed).startswith(result)


@pytest.mark.parametrize("name", SEKIS)
@pytest.mark.parametrize("seed", [0, 1])
def test_stones_in_seki_are_kept(name, seed):
    text, seki, dead = SEKIS[name]
    game = position(text)
    found = find_statuses(game, seed)
    assert (names(game, found.seki), names(game, found.dead)) == (set(seki.split()), set(dead.split()))


def test_stones_of_a_seki_that_is_not_detected_are_kept():
    """GNU Go's seki_nakade1.sgf: neither side can attack, but White has an eye space."""
    text = ". O . X X X . O ./X O O O O O O O X/X X . . . . . X X/. . X X X X X . ./" + "/".join(
        5 * [". . . . . . . . ."]
    )
    game = position(text.replace("/", "\n"))
    assert find_statuses(game).dead == []


@pytest.mark.parametrize(("result", "komi", "scoring", "moves"), FINISHED)
@pytest.mark.parametrize("seed", [0, 1])
def test_results_of_finished_games(result, komi, scoring, moves, seed):
    game = Game.new(komi=komi, scoring=scoring)
    for column, row in zip(moves[::2], moves[1::2], strict=True):
        game.play(81 if column == "t" else 9 * ("ihgfedcba".index(row)) + "abcdefghi".index(column))
    assert game.is_over
    assert game.result()[0] != result[0]
    assert agreed_result(game, seed) == result


def test_each_stone_of_a_random_position_has_one_status():
    rng = random.Random(12)
    for number in range(40):
        size = (2, 3, 5, 7, 9, 19)[number % 6]
        game = Game.new(
            size=size, komi=0.5, scoring=rng.choice(["area", "territory"]), max_plies=rng.choice([None, 3, 1024])
        )
        for _ in range(rng.randrange(2 * size * size)):
            if not game.is_over:
                game.play(int(rng.choice(np.flatnonzero(game.legal_mask()))))
        before, found = str(game), find_statuses(game, number)
        chains = [chain for status in found for chain in status]
        assert sorted(point for chain in chains for point in chain) == np.flatnonzero(game.board).tolist()
        assert find_statuses(game, number) == found
        assert str(game) == before
        cleared = remove_chains(game, found.dead)
        assert np.count_nonzero(cleared.board) == sum(map(len, found.alive + found.seki))
        assert agreed_result(game, number)[0] in "BW0"

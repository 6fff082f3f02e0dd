"""Helpers for the tests of Go: boards from drawings, random games, lock-step with the slow reference."""

from __future__ import annotations

import numpy as np
from go.reference import ReferenceGame

from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import write_observation
from ninetka_env.games.go.game import Game
from ninetka_env.games.go.text import read_drawing


@jit
def _draw(games, viewer, planes):
    write_observation(games[0], viewer, planes)


def observe(game, viewer):
    """Return the observation of a viewer. The array is filled with 7 first, to show values that are not written."""
    shape = game.definition().variant(komi=0, size=game.size, planes=game.planes).sizes.planes
    planes = np.full(shape, 7, np.int8)
    _draw(game.records, viewer, planes.reshape(-1))
    return planes


def from_picture(picture, to_move=0, **options):
    """Return a game on a 9 x 9 board that starts from a drawing; ranks above the drawing are empty."""
    lines = [line.split() for line in picture.strip().split("\n")]
    ranks = [line for line in lines if line[0] != "A"]
    empty = [[str(rank), *"." * 9] for rank in range(9, len(ranks), -1)]
    text = "\n".join(" ".join(line) for line in [*empty, *ranks, list("ABCDEFGHJ")])
    return Game.from_board(read_drawing(text), to_move, **options)


def play_all(game, names):
    """Play the actions with the given names, separated by spaces; return the game."""
    for name in names.split():
        game.play(game.action_index(name))
    return game


def is_legal(game, name):
    return game.action_index(name) in game.legal_actions()


def reference_of(game):
    """Return a game of the slow reference with the board of `game`, without its history."""
    options = ("size", "komi", "ko", "scoring", "max_plies", "allow_resign")
    reference = ReferenceGame(**{name: getattr(game, name) for name in options})
    reference.begin(tuple(map(tuple, game.board.tolist())), game.to_move)
    return reference


def choose(game, rng, passing=0.03):
    """Draw a legal action: rarely a pass, very rarely resigning, and often a point next to the last one."""
    points = game.size**2
    placings = [action for action in game.legal_actions().tolist() if action < points]
    if not placings or rng.random() < passing:
        return points + int(game.allow_resign and rng.random() < 0.1)
    last = int(game.records["last"][0])
    near = [action for action in placings if last >= 0 and abs(action - last) in (1, game.size)]
    return int(rng.choice(near if near and rng.random() < 0.3 else placings))


def play_in_lock_step(options, seed, check, every=1):
    """Play a random game in both implementations; call `check(game, reference)` every `every` plies and at the end.

    Return the finished game.
    """
    rng = np.random.default_rng(seed)
    game, reference = Game.new(**options), ReferenceGame(**options)
    while True:
        if game.ply % every == 0 or game.is_over:
            check(game, reference)
        if game.is_over:
            return game
        action = choose(game, rng)
        game.play(action)
        reference.play(action)


def assert_equal(game, reference):
    """Compare everything that the slow reference computes for a position."""
    legal = reference.legal_actions()
    assert game.board.tolist() == [list(rank) for rank in reference.board]
    assert game.to_move == reference.to_move
    assert game.ply == len(reference.moves)
    assert game.is_over == reference.is_over()
    assert game.legal_actions().tolist() == legal
    assert game.legal_mask().tolist() == [int(action in legal) for action in range(game.num_actions)]
    assert game.captured().tolist() == reference.captured
    assert game.ko_points().tolist() == reference.ko_points()
    assert game.owners().tolist() == reference.owners()
    assert game.scores().tolist() == reference.scores()
    assert game.winner() == reference.winner()

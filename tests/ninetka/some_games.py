"""Game records of 9tka for tests: random games, and the games of the golden file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from ninetka.positions import Options, random_positions

from ninetka_env.api.records import GameRecord
from ninetka_env.core.registry import load_variant
from ninetka_env.games.ninetka.geometry import square_index

GOLDEN = Path(__file__).parent / "games.txt"
"""The file with the three games of `golden_records`. A person has checked its text."""


def played(options: Options, seed: int = 0, tags: dict[str, str] | None = None) -> GameRecord:
    """Return the record of a random game."""
    start = options.new_game(seed)
    neutrals = np.flatnonzero(start.board == 5)
    actions = [position.last_action for position in random_positions(options, seed)][1:]
    return GameRecord.of(actions, **options._asdict(), drawn=neutrals, tags=tags)


def counted(options: Options, neutrals: str = "", **tags: str) -> GameRecord:
    """Return the record of a game without random numbers.

    Ply k plays number 7 * k of the legal actions, modulo their number. `neutrals` names the squares drawn at the start.
    """
    drawn = [square_index(name) for name in neutrals.split()]
    variant = load_variant("ninetka", **options._asdict())
    game = GameRecord(variant, (), (), 0, drawn=tuple(drawn)).start()
    actions: list[int] = []
    while not game.is_over:
        legal = game.legal_actions()
        actions.append(int(legal[7 * len(actions) % len(legal)]))
        game.play(actions[-1])
    return GameRecord.of(actions, **options._asdict(), drawn=drawn, tags=tags)


def golden_records() -> list[GameRecord]:
    return [
        counted(Options(2), yellow="maxn", blue="random", date="2024-05-01"),
        counted(Options(4, "random", "continue", auto_pass=False), "C9 F8 I9 D6 E5 I5 C4 G3 H3"),
        counted(Options(3), seed="7"),
    ]

"""The games of Go in the golden playthroughs, and the slow reference in the format of these files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from go.reference import ReferenceGame
from golden.playthrough import Facts, View, to_facts

PLAYTHROUGHS = {
    "9-simple-area": ("", 1),
    "9-simple-territory-alphazero": ("scoring=territory,komi=6.5,planes=alphazero,max_plies=60", 2),
    "9-handicap-resign": ("handicap=5,allow_resign=True,komi=0.5", 9),
    "9-positional-document": ("ko=positional,scoring=document,komi=-3.5,max_plies=70", 4),
    "9-situational": ("ko=situational,max_plies=100", 5),
}
"""Maps the name of each file to options and seed."""


def reference(options: Mapping[str, Any], drawn: tuple[int, ...]) -> View:
    """Start a game of the slow reference."""
    return Reference(options)


class Reference(View):
    """A game of the slow reference."""

    name = "the reference"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.game = ReferenceGame(**options)
        self.planes = options["planes"]

    def facts(self) -> Facts:
        game, over = self.game, self.game.is_over()
        legal, winner = game.legal_actions(), game.winner()
        return to_facts(
            ply=len(game.moves),
            to_move=game.to_move,
            passed=(),
            stage="moves",
            legal=legal,
            mask=[int(action in legal) for action in range(game.size**2 + 1 + game.allow_resign)],
            planes=[game.planes(self.planes, viewer) for viewer in range(2)],
            scores=game.scores(),
            winner=winner,
            win=[over * game.reward(seat, "win") for seat in range(2)],
            score=[np.float32(over * game.reward(seat, "score")) for seat in range(2)],
            over=[over] * 2,
        )

    def play(self, action: int) -> None:
        self.game.play(action)

"""The games of Kropki in the golden playthroughs, and the slow reference as a source of their facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from golden.playthrough import Facts, View, to_facts
from kropki.reference import ReferenceGame

PLAYTHROUGHS = {
    "5x5-declared": ("width=5,height=5", 10),
    "7x6-declared-cross": ("width=7,height=6,start=cross", 36),
    "6x7-immediate": ("width=6,height=7,territory=immediate", 3),
    "6x6-immediate-cross": ("width=6,height=6,territory=immediate,start=cross", 4),
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

    def facts(self) -> Facts:
        game, over = self.game, self.game.is_over()
        legal, (black, white) = game.legal_actions(), game.scores()
        lead = (black > white) - (black < white)
        return to_facts(
            ply=game.plies,
            to_move=game.to_move,
            passed=(),
            stage="moves",
            legal=[] if over else legal,
            mask=[int(action in legal and not over) for action in range(game.num_actions())],
            planes=[game.planes(viewer) for viewer in range(2)],
            scores=(black, white),
            winner={1: 0, 0: -1, -1: 1}[lead],
            win=[over * lead, -over * lead],
            score=[over * (black - white) / len(game.nodes), over * (white - black) / len(game.nodes)],
            over=[over] * 2,
        )

    def play(self, action: int) -> None:
        self.game.play(action)

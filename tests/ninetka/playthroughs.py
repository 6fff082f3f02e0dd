"""The games of 9tka in the golden playthroughs, and the slow reference as a source of their facts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from golden.playthrough import Facts, View, to_facts
from ninetka.planes import planes_of
from ninetka.reference import PASS, ReferenceGame

PLAYTHROUGHS = {
    f"{n}-{neutrals}-{order}-{'auto_pass' if passes else 'pass'}": (
        f"num_players={n},neutral_placement={neutrals},turn_order={order},auto_pass={passes}", seed,
    )
    for seed, (n, neutrals, order, passes) in enumerate(
        itertools.product((2, 3, 4), ("players", "random"), ("restart", "continue"), (True, False)), 1
    )
}  # fmt: skip
"""Maps the name of each file to options and seed."""

STAGES = ("neutral", "placement", "movement")


def reference(options: Mapping[str, Any], drawn: tuple[int, ...]) -> View:
    """Start a game of the slow reference."""
    return Reference(options, drawn)


class Reference(View):
    """A game of the slow reference, with the observations of `ninetka.planes`."""

    name = "the reference"

    def __init__(self, options: Mapping[str, Any], drawn: tuple[int, ...]) -> None:
        self.game = ReferenceGame(options["num_players"], options["turn_order"], options["auto_pass"])
        if options["neutral_placement"] == "random":
            self.game.with_neutrals(list(drawn))
        self.ply = len(drawn)

    def facts(self) -> Facts:
        game, over = self.game, self.game.is_over()
        seats = range(game.num_players)
        legal, scores, winner = game.legal_actions(), game.scores(), game.winner()
        mean = sum(scores) / len(scores)
        return to_facts(
            ply=self.ply,
            to_move=game.to_move,
            passed=game.passed,
            stage=STAGES[game.phase],
            legal=legal,
            mask=[int(action in legal) for action in range(122)],
            planes=[planes_of(game, viewer) for viewer in seats],
            scores=scores,
            winner=winner,
            win=[over * (1 if seat == winner else -1 / (len(seats) - 1)) for seat in seats],
            score=[over * (scores[seat] - mean) / 9 for seat in seats],
            over=[over for _ in seats],
        )

    def play(self, action: int) -> None:
        self.game.play(action)
        self.ply += action != PASS

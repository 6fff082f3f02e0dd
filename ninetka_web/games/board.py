"""What browsers show of a position and of moves, and what a click means.

What is drawn is a list of *cells*, small ints whose meaning only a game's board and its drawing file in the browser
share: those of the start, and with each move those that it changed. So browsers step through a game without asking.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ninetka_env.core.game import Game
from ninetka_web.games.offer import Json


class Board:
    """What is shown of one game; cells, names and words."""

    score_word: ClassVar[str] = "points"

    def config(self, game: Game) -> Json:
        """Return what the drawing file must know of a table before the first position."""
        return {}

    def cells(self, game: Game) -> npt.NDArray[np.integer[Any]]:
        """Return what there is to draw, (K,) small ints."""
        raise NotImplementedError

    def scores(self, game: Game) -> list[float]:
        """Return the number that stands beside each seat."""
        scores: list[float] = game.scores().tolist()
        return scores

    def notes(self, game: Game) -> list[str]:
        """Return what is said of each seat in this position."""
        return [""] * game.num_players

    def cell_of(self, game: Game, action: int) -> int | None:
        """Return the cell on which a legal action is shown; None for one without a place, such as a pass."""
        return action

    def landing(self, game: Game, action: int) -> int | None:
        """Return the cell where what is moved comes to rest, if it is another one."""
        return None

    def move_name(self, game: Game, action: int) -> str:
        """Name an action that is about to be played."""
        return game.action_name(action)

    def says(self, game: Game, action: int, after: Game) -> str:
        """Say what a move did, without who."""
        raise NotImplementedError

    # What can be done

    def hits(self, game: Game) -> list[Any]:
        """Return what can be clicked: cells that are actions too, or [cell, action], or [cell, action, landing]."""
        return [action for action in game.legal_actions().tolist() if self.cell_of(game, action) is not None]

    def buttons(self, game: Game) -> list[Json]:
        """Return the legal actions that have no place on the board: what is written on them, and their key."""
        return []

    def previews(self, game: Game) -> Mapping[int, list[int]]:
        """Return what actions would do beyond what is plain to see: by cell, the cells that change."""
        return {}

    def ghost(self, game: Game) -> int:
        """Return the cell code of what the seat to move puts down."""
        return game.to_move + 1

    def verb(self, game: Game) -> str:
        """Say what a click does."""
        raise NotImplementedError

    def prompt(self, game: Game) -> tuple[str, str]:
        """Say what is to be done: to whom it is the turn of, and to the others."""
        raise NotImplementedError

    def why_not(self, game: Game, action: int) -> str:
        """Say, to people, why an action is illegal."""
        return game.describe_illegal(action).partition(": ")[2] or "this cannot be played"

    def outcome(self, game: Game) -> str:
        """Say more of how a game ended by its rules than who has won."""
        seats = game.definition().seats
        return ", ".join(f"{seats[n].capitalize()} {score:g}" for n, score in enumerate(game.scores().tolist())) + "."

    def told_action(self, game: Game, action: int) -> Json:
        """Return a move that may be played as browsers are told: its name, the cell that is touched, where it ends."""
        return {"action": action, "name": self.move_name(game, action), "cell": self.cell_of(game, action),
                "to": self.landing(game, action)}  # fmt: skip

    def told_line(self, game: Game, actions: Iterable[int]) -> list[Json]:
        """Return a line of play from a position as browsers are told, as far as it is legal."""
        game, told = game.copy(), []
        for action in actions:
            if game.is_over or not game.legal_mask()[action]:
                break
            told.append({"seat": game.to_move, **self.told_action(game, action)})
            game.play(action)
        return told

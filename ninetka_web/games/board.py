"""Base class of the boards: what browsers draw of a position, the texts of moves, and what a click does.

A position is drawn from its *cells*, small ints that only the game's `Board` and its renderer in the browser
(`ninetka_web/static/games/NAME.js`) interpret. Browsers get the cells of the first position and the cells that each
move changed, so they can step through a game without asking the server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ninetka_env.core.game import Game
from ninetka_web.games.offer import Json


class Board:
    """What the page shows of one game: cells, names and texts."""

    score_word: ClassVar[str] = "points"

    def config(self, game: Game) -> Json:
        """Return the settings of the renderer for all positions of a game, for example the board size."""
        return {}

    def cells(self, game: Game) -> npt.NDArray[np.integer[Any]]:
        """Return the cells to draw, (K,) small ints."""
        raise NotImplementedError

    def scores(self, game: Game) -> list[float]:
        """Return the number that the page shows next to each seat."""
        scores: list[float] = game.scores().tolist()
        return scores

    def seat_notes(self, game: Game) -> list[str]:
        """Return a short text about each seat in this position."""
        return [""] * game.num_players

    def cell_of(self, game: Game, action: int) -> int | None:
        """Return the cell on which a legal action is shown; None for actions without a cell, such as a pass."""
        return action

    def landing(self, game: Game, action: int) -> int | None:
        """Return the cell where the moved stone stops; None if that is the cell of the action."""
        return None

    def move_name(self, game: Game, action: int) -> str:
        """Return the name of a legal action."""
        return game.action_name(action)

    def move_text(self, game: Game, action: int, after: Game) -> str:
        """Return a text about a move, without its subject, for example `plays C3`. `after` is the next position."""
        raise NotImplementedError

    # The legal moves

    def clickable(self, game: Game) -> list[Any]:
        """Return the legal clicks, each as [cell, action], or as [cell, action, landing] if `landing` is not None.

        If cell and action are the same number and there is no landing, the click may be this number alone.
        """
        return [action for action in game.legal_actions().tolist() if self.cell_of(game, action) is not None]

    def buttons(self, game: Game) -> list[Json]:
        """Return the legal actions that have no cell, as buttons: `action`, `label` and `key` (a keyboard letter)."""
        return []

    def preview_cells(self, game: Game) -> Mapping[int, list[int]]:
        """Return a dict from clickable cells to the other cells that their actions would change, for the preview."""
        return {}

    def preview_code(self, game: Game) -> int:
        """Return the cell code of the stone that the preview shows for the seat to move."""
        return game.to_move + 1

    def click_text(self, game: Game) -> str:
        """Return a text that says what a click does."""
        raise NotImplementedError

    def prompt(self, game: Game) -> tuple[str, str]:
        """Return two texts for the status line: for the player to move, and for all others."""
        raise NotImplementedError

    def illegal_reason(self, game: Game, action: int) -> str:
        """Return a text that explains to the user why an action is illegal."""
        return game.describe_illegal(action).partition(": ")[2] or "this cannot be played"

    def outcome(self, game: Game) -> str:
        """Return details about a game that ended by its rules, such as the scores."""
        seats = game.definition().seats
        return ", ".join(f"{seats[n].capitalize()} {score:g}" for n, score in enumerate(game.scores().tolist())) + "."

    def action_json(self, game: Game, action: int) -> Json:
        """Return a legal action as JSON: `action`, `name`, `cell` (see `cell_of`) and `to` (see `landing`)."""
        return {"action": action, "name": self.move_name(game, action), "cell": self.cell_of(game, action),
                "to": self.landing(game, action)}  # fmt: skip

    def variation_json(self, game: Game, actions: Iterable[int]) -> list[Json]:
        """Return a variation from a position as JSON, cut off before the first illegal action."""
        game, moves = game.copy(), []
        for action in actions:
            if game.is_over or not game.legal_mask()[action]:
                break
            moves.append({"seat": game.to_move, **self.action_json(game, action)})
            game.play(action)
        return moves

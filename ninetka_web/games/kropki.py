"""Kropki in the web app; `ninetka_web/static/games/kropki.js` draws the cells."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_agents.kropki.exact import Solver, count_open_choices
from ninetka_env.core.game import Game as AnyGame
from ninetka_env.core.outcome import DRAWN
from ninetka_env.games.kropki.describe import find_enclosures
from ninetka_env.games.kropki.game import Game
from ninetka_env.games.kropki.geometry import MAX_HEIGHT, MAX_WIDTH, MIN_SIDE
from ninetka_env.games.kropki.rules import MAX_BOARD_SIZES
from ninetka_env.games.kropki.text import SEATS
from ninetka_web.games.adapter import Adapter
from ninetka_web.games.board import Board
from ninetka_web.games.offer import RANDOM, ChoicesRow, Json, NumberRow, Offer, OfferedAgent
from ninetka_web.games.study import ExactValue, StopCheck, Study, never_stop

MAX_SOLVER_CHOICES, MAX_SOLVER_NODES = 10, 400
"""The solver is fast if `count_open_choices` and the number of nodes of the board are at most these."""
MIN_CHAIN_POINTS = 4
"""The number of points in the shortest chain that encloses a node."""


def as_kropki(game: AnyGame) -> Game:
    """Return the same object, typed as a game of Kropki."""
    assert isinstance(game, Game)
    return game


OFFER = Offer(
    name="kropki",
    slogan="Points on squared paper",
    steps=(
        ("Put a point", "on any free crossing of the paper, in turn."),
        (
            "Enclose.",
            "Your points side by side or corner to corner make a chain. Close it round points of the other side.",
        ),
        ("Draw the line.", "The player with more of the other's points in drawn regions wins when the paper is full."),
    ),
    rules=(
        ("A turn.", "Put a point on a free crossing. Black, with dark ink and filled points, begins; White has red ink "
         "and open points."),
        ("Enclosing.", "A closed chain of your points, each next to the last also corner to corner, encloses what is "
         "inside. The edge of the paper closes nothing."),
        ("Drawing.", "After your point you may draw every chain that has points of the other side inside: click on an "
         "enclosed crossing, or end your turn. What is inside is yours then, out of play, and counts a point for each "
         "point of the other side. If the rules draw at once, all this happens automatically."),
        ("The end.", "When no crossing is free, all that can be drawn is drawn. More points win; equal ones are a "
         "draw. A region that is enclosed itself gives back what it held."),
    ),
    form=(
        ChoicesRow("Paper", tuple(({"width": w, "height": h}, f"{w} x {h}")
                                  for w, h in ((6, 6), (10, 10), (15, 15), (20, 20), (39, 32)))),
        ChoicesRow("Regions are drawn", (({"territory": "declared"}, "by the players"),
                                         ({"territory": "immediate"}, "at once"))),
        ChoicesRow("The paper begins", (({"start": "empty"}, "empty"), ({"start": "cross"}, "with a cross"))),
        NumberRow("Columns", "width", MIN_SIDE, MAX_WIDTH),
        NumberRow("Rows", "height", MIN_SIDE, MAX_HEIGHT),
    ),
    agents=(
        RANDOM,
        OfferedAgent("greedy", "Greedy", ((0, "takes what it can"),)),
        OfferedAgent("mcts", "Tree search", ((50, "50 playouts: easy"), (400, "400 playouts"), (2000, "2,000 playouts"),
                                             (10000, "10,000 playouts: hard"), (20000, "20,000 playouts: hardest")),
                     "simulations", 20_000, 400, "rave"),
    ),
    opponent="mcts:simulations=400",
)  # fmt: skip


class KropkiBoard(Board):
    """What the page shows of Kropki."""

    score_word = "points enclosed"

    def config(self, game: AnyGame) -> Json:
        """Return the width and the height of the board."""
        return {"width": as_kropki(game).width, "height": as_kropki(game).height}

    def cells(self, game: AnyGame) -> npt.NDArray[np.integer[Any]]:
        """Return the codes of the nodes, row by row from the top: point + 4 * region; both are 0 or seat + 1."""
        game = as_kropki(game)
        cells: npt.NDArray[np.integer[Any]] = (game.board + 4 * game.region).ravel()
        return cells

    def cell_of(self, game: AnyGame, action: int) -> int | None:
        """Return the node of a placed point or of a drawn core; None for the end of a turn."""
        nodes = as_kropki(game).width * as_kropki(game).height
        return action % nodes if action < 2 * nodes else None

    def move_name(self, game: AnyGame, action: int) -> str:
        """Return the name of a move: `C4`, `○C4` for a drawing, `end`."""
        return game.action_name(action).replace("*", "○")

    def move_text(self, game: AnyGame, action: int, after: AnyGame) -> str:
        """Return a text about a move and the points that it encloses."""
        name, gained = game.action_name(action), int((after.scores() - game.scores())[game.to_move])
        capture_text = f" and takes {gained} {'point' if gained == 1 else 'points'}" if gained else ""
        if self.cell_of(game, action) is None:
            return f"ends the turn{capture_text}"
        return (
            f"draws round {name[1:]}{capture_text}" if name.startswith("*") else f"puts a point on {name}{capture_text}"
        )

    def clickable(self, game: AnyGame) -> list[Any]:
        """Return the free nodes or, after a point was placed, all nodes of the cores that may be drawn."""
        game = as_kropki(game)
        if not game.drawing:
            return super().clickable(game)
        drawable = game.drawable().ravel()
        return [[int(node), int(drawable[node])] for node in np.flatnonzero(drawable >= 0)]

    def buttons(self, game: AnyGame) -> list[Json]:
        """Return the button that ends the turn."""
        game = as_kropki(game)
        if not game.drawing or game.is_over:
            return []
        return [{"action": 2 * game.width * game.height, "label": "End the turn", "key": "E"}]

    def preview_cells(self, game: AnyGame) -> Mapping[int, list[int]]:
        """Return a mapping: free node -> the nodes that a point on the free node would enclose.

        The mapping is empty while the seat to move has too few points to close a chain.
        """
        game = as_kropki(game)
        return find_enclosures(game) if np.count_nonzero(game.board == game.to_move + 1) >= MIN_CHAIN_POINTS - 1 else {}

    def click_text(self, game: AnyGame) -> str:
        """Return a text that says what a click does."""
        return "draw the region" if as_kropki(game).drawing else "put your point"

    def prompt(self, game: AnyGame) -> tuple[str, str]:
        """Return the texts of the status line; see `Board.prompt`."""
        colour = SEATS[game.to_move].capitalize()
        if as_kropki(game).drawing:
            return "Click on what you enclose to draw it, or end your turn.", f"{colour} may draw."
        return "Put a point on a free crossing.", f"{colour} to place a point."


class KropkiStudy(Study):
    """Exact values near the end of Kropki games."""

    has_solver = True

    def solvable(self, game: AnyGame) -> bool:
        """Return whether few choices remain on a board of limited size."""
        game = as_kropki(game)
        return (
            int(count_open_choices(game.records)[0]) <= MAX_SOLVER_CHOICES
            and game.width * game.height <= MAX_SOLVER_NODES
        )

    def solve(
        self, game: AnyGame, seconds: float, stopped: StopCheck = never_stop, *, moves: bool = True
    ) -> ExactValue:
        """Solve the position. This is fast, so `seconds` and `stopped` are ignored."""
        game = as_kropki(game)
        if game.is_over:
            return ExactValue(game.winner(), {})
        solver = Solver(game.width, game.height, table_bits=16)
        after = (
            {} if not moves else {action: _winner_of_lead(lead) for action, lead in solver.action_values(game).items()}
        )
        return ExactValue(_winner_of_lead(solver.solve(game).value), after)


class Kropki(Adapter):
    """Adapter of Kropki. A seat moves several times in a row: it places a point, then it may draw."""

    offer = OFFER
    board = KropkiBoard()
    study = KropkiStudy()
    dry_run_setup = ({}, "A2 B2 B1 D1 C2 E1 B3 *B2")

    def options_of(self, game: AnyGame) -> Json:
        """Return the options of a position."""
        game = as_kropki(game)
        return {"width": game.width, "height": game.height, "territory": game.territory, "start": game.start_option}

    def compile_key(self, options: Json) -> str:
        """Return the key of the compiled code: the spec of the largest board with the same state dtype."""
        width, height = options.get("width", 10), options.get("height", 10)
        side = next(sides for sides in MAX_BOARD_SIZES if width <= sides[0] and height <= sides[1])
        return f"kropki:width={side[0]},height={side[1]}"

    def compile_key_of_text(self, text: str) -> str:
        """Return the `compile_key` of the game in a text: a game record, an SGF file or a position."""
        sides = re.search(r"SZ\s*\[\s*([0-9]{1,4})(?:\s*:\s*([0-9]{1,4}))?", text)
        named_sides = dict(re.findall(r"\b(width|height)[=:] ?([0-9]{1,4})", text))
        width = int(sides[1] if sides else named_sides.get("width", "10"))
        height = int((sides[2] or sides[1]) if sides else named_sides.get("height", "10"))
        return self.compile_key({"width": min(width, MAX_WIDTH), "height": min(height, MAX_HEIGHT)})


def _winner_of_lead(lead: int) -> int:
    """Return the winner for Black's lead in points."""
    return DRAWN if lead == 0 else int(lead < 0)


ADAPTER = Kropki()

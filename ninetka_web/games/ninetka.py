"""9tka in the web app; `ninetka_web/static/games/ninetka.js` draws the cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ninetka_agents.ninetka import maxn
from ninetka_agents.ninetka.solver.solver import LOST, WON, Budget, is_solvable, solve
from ninetka_env.core.game import Game as AnyGame
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import EDGE, NEUTRAL_STONE, NUM_SLOTS, PASS, square_name
from ninetka_env.games.ninetka.rules import Phase
from ninetka_web.games.adapter import Adapter
from ninetka_web.games.board import Board
from ninetka_web.games.offer import NET, RANDOM, SOLVER, ChoicesRow, Json, Offer, OfferedAgent
from ninetka_web.games.study import ExactValue, StopCheck, Study, never_stop

BLOCKED_FLAG = 8
"""Flag in the cell code of an edge stone that can never slide."""


def as_9tka(game: AnyGame) -> Game:
    """Return the same object, typed as a game of 9tka."""
    assert isinstance(game, Game)
    return game


OFFER = Offer(
    name="ninetka",
    slogan="Nine sections, one slide at a time",
    steps=(
        ("Place the obstacles.", "One neutral stone in every section."),
        ("Line up.", "Your stones go on the edge of the board."),
        ("Slide in.", "A stone runs until something stops it. The player with the most stones in a section owns "
         "it; the most sections win."),
    ),
    rules=(
        ("Neutral stones.", "In turn, the players place neutral stones, the dark ones, on the board: one in each of "
         "the nine sections, none next to the edge."),
        ("Own stones.", "In turn, the players place their stones on the edge until it is full."),
        ("Slides.", "In turn, the players slide one of their stones from the edge straight in. It runs until another "
         "stone or the far edge stops it, and stays there. A stone with something right before it is blocked for good. "
         "A player who cannot slide is passed over."),
        ("The end.", "A section belongs to the player with strictly the most stones in it. When no player can "
         "slide, the most sections win; of tied players, the last in the order of play wins."),
    ),
    seats=(2, 3, 4),
    form=(
        ChoicesRow("Neutral stones", (({"neutral_placement": "players"}, "placed in turn"),
                                      ({"neutral_placement": "random"}, "at random"))),
        ChoicesRow("Each phase is opened by", (({"turn_order": "restart"}, "the first seat"),
                                            ({"turn_order": "continue"}, "the next seat")), hidden=True),
    ),
    agents=(
        RANDOM,
        OfferedAgent("maxn", "MaxN (the classic)", ((0, "as in the paper"), (1, "1 ply: easy"), (3, "3 plies"),
                                                    (5, "5 plies"), (7, "7 plies")), "depth", 7),
        OfferedAgent("mcts", "Tree search", ((100, "100 playouts: easy"), (1000, "1,000 playouts"),
                                             (5000, "5,000 playouts"), (20000, "20,000 playouts: hard"),
                                             (50000, "50,000 playouts: hardest")), "simulations", 50_000, 1000),
        NET,
        OfferedAgent(SOLVER, "Exact solver", ((100_000, "slides proven within 100,000 positions: hard"),
                                              (900_000, "within 900,000 positions: hardest")),
               "nodes", 900_000, 100_000, "simulations=5000", seat_counts=(2,)),
    ),
    opponent="maxn",
    substitute="maxn",
    stages={"neutral": "Neutral stones", "placement": "Placement", "movement": "Slides"},
)  # fmt: skip


class NinetkaBoard(Board):
    """What the page shows of 9tka."""

    score_word = "sections owned"

    def cells(self, game: AnyGame) -> npt.NDArray[np.integer[Any]]:
        """Return (130,) codes: of the 121 squares, then of the owners of the 9 sections.

        A square is 0 if empty, 5 for a neutral stone, seat + 1 for the stone of a seat, plus `BLOCKED_FLAG` if the
        stone can never slide. An owner is seat + 1, or 0 for none.
        """
        game = as_9tka(game)
        board = game.board.ravel().astype(np.int64)
        if game.phase == Phase.MOVEMENT:
            board[EDGE & (board > 0) & ~game.movable().ravel()] += BLOCKED_FLAG
        return np.concatenate([board, game.section_owners() + 1])

    def seat_notes(self, game: AnyGame) -> list[str]:
        """Return a text for each seat: how many stones it still has to place or, in the movement phase, can slide."""
        game = as_9tka(game)
        if game.phase == Phase.NEUTRAL or game.is_over:
            return [""] * game.num_players
        edge = game.board.ravel() * EDGE
        if game.phase == Phase.PLACEMENT:
            return [f"{self._to_place(game, seat)} to place" for seat in range(game.num_players)]
        num_movable = [int(((edge == seat + 1) & game.movable().ravel()).sum()) for seat in range(game.num_players)]
        return [f"{count} can slide" if count else "cannot slide" for count in num_movable]

    def _to_place(self, game: Game, seat: int) -> int:
        return NUM_SLOTS // game.num_players - int((game.board.ravel()[EDGE] == seat + 1).sum())

    def cell_of(self, game: AnyGame, action: int) -> int | None:
        """Return the square of an action; None for a pass."""
        return None if action == PASS else action

    def landing(self, game: AnyGame, action: int) -> int | None:
        """Return the square where a slide ends; None for other actions."""
        game = as_9tka(game)
        return None if game.phase != Phase.MOVEMENT or action == PASS else game.landing(action)

    def move_name(self, game: AnyGame, action: int) -> str:
        """Return the name of a move: `C9`, or `A5-D5` (with an en dash) for a slide."""
        landing = self.landing(game, action)
        return (
            game.action_name(action) if landing is None else f"{square_name(action)}\N{EN DASH}{square_name(landing)}"
        )

    def move_text(self, game: AnyGame, action: int, after: AnyGame) -> str:
        """Return a text about a move with its squares."""
        game, landing = as_9tka(game), self.landing(game, action)
        if action == PASS:
            return "passes"
        if landing is not None:
            return f"slides {square_name(action)} to {square_name(landing)}"
        return f"puts a {'neutral ' if game.phase == Phase.NEUTRAL else ''}stone on {square_name(action)}"

    def clickable(self, game: AnyGame) -> list[Any]:
        """Return the legal clicks; see `Board.clickable`. The landing of a slide is the square where it ends."""
        actions = [action for action in game.legal_actions().tolist() if action != PASS]
        if as_9tka(game).phase != Phase.MOVEMENT:
            return actions
        return [[action, action, self.landing(game, action)] for action in actions]

    def buttons(self, game: AnyGame) -> list[Json]:
        """Return the pass button if a pass is legal, which needs `auto_pass=False`."""
        return [{"action": PASS, "label": "Pass", "key": "P"}] if game.legal_mask()[PASS] else []

    def preview_code(self, game: AnyGame) -> int:
        """Return the cell code of the stone that a click would place: a neutral stone or one of the seat to move."""
        return NEUTRAL_STONE if as_9tka(game).phase == Phase.NEUTRAL else game.to_move + 1

    def click_text(self, game: AnyGame) -> str:
        """Return a text that says what a click does."""
        return ("place a neutral stone", "place your stone", "slide")[as_9tka(game).phase]

    def prompt(self, game: AnyGame) -> tuple[str, str]:
        """Return the texts of the status line; see `Board.prompt`."""
        game = as_9tka(game)
        if game.phase == Phase.NEUTRAL:
            return (
                "Put a neutral stone on a marked square: one in each section.",
                "Neutral stones are being placed, one in each section.",
            )
        if game.phase == Phase.PLACEMENT:
            stones_left = self._to_place(game, game.to_move)
            return f"Put one of your stones on the edge; {stones_left} to go.", f"{stones_left} stones to go."
        count_text = self.seat_notes(game)[game.to_move].removesuffix(" can slide")
        return (
            "Slide a stone with an arrow: it runs until something stops it, and stays there.",
            f"{count_text} {'stone' if count_text == '1' else 'stones'} can slide.",
        )

    def illegal_reason(self, game: AnyGame, action: int) -> str:
        """Return a text that says which squares are legal in the current phase."""
        phase = as_9tka(game).phase
        if phase == Phase.NEUTRAL:
            return "a neutral stone goes into a section that has none yet, and not next to the edge"
        if phase == Phase.PLACEMENT:
            return "your stones go on free squares of the edge"
        return "no stone of yours that can slide stands there"

    def outcome(self, game: AnyGame) -> str:
        """Return the scores and, after a tie, the rule that breaks it."""
        scores = game.scores().tolist()
        tied = scores.count(scores[game.winner()]) > 1
        return super().outcome(game) + " Among equals the last in the order of play wins." * tied


BOARD = NinetkaBoard()


class NinetkaStudy(Study):
    """MaxN's evaluation, and exact values in the movement phase of games of two players."""

    budgets: ClassVar[Mapping[str, tuple[int, ...]]] = {
        "mcts": (500, 2_000, 8_000, 30_000, 100_000), "net": (16, 64, 256),
    }  # fmt: skip
    timeline_simulations = 4_000  # random error: about two per cent; cost: about half a per cent of a game's time
    has_solver = True

    def insight(self, game: AnyGame) -> Json:
        """Return MaxN's evaluation of a position as text and, in the movement phase, its principal variation."""
        game = as_9tka(game)
        variation, values, end = expected_play(game)
        text = f"By its evaluation {_lead_text(values)}."
        if variation:
            sections = np.bincount(end.section_owners() + 1, minlength=game.num_players + 1)[1:]
            counts_text = ", ".join(
                f"{game.definition().seats[seat].capitalize()} {count}" for seat, count in enumerate(sections.tolist())
            )
            text += f" Sections after its expected play: {counts_text}."
        return {"title": "What MaxN expects", "text": text, "variation": BOARD.variation_json(game, variation),
                "note": "MaxN (Stefani et al., 2019) counts sections, stones in them and blocked stones."}  # fmt: skip

    def solvable(self, game: AnyGame) -> bool:
        """Return whether the position is in the movement phase of a game of two players."""
        return is_solvable(as_9tka(game))

    def solve(
        self, game: AnyGame, seconds: float, stopped: StopCheck = never_stop, *, moves: bool = True
    ) -> ExactValue:
        """Solve a `solvable` position as far as possible in `seconds`; see `Study.solve`. No game of 9tka is drawn."""
        game = as_9tka(game)
        solution = solve(game, Budget(seconds=seconds, memory_mb=128, should_stop=stopped), moves=moves)
        seats = {WON: game.to_move, LOST: 1 - game.to_move}
        after = {action: seats.get(int(solution.moves[action]), UNFINISHED) for action in game.legal_actions().tolist()}
        return ExactValue(solution.winner if solution.winner >= 0 else UNFINISHED, after if moves else {})


class Ninetka(Adapter):
    """Adapter of 9tka: two to four seats, three phases, and a solver for the movement phase of two players."""

    offer = OFFER
    board = BOARD
    study = NinetkaStudy()
    dry_run_setup = ({"neutral_placement": "random"}, "")

    def options_of(self, game: AnyGame) -> Json:
        """Return the options of a position.

        A position does not store the option `neutral_placement`; its value is always `"players"` here.
        """
        game = as_9tka(game)
        return {"num_players": game.num_players, "neutral_placement": "players", "turn_order": game.turn_order,
                "auto_pass": game.auto_pass}  # fmt: skip


def expected_play(game: Game) -> tuple[list[int], npt.NDArray[np.int64], Game]:
    """Return MaxN's principal variation, its (n,) int64 values, and the position at the end of the variation.

    MaxN searches n + 3 plies, where n is the number of players. A search returns only the first action, so the
    remaining plies are searched again after each action. Outside the movement phase and after the end of a game, the
    variation is empty and the values are MaxN's evaluation of the position.
    """
    variation: list[int] = []
    expected_values = maxn.evaluate(game)
    if game.phase != Phase.MOVEMENT or game.is_over:
        return variation, expected_values, game
    game, plies_left = game.copy(), game.num_players + maxn.EXTRA_DEPTH
    while plies_left and not game.is_over:
        action, values = maxn.search(game, plies_left)
        expected_values = expected_values if variation else values
        variation.append(action)
        game.play(action)
        plies_left -= game.auto_pass or action != PASS
    return variation, expected_values, game


def _lead_text(values: npt.NDArray[np.int64]) -> str:
    """Return a text that says who is ahead in MaxN's values, in which a section counts 100."""
    order = np.argsort(-values, kind="stable")
    lead = int(values[order[0]] - values[order[1]]) / 100
    colour = OFFER.definition.seats[order[0]].lower()
    return f"{colour} is ahead by the value of {lead:.1f} sections" if lead >= 0.05 else "no player is ahead"


ADAPTER = Ninetka()

"""Go in the web app; `ninetka_web/static/games/go.js` draws the cells."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_agents.go.status import agreed_position, find_statuses, owner_shares
from ninetka_env.core.game import Game as AnyGame
from ninetka_env.games.go.game import Game
from ninetka_env.games.go.geometry import star_points
from ninetka_env.games.go.text import SEAT_NAMES
from ninetka_web.games.adapter import Adapter
from ninetka_web.games.board import Board
from ninetka_web.games.offer import RANDOM, ChoicesRow, Json, NumberRow, Offer, OfferedAgent
from ninetka_web.games.study import Study

KO_CELL = 3
"""The cell code of a point that the ko rule forbids."""
ESTIMATE_PLAYOUTS = 200
"""Playouts of the score estimate."""
LIMIT_NOTICE_PLIES = 20
"""The page mentions the limit of plies when at most this number of plies is left."""
SIZES = (5, 7, 9, 13, 19)


def as_go(game: AnyGame) -> Game:
    """Return the same object, typed as a game of Go."""
    assert isinstance(game, Game)
    return game


OFFER = Offer(
    name="go",
    slogan="Surround more than your opponent",
    steps=(
        ("Place.", "Black begins. One stone a turn, on a crossing, and there it stays."),
        ("Capture.", "Stones without a free crossing next to them are taken off the board."),
        ("Surround.", "When both pass, the dead stones are agreed on. The player who holds more of the board wins."),
    ),
    rules=(
        ("A turn.", "Put one stone of your colour on a free crossing, or pass. Black begins; with handicap stones on "
         "the board White does."),
        ("Capture.", "Stones of one colour that are joined along the lines are a chain. A chain without a free "
         "crossing next to it is taken off. You may not take your own last free crossing unless that captures."),
        ("Ko.", "A stone that has just captured a single stone may not be taken back at once: a square marks the "
         "crossing. With superko, no earlier board may come again."),
        ("The end.", "Two passes in a row. The page proposes which stones are dead, from random playouts; both "
         "players agree, or the passes are taken back and play continues. Your stones and the empty crossings that "
         "only you surround count; White gets komi for moving second."),
    ),
    form=(
        ChoicesRow("Board", tuple(({"size": size, **({} if size == 9 else {"handicap": 0})}, f"{size} x {size}")
                                  for size in SIZES)),
        ChoicesRow("Handicap", (({"handicap": 0}, "none"),
                                *(({"handicap": n, "size": 9}, f"{n}") for n in (2, 3, 4, 5)))),
        NumberRow("Komi", "komi", -81, 81, 0.5, hidden=False),
        ChoicesRow("Ko", (({"ko": "simple"}, "simple"), ({"ko": "positional"}, "positional superko"),
                          ({"ko": "situational"}, "situational superko")), hidden=True),
        ChoicesRow("Counted are", (({"scoring": "area"}, "stones and territory"),
                                   ({"scoring": "territory"}, "territory and captures"),
                                   ({"scoring": "document"}, "all three")), hidden=True),
    ),
    agents=(
        RANDOM,
        OfferedAgent("mcts", "Tree search", ((50, "50 playouts: easy"), (400, "400 playouts"), (2000, "2,000 playouts"),
                                             (10000, "10,000 playouts: hard"), (20000, "20,000 playouts: hardest")),
                     "simulations", 20_000, 400, "rave,playouts=heavy"),
    ),
    opponent="mcts:simulations=400",
)  # fmt: skip


class GoBoard(Board):
    """What the page shows of Go."""

    score_word = "stones taken"

    def config(self, game: AnyGame) -> Json:
        """Return the board size and the star points."""
        return {"size": as_go(game).size, "stars": list(star_points(as_go(game).size))}

    def cells(self, game: AnyGame) -> npt.NDArray[np.integer[Any]]:
        """Return the codes of the points, rank 1 first: 0 empty, seat + 1 for a stone, or `KO_CELL`."""
        cells = as_go(game).board.ravel().copy()
        cells[as_go(game).ko_points()] = KO_CELL
        return cells

    def scores(self, game: AnyGame) -> list[float]:
        """Return the number of stones that each seat has captured."""
        taken: list[float] = as_go(game).captured().tolist()
        return taken

    def cell_of(self, game: AnyGame, action: int) -> int | None:
        """Return the point of a move; None for a pass or a resignation."""
        return action if action < as_go(game).size ** 2 else None

    def move_text(self, game: AnyGame, action: int, after: AnyGame) -> str:
        """Return a text about a move and its captures."""
        if self.cell_of(game, action) is None:
            return "passes" if action == as_go(game).size ** 2 else "gives up"
        taken = int((as_go(after).captured() - as_go(game).captured()).sum())
        captured_text = f", taking {taken} {'stone' if taken == 1 else 'stones'}" if taken else ""
        return f"plays {game.action_name(action)}{captured_text}"

    def buttons(self, game: AnyGame) -> list[Json]:
        """Return the pass button."""
        return [] if game.is_over else [{"action": as_go(game).size ** 2, "label": "Pass", "key": "P"}]

    def click_text(self, game: AnyGame) -> str:
        """Return a text that says what a click does."""
        return "place your stone"

    def prompt(self, game: AnyGame) -> tuple[str, str]:
        """Return the texts of the status line; see `Board.prompt`."""
        passed = as_go(game).passes == 1
        own_text = (
            "The other side passed: pass too, and the game is counted."
            if passed
            else "Put a stone on a crossing, or pass."
        )
        plies_left = as_go(game).max_plies - game.ply
        if plies_left <= LIMIT_NOTICE_PLIES:
            own_text += f" The game ends after {plies_left} more {'ply' if plies_left == 1 else 'plies'}."
        return own_text, f"{SEAT_NAMES[1 - game.to_move]} passed." if passed else f"{SEAT_NAMES[game.to_move]} to play."

    def outcome(self, game: AnyGame) -> str:
        """Return the scores and the margin of victory."""
        limit = f" The game ended at its limit of {as_go(game).max_plies} plies." * (as_go(game).passes < 2)
        return f"{super().outcome(game)[:-1]} with komi: {_result_text(as_go(game).result())}.{limit}"


class GoStudy(Study):
    """The score estimate of Go."""

    def insight(self, game: AnyGame) -> Json:
        """Return the expected owner of each point, and a score estimate, from random playouts."""
        game = as_go(game)
        shares = owner_shares(game, 0, ESTIMATE_PLAYOUTS)
        owned = shares[0] - shares[1]
        black, white = int((owned > 0).sum()), int((owned < 0).sum())
        lead = black - white - game.komi
        return {
            "title": "Score estimate",
            "ownership": np.round(owned, 2).tolist(),
            "text": f"{_lead_text(lead)}: Black holds {black} points, White {white} and {game.komi:g} of komi.",
            "note": f"From {ESTIMATE_PLAYOUTS} random playouts; the squares show who owns each point at their end.",
        }


class Go(Adapter):
    """Adapter of Go. Two passes end a game; then the players agree on the dead stones."""

    offer = OFFER
    board = GoBoard()
    study = GoStudy()
    settles = True

    def options_of(self, game: AnyGame) -> Json:
        """Return the options of a position."""
        game = as_go(game)
        return {"komi": game.komi, "ko": game.ko, "scoring": game.scoring, "handicap": game.handicap,
                "max_plies": game.max_plies, "size": game.size, "allow_resign": game.allow_resign,
                "planes": game.planes}  # fmt: skip

    def compile_key(self, options: Json) -> str:
        """Return the key of the compiled code: a spec with the board size, and `ko=positional` for any superko rule."""
        superko = options.get("ko", "simple") != "simple"
        return f"go:size={options.get('size', 9)}" + ",ko=positional" * superko

    def compile_key_of_text(self, text: str) -> str:
        """Return the `compile_key` of the game in a text: a game record, an SGF file or a position."""
        size = re.search(r"SZ\s*\[\s*([0-9]{1,4})|^size: ([0-9]{1,4})|^[ \t]*go([0-9]{1,4}) ", text, re.MULTILINE)
        superko = re.search(r"NK\[[^\][]*ko=(?!simple)|^ko: (?!simple)|rules=(?!simple)", text, re.MULTILINE)
        side = int(next(filter(None, size.groups())) if size else "19" if text.lstrip().startswith("(") else "9")
        return self.compile_key({"size": min(max(side, 2), 19), "ko": "positional" if superko else "simple"})

    def dry_run(self, game: AnyGame) -> None:
        """Call what `Adapter.dry_run` calls; then set up a position and skip a turn, as an SGF file may require."""
        super().dry_run(game)
        game = as_go(game)
        Game.from_board(game.board, ko=game.ko).hand_turn(1)

    def may_settle(self, game: AnyGame) -> bool:
        """Return whether the game ended by two passes."""
        return game.event is None and as_go(game).passes >= 2

    def propose_score(self, game: AnyGame) -> Json:
        """Propose which stones are dead, and the score without them."""
        game = as_go(game)
        dead = find_statuses(game).dead
        final = agreed_position(game, dead)
        stones = sum(map(len, dead))
        scores = final.scores().tolist()
        dead_text = f"{stones} dead {'stone' if stones == 1 else 'stones'}" if stones else "no dead stones"
        owners = np.where(final.board > 0, 0, final.owners() + 1).ravel()
        return {
            "dead": sorted(point for chain in dead for point in chain),
            "owners": owners.tolist(),
            "scores": scores,
            "winner": final.winner(),
            "result": final.result(),
            "text": f"With {dead_text}: Black {scores[0]:g}, White {scores[1]:g} with komi: "
            f"{_result_text(final.result())}.",
        }


def _result_text(result: str) -> str:
    """Return a result as a short text, for example `Black wins by 4.5`."""
    if result in ("0", "?"):
        return "even" if result == "0" else "open"
    winner = SEAT_NAMES["BW".index(result[0])]
    return f"{winner} wins by {result[2:]}" if result[2:3].isdigit() else f"{winner} wins"


def _lead_text(lead: float) -> str:
    if lead == 0:
        return "Even"
    return f"{SEAT_NAMES[lead < 0]} is about {abs(lead):g} ahead"


ADAPTER = Go()

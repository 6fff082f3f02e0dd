"""Who wins a position of 9tka's movement phase if everybody plays perfectly, and by which moves: `ninetka solve`."""

from __future__ import annotations

from collections.abc import Iterator

from ninetka_agents.ninetka.endings import solve_max_n
from ninetka_agents.ninetka.force import can_force_win
from ninetka_agents.ninetka.solver.solver import Budget, solve
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.text import SEATS


def solution_text(game: Game, nodes: int = 10_000_000) -> Iterator[str]:
    """Yield what is known of a position, as lines of text.

    Two players are solved exactly (`ninetka_agents.ninetka.solver`). With three or four, max^n says what happens if
    every seat plays for its own victory, and who can force a win against all others together.

    Args:
        game: a position of the movement phase.
        nodes: most positions that each search may visit.

    Raises:
        ValueError: if the movement phase has not begun.
    """
    if game.num_players == 2:
        yield from _two_players(game, nodes)
    else:
        yield from _max_n(game, nodes)


def _two_players(game: Game, nodes: int) -> Iterator[str]:
    found = solve(game, Budget(nodes=nodes), margin=True)
    if found.winner < 0:
        yield f"not solved within {nodes} nodes"
        return
    margin = "" if found.margin is None else f", {abs(found.margin)} sections ahead if both play for that"
    yield f"{SEATS[found.winner]} wins{margin}"
    if not game.is_over and found.winner == game.to_move:
        yield f"winning moves: {_names(game, found.winning_moves().tolist())}"
    yield f"{found.nodes} nodes, {found.seconds:.2f} s"


def _max_n(game: Game, nodes: int) -> Iterator[str]:
    found = solve_max_n(game, nodes)
    if found.winner < 0:
        yield f"max^n: not solved within {nodes} nodes"
    else:
        yield f"max^n: {SEATS[found.winner]} wins"
        moves = [action for action in game.legal_actions().tolist() if found.winners[action] == game.to_move]
        if moves:
            yield f"moves after which {SEATS[game.to_move]} wins: {_names(game, moves)}"
    for seat in range(game.num_players):
        forced = can_force_win(game, seat, nodes)
        told = "unknown" if forced is None else "yes" if forced else "no"
        yield f"{SEATS[seat]} wins against all others together: {told}"


def _names(game: Game, actions: list[int]) -> str:
    return " ".join(map(game.action_name, actions)) or "none known"

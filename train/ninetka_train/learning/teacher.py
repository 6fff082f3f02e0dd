"""The search with playouts whose games a network learns from before it searches itself."""

from __future__ import annotations

from ninetka_agents.agent import make_agent
from ninetka_agents.parts import parts_of
from ninetka_agents.search.mcts import MctsAgent


def make_teacher(game: str, spec: str, simulations: int, exploration: float, threads: int = 1) -> MctsAgent:
    """Make the search.

    Args:
        game: that it plays, by name.
        spec: what it is, without simulations and threads; empty for the strongest that the game has.
        simulations: per move.
        exploration: its constant, unless it is a search by RAVE or the spec tells.
        threads: at most so many.

    Raises:
        ValueError: if the spec is no tree search, or wrong.
    """
    kind, _, text = (spec or parts_of(game).teacher).partition(":")
    options = list(filter(None, text.split(",")))
    told = {option.partition("=")[0] for option in options}
    if kind != "mcts" or told & {"simulations", "seconds", "threads"}:
        raise ValueError(
            f"alphazero.teacher={spec!r}: expected mcts and its options without simulations, seconds and threads"
        )
    if not told & {"rave", "exploration"}:
        options.append(f"exploration={exploration}")
    options += [f"simulations={simulations}", f"threads={threads}"]
    teacher = make_agent(f"{kind}:{','.join(options)}", game)
    assert isinstance(teacher, MctsAgent)
    return teacher

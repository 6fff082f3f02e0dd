"""The games of the benchmark: rounds of an agent against an opponent, and canary games that detect other moves.

Start reading at `make_round`.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Agent, make_agent
from ninetka_agents.ninetka.solver.solver import solve_batch
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.ninetka.rules import Phase
from ninetka_train.judging.arena import Match, make_match
from ninetka_train.judging.results import Results
from ninetka_train.judging.saved_games import game_records
from ninetka_train.judging.schedule import Openings
from ninetka_train.ninetka.benchmark.protocol import Protocol
from ninetka_train.ninetka.blunders import first_slide_positions


def make_round(protocol: Protocol, agent: Agent, opponent: str, num_players: int, number: int) -> Match:
    """Return the match of round `number`, counted from 0: one `agent` in every seat against `opponent` in the others.

    Raises:
        ValueError: if `agent` does not play 9tka.
    """
    seed = protocol.seed_of(num_players, opponent, number)
    return _make_match(
        protocol, [agent, make_agent(opponent)], protocol.round_openings(num_players, number), seed, num_players
    )


def make_single_game(protocol: Protocol, agent: Agent) -> Match:
    """Return a match of two games, played one after the other, in which the time of a move alone is measured."""
    openings = protocol.openings_of(2, 0, 1)
    return make_match([agent, "random"], 2, 2, game=protocol.game, seed=protocol.seed, batch=1, openings=openings)


def _make_match(protocol: Protocol, agents: list[Agent], openings: Openings, seed: int, num_players: int) -> Match:
    batch = protocol.seat_agent_batch if any(agent.has_seat_agents for agent in agents) else protocol.batch
    games = len(openings) * (num_players if len(agents) > 1 else 1)
    return make_match(agents, num_players, games, game=protocol.game, seed=seed, batch=batch, openings=openings)


def games_sha256(results: Results) -> str:
    """Return the SHA-256 of all actions and winners."""
    rows = (results.actions.astype("<i2"), results.winners.astype("<i2"))
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in rows)).hexdigest()


def play_canary(protocol: Protocol, opponent: str, num_players: int) -> Results:
    """Play the canary games of an opponent with itself.

    Their SHA-256 differs from the protocol's if moves depend on versions of libraries, on the processor, or on changes
    of this package.
    """
    openings = protocol.openings_of(num_players, 0, protocol.canary_openings)
    seed = protocol.seed_of(num_players, opponent, 0)
    return _make_match(protocol, [make_agent(opponent)], openings, seed, num_players).play()


def won_placements(protocol: Protocol, results: Results) -> list[bool | None]:
    """Judge the placements of the first agent in two-player games by perfect play.

    Returns:
        For each game, whether the first agent wins under perfect play from the first position of the movement phase;
        None if the solver did not solve this position. If a seat resigned before, its placements are lost.
    """
    found = results.winners.copy()  # stays for games that a seat resigned before the movement phase
    games, positions = _first_slides(results)
    found[games] = solve_batch(
        positions, protocol.placement_nodes, moves=False, memory_mb=protocol.placement_memory_mb
    )[0]
    is_won = (found >= 0) & (results.schedule.seatings[np.arange(len(found)), found.clip(0)] == 0)
    return [None if winner == UNFINISHED else bool(won) for winner, won in zip(found, is_won, strict=True)]


def _first_slides(results: Results) -> tuple[npt.NDArray[np.int64], StateArray]:
    """Return `first_slide_positions`, also of games in which a seat resigned at its first slide."""
    games, positions = first_slide_positions(results)
    others = np.setdiff1d([*results.events], games).astype(np.int64)
    last = [record.final().records for record in game_records(results, others.tolist())]
    states = np.concatenate([positions, *last])
    all_games = np.concatenate([games, others])
    is_sliding = states["phase"] == Phase.MOVEMENT
    return all_games[is_sliding], states[is_sliding]


def placements_sha256(won: list[bool | None]) -> str:
    """Return the SHA-256 of judgements of placements."""
    return hashlib.sha256(json.dumps(won).encode()).hexdigest()

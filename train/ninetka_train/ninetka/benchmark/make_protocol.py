"""Make the file of a protocol, with openings, ratings of the opponents and hashes of canary games.

    python -m ninetka_train.ninetka.benchmark.make_protocol --out FILE

Everything follows from the constants of this module. The opponents are rated in games with each other: one opponent in
every seat against another in all others, after random openings that the protocol does not have. Pairs whose strengths
are far apart are left out, because their games are nearly always won by the stronger one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import permutations
from pathlib import Path

import numpy as np

from ninetka_agents.agent import PerGameGenerator, RandomAgent, make_agent
from ninetka_env.core.batch import play_all
from ninetka_env.core.files import replace_file
from ninetka_env.core.random_streams import make_streams
from ninetka_env.core.registry import load_variant, with_players
from ninetka_train.judging.ratings import ELO_PER_NAT, fit_ratings
from ninetka_train.judging.schedule import Openings
from ninetka_train.ninetka.benchmark.matches import (
    games_sha256,
    make_round,
    placements_sha256,
    play_canary,
    won_placements,
)
from ninetka_train.ninetka.benchmark.protocol import FULL, QUICK, Opponent, Protocol, positions_sha256
from ninetka_train.ninetka.exact_positions import PLAYERS


def same_rounds(quick: int, full: int) -> dict[str, dict[str, int]]:
    """Return numbers of rounds against an opponent that are the same for all numbers of players."""
    return {tier: {str(players): count for players in PLAYERS} for tier, count in ((QUICK, quick), (FULL, full))}


OPPONENTS = (
    Opponent("random", same_rounds(1, 10)),
    Opponent("maxn", same_rounds(1, 10)),
    Opponent("mcts:simulations=20", same_rounds(1, 10)),
    Opponent("mcts:simulations=200", same_rounds(1, 10)),
    Opponent("mcts:simulations=2000", same_rounds(1, 10)),
    # These games take most of the time. With two players, this opponent is 378 Elo above the next one, so that strong
    # agents need more games against it than with three and four players, where it is 207 and 145 Elo above.
    Opponent("mcts:simulations=20000", {QUICK: {"2": 0, "3": 0, "4": 0}, FULL: {"2": 6, "3": 1, "4": 1}}),
)
OPENING_PLIES = 4
OPENINGS_PER_ROUND = {2: 30, 3: 20, 4: 15}
"""Number of openings, so that a round has 60 games."""
ROUNDS = 10
"""Maximum number of rounds: of the full tier, and for each pair of opponents that is rated."""
SLOW_ROUNDS = {"mcts:simulations=20000": 3}
"""Number of rounds for each pair that is rated with a slow opponent."""
MAX_DISTANCE = 2
"""Opponents whose places in the list differ by more are not rated against each other."""
RATING_SEED = 2
"""Seed of the games that rate the opponents; the protocol has another one."""

Progress = Callable[[str], None]


def make_protocol(progress: Progress = lambda line: None, rounds: int = ROUNDS) -> Protocol:
    """Make protocol 1.

    Args:
        progress: called with a line of text after each step.
        rounds: maximum number of rounds for each pair of opponents that is rated.
    """
    protocol = Protocol(
        version=1,
        game="ninetka",
        opponents=OPPONENTS,
        zero="maxn",
        ratings={},
        seed=1,
        batch=256,
        seat_agent_batch=16,
        openings_per_round={str(players): count for players, count in OPENINGS_PER_ROUND.items()},
        openings=_all_openings(1),
        placement_opponent="mcts:simulations=2000",
        placement_rounds={QUICK: 1, FULL: 3},
        placement_nodes=1_000_000,
        placement_memory_mb=64,
        positions={str(players): positions_sha256(players) for players in PLAYERS},
        position_seed=0,
        position_batch=256,
        canary_openings=8,
        canaries={},
        placement_canary="",
    )
    protocol = with_canaries(protocol)
    progress("canary games are played")
    rated = replace(protocol, seed=RATING_SEED, openings=_all_openings(RATING_SEED))
    ratings = {str(players): rate_opponents(rated, players, rounds, progress) for players in PLAYERS}
    return replace(protocol, ratings=ratings)


def with_canaries(protocol: Protocol) -> Protocol:
    """Return a protocol with the hashes of its canary games."""
    specs = [one.spec for one in protocol.opponents]
    played = {n: {spec: play_canary(protocol, spec, n) for spec in specs} for n in PLAYERS}
    canaries = {str(n): {spec: games_sha256(results) for spec, results in each.items()} for n, each in played.items()}
    judged = won_placements(protocol, played[2][protocol.placement_opponent])
    return replace(protocol, canaries=canaries, placement_canary=placements_sha256(judged))


def _all_openings(seed: int) -> dict[str, list[str]]:
    drawn = {players: draw_openings(players, ROUNDS * count, seed) for players, count in OPENINGS_PER_ROUND.items()}
    return {str(players): [" ".join(map(str, row)) for row in rows.tolist()] for players, rows in drawn.items()}


def draw_openings(num_players: int, count: int, seed: int) -> Openings:
    """Return (count, OPENING_PLIES) int16 different openings of random actions.

    They are not drawn with a generator of numpy, which does not promise the same numbers in later versions.
    """
    variant = with_players(load_variant("ninetka"), num_players)
    games = np.repeat(variant.game_class.start(variant).records, 2 * count)
    agent, streams = RandomAgent(), make_streams(10_000 * seed + 1000 * num_players, len(games))
    actions = np.empty((len(games), OPENING_PLIES), np.int16)
    for ply in range(OPENING_PLIES):
        chosen = agent.act(games, PerGameGenerator(streams))
        play_all(games, np.arange(len(games)), chosen, np.zeros(len(games), np.bool_))
        actions[:, ply] = chosen
    firsts = np.sort(np.unique(actions, axis=0, return_index=True)[1])
    assert len(firsts) >= count
    return actions[firsts[:count]]


def rate_opponents(protocol: Protocol, num_players: int, rounds: int, progress: Progress) -> dict[str, float]:
    """Let the opponents play each other; return their Elo ratings, to one decimal place."""
    specs, copies, wins = [one.spec for one in protocol.opponents], [], []
    for first, other, played in _rated_pairs(protocol.opponents, num_players, rounds):
        share, games = 0.0, 0
        agent = make_agent(specs[first])
        for number in range(played):
            results = make_round(protocol, agent, specs[other], num_players, number).play()
            share, games = share + float(results.shares[:, 0].sum()), games + len(results.winners)
        progress(f"{num_players} players: {specs[first]} won {share:g} of {games} games against {specs[other]}")
        copies.append([{first: 1, other: num_players - 1}.get(place, 0) for place in range(len(specs))])
        wins.append([{first: share, other: games - share}.get(place, 0) for place in range(len(specs))])
    fitted = ELO_PER_NAT * fit_ratings(copies, wins)
    zero = fitted[specs.index(protocol.zero)]
    return {spec: round(float(rating - zero), 1) for spec, rating in zip(specs, fitted, strict=True)}


def _rated_pairs(opponents: Sequence[Opponent], num_players: int, rounds: int) -> Iterator[tuple[int, int, int]]:
    """Yield pairs of opponents (the single one, that in the other seats) and the number of their rounds."""
    for first, other in permutations(range(len(opponents)), 2):
        is_again = num_players == 2 and first > other
        if abs(first - other) <= MAX_DISTANCE and not is_again:
            yield (
                first,
                other,
                min(rounds, *(SLOW_ROUNDS.get(opponents[place].spec, ROUNDS) for place in (first, other))),
            )


def protocol_json(protocol: Protocol) -> str:
    """Return the text of a protocol's file."""
    return json.dumps(asdict(protocol), indent=1) + "\n"


def main() -> None:
    """Make the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds per pair of opponents, for a first look")
    arguments = parser.parse_args()
    protocol = make_protocol(lambda line: print(line, flush=True), arguments.rounds)
    replace_file(arguments.out, [protocol_json(protocol).encode()])


if __name__ == "__main__":
    main()

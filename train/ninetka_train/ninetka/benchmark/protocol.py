"""The protocol of the benchmark: opponents, openings, seeds, and everything else that determines the games.

    protocol = load_protocol()
    protocol.version, protocol.sha256

A protocol is a file, `data/protocol-N.json`, that is never changed, because figures of different protocols cannot be
compared. `make_protocol.py` made it. What follows from code, such as the moves of the opponents, is compared with
hashes of games in the file; see `play_canary` in `matches.py`.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from ninetka_env.core.options import check_choice
from ninetka_train.judging.schedule import Openings
from ninetka_train.ninetka.exact_positions import PLAYERS

DATA = files("ninetka_train.ninetka.benchmark") / "data"
"""Folder of the protocols."""
LATEST = 1
"""The version of the latest protocol."""
QUICK, FULL = TIERS = ("quick", "full")
"""Quick: few games against each opponent. Full: ten times as many, and some against a stronger opponent."""
Step = tuple[int, str, int]
"""Which round of games: number of players, spec of the opponent, and number of the round, counted from 0."""


@dataclass(frozen=True)
class Opponent:
    """An opponent of the benchmark."""

    spec: str
    rounds: Mapping[str, Mapping[str, int]]
    """Number of rounds against this opponent, by tier and number of players; in a tier, all are 0 or none is."""


@dataclass(frozen=True)
class Protocol:
    """A version of the benchmark. In the dicts by number of players, keys are text, as in JSON."""

    version: int
    game: str
    """Spec of the game, without the number of players."""
    opponents: Sequence[Opponent]
    """The weakest first."""
    zero: str
    """The opponent whose rating is 0."""
    ratings: Mapping[str, Mapping[str, float]]
    """Elo ratings of the opponents, by number of players and spec."""
    seed: int
    """Determines the random numbers of all agents; see `seed_of`."""
    batch: int
    """Games played in lockstep."""
    seat_agent_batch: int
    """Games played in lockstep if the agent has a tree or a process for each game."""
    openings_per_round: Mapping[str, int]
    """Openings of a round, by number of players. An opening is played once for each seat of the agent."""
    openings: Mapping[str, Sequence[str]]
    """Openings, by number of players: the first actions of a game, such as `"51 72 69 37"`."""
    placement_opponent: str
    """The opponent in whose games the agent's placements are judged, with two players."""
    placement_rounds: Mapping[str, int]
    """Number of rounds in which placements are judged, by tier."""
    placement_nodes: int
    """Maximum number of solver nodes for a position after the placements."""
    placement_memory_mb: int
    """Maximum memory of the solver for each thread, in MiB."""
    positions: Mapping[str, str]
    """SHA-256 of the sets of exact positions, by number of players."""
    position_seed: int
    """Determines the agent's random numbers in the exact positions."""
    position_batch: int
    """Number of exact positions in a call of the agent."""
    canary_openings: int
    """Number of openings of the canary games."""
    canaries: Mapping[str, Mapping[str, str]]
    """SHA-256 of games of each opponent with itself, by number of players and spec."""
    placement_canary: str
    """SHA-256 of the judgements of the placements in the canary games of `placement_opponent` with two players."""

    @property
    def sha256(self) -> str:
        """SHA-256 of the protocol as canonical JSON: sorted keys, no spaces."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def opponents_of(self, tier: str) -> list[str]:
        """Return the specs of the opponents of a tier, the weakest first."""
        return [one.spec for one in self.opponents if any(one.rounds[tier].values())]

    def steps_of(self, tier: str) -> list[Step]:
        """Return the rounds of a tier, in the order in which they are played: those of the quick tier first."""
        quick = self.steps_of(QUICK) if tier != QUICK else []
        steps = [
            (players, one.spec, number)
            for players in PLAYERS
            for one in self.opponents
            for number in range(one.rounds[tier][str(players)])
        ]
        return quick + [step for step in steps if step not in quick]

    def num_games(self, tier: str, players: Sequence[int] = PLAYERS) -> int:
        """Return the number of games of a tier with these numbers of players."""
        numbers = [step[0] for step in self.steps_of(tier)]
        return sum(number * self.openings_per_round[str(number)] for number in numbers if number in players)

    def judges_placements(self, num_players: int, opponent: str, number: int, tier: str) -> bool:
        """Return whether the placements of a round are judged."""
        is_asked = num_players == 2 and opponent == self.placement_opponent
        return is_asked and number < self.placement_rounds[tier]

    def openings_of(self, num_players: int, first: int, count: int) -> Openings:
        """Return (count, plies) int16 openings from number `first` on."""
        rows = self.openings[str(num_players)][first : first + count]
        return np.array([row.split() for row in rows]).astype(np.int16)

    def round_openings(self, num_players: int, number: int) -> Openings:
        """Return the openings of a round, counted from 0."""
        count = self.openings_per_round[str(num_players)]
        return self.openings_of(num_players, number * count, count)

    def seed_of(self, num_players: int, opponent: str, number: int) -> int:
        """Return the seed of a round of games."""
        place = [one.spec for one in self.opponents].index(opponent)
        return 1_000_000 * self.seed + 100_000 * num_players + 1000 * place + number


@functools.cache
def load_protocol(version: int = LATEST) -> Protocol:
    """Return a protocol; raise `ValueError` unless `version` is the number of one."""
    check_choice("version", version, tuple(range(1, LATEST + 1)))
    return protocol_of(json.loads((DATA / f"protocol-{version}.json").read_text("utf-8")))


def protocol_of(values: Mapping[str, Any]) -> Protocol:
    """Return the protocol of the values of a file."""
    return Protocol(**{**values, "opponents": tuple(Opponent(**one) for one in values["opponents"])})


def positions_sha256(num_players: int) -> str:
    """Return the SHA-256 of the stored exact positions."""
    check_choice("num_players", num_players, PLAYERS)
    text = (files("ninetka_train.ninetka") / "data" / f"positions-{num_players}.csv").read_text("utf-8")
    return hashlib.sha256(text.encode()).hexdigest()

"""Run the benchmark: play all rounds, score all positions, and return the card.

Start reading at `run_benchmark`.
"""

from __future__ import annotations

import datetime
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ninetka_agents.agent import Agent, AgentLike, as_agent, check_agent_game
from ninetka_env.core.options import check_choice
from ninetka_env.core.text import one_line
from ninetka_train.judging.lockstep import MatchProgress
from ninetka_train.judging.results import Results
from ninetka_train.judging.texts import percent
from ninetka_train.machine import describe_machine, software_versions
from ninetka_train.ninetka.benchmark.card import Card, PositionErrors, Round
from ninetka_train.ninetka.benchmark.matches import (
    games_sha256,
    make_round,
    make_single_game,
    placements_sha256,
    play_canary,
    won_placements,
)
from ninetka_train.ninetka.benchmark.protocol import QUICK, TIERS, Protocol, Step, load_protocol, positions_sha256
from ninetka_train.ninetka.exact_positions import PLAYERS, load_positions
from ninetka_train.ninetka.position_score import score_positions

LIBRARIES = ("numpy", "numba", "llvmlite", "torch")
"""Libraries that can change moves; their versions are on the card."""
TIMED = r"[:,\[]seconds=(?!0*\.?0*(?:[,\]]|$))"
"""Pattern of the option with which agents of this package get a time limit."""


@dataclass(frozen=True)
class Callbacks:
    """Functions that are called while the benchmark runs."""

    on_games: MatchProgress = lambda done: None
    """Called with the number of finished games of the tier; running games count in part."""
    on_text: Callable[[str], None] = lambda text: None
    """Called with one line about each finished part."""
    on_result: Callable[[Card], None] = lambda card: None
    """Called after every new result, to save the card."""


SILENT = Callbacks()


def start_card(agent: AgentLike | str, tier: str = QUICK, protocol: Protocol | None = None) -> Card:
    """Return a card without results.

    Raises:
        ValueError: if the agent does not play 9tka, or there is no such tier.
    """
    check_choice("tier", tier, TIERS)
    player, used = as_agent(agent), protocol or load_protocol()
    check_agent_game(player, used.game)
    if not one_line(player.name, 1):
        raise ValueError("agent: its name is empty: expected a text")
    return Card(
        agent=player.name,
        protocol=used.version,
        protocol_sha256=used.sha256,
        tier=tier,
        files=sorted((Path(file).name, hashlib.sha256(Path(file).read_bytes()).hexdigest()) for file in player.files),
        versions=software_versions(LIBRARIES),
        is_timed=bool(re.search(TIMED, player.name)),
    )


def resumed_card(earlier: Card, new: Card) -> Card:
    """Return a card with the results of an earlier one, to continue with the tier of `new`.

    Raises:
        ValueError: if the earlier card is of another agent, protocol or version of the software, or of a larger tier.
    """
    for name in ("agent", "protocol_sha256", "files", "versions"):
        there, here = getattr(earlier, name), getattr(new, name)
        if there != here:
            raise ValueError(f"its {name}: {_difference(there, here)}: write another file")
    if TIERS.index(earlier.tier) > TIERS.index(new.tier):
        raise ValueError(f"it is of the tier {earlier.tier}, which cannot be continued as {new.tier}")
    kept = {name: getattr(earlier, name) for name in ("date", "milliseconds_alone")}
    kept |= {name: list(getattr(earlier, name)) for name in ("machines", "differences", "positions", "rounds")}
    return replace(new, author=new.author or earlier.author, method=new.method or earlier.method, **kept)


def _difference(there: object, here: object) -> str:
    """Return what differs between two values of a card."""
    if isinstance(there, dict) and isinstance(here, dict):
        names = [name for name in {**there, **here} if there.get(name) != here.get(name)]
        return ", ".join(f"{name} {there.get(name)}, here {here.get(name)}" for name in names)
    if isinstance(there, list) and isinstance(here, list):
        names = [" ".join(map(str, one)) for one in (*there, *here) if (one in there) != (one in here)]
        return f"{', '.join(names)} there or here only"
    return f"{there}, here {here}"


def run_benchmark(
    agent: AgentLike | str,
    tier: str = QUICK,
    *,
    card: Card | None = None,
    protocol: Protocol | None = None,
    callbacks: Callbacks = SILENT,
) -> Card:
    """Play all rounds of a tier, score all positions, and return the card.

    Args:
        agent: an agent of 9tka, or its spec.
        tier: `"quick"` or `"full"`.
        card: a card of this agent and tier, whose results are kept; see `start_card` and `resumed_card`.
        protocol: None for the latest one.
        callbacks: called while the benchmark runs.

    Raises:
        ValueError: if the agent does not play 9tka, there is no such tier, or the card is of another agent or tier.
        AgentError: if the agent fails or returns an illegal action.
    """
    player, used = as_agent(agent), protocol or load_protocol()
    card = card or start_card(player, tier, used)
    if (card.agent, card.tier, card.protocol_sha256) != (player.name, tier, used.sha256):
        raise ValueError(f"card: of {card.agent}, tier {card.tier}: expected one of {player.name}, tier {tier}")
    if not card.is_complete(used):
        card.machines = sorted({*card.machines, _machine(player)})
        _add_differences(card, used, callbacks)
    for players in sorted(set(PLAYERS) - {one.players for one in card.positions}):
        _add_positions(card, used, player, players, callbacks)
    if card.milliseconds_alone is None:
        seconds, moves = _time_of(make_single_game(used, player).play())
        card.milliseconds_alone = 1000 * seconds / moves if moves else 0.0
        _report(card, callbacks)
    for step in card.missing_steps(used):
        _add_round(card, used, player, step, callbacks)
    return card


def _machine(agent: Agent) -> str:
    """Return a description of the machine, with the device of the agent's networks if it is no CPU."""
    text = describe_machine()
    if any(file.suffix == ".safetensors" for file in agent.files):
        from ninetka_agents.net_agent import best_device  # imports torch

        if (device := best_device().type) != "cpu":
            text += f", networks on {device}"
    return text


def _report(card: Card, callbacks: Callbacks) -> None:
    card.date = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    callbacks.on_result(card)


def _add_differences(card: Card, protocol: Protocol, callbacks: Callbacks) -> None:
    """Play the canary games, and write on the card what differs from the protocol."""
    callbacks.on_text("canary games: the opponents play themselves")
    found = set(card.differences)
    for players in PLAYERS:
        if positions_sha256(players) != protocol.positions[str(players)]:
            found.add(f"positions of {players} players")
        for spec in protocol.opponents_of(card.tier):
            results = play_canary(protocol, spec, players)
            if games_sha256(results) != protocol.canaries[str(players)][spec]:
                found.add(f"games of {spec}, {players} players")
            is_judged = players == 2 and spec == protocol.placement_opponent
            if is_judged and placements_sha256(won_placements(protocol, results)) != protocol.placement_canary:
                found.add("judgements of placements")
    card.differences = sorted(found)
    callbacks.on_text(f"canary games: {', '.join(card.differences) + ' differ' if found else 'as in the protocol'}")


def _add_positions(card: Card, protocol: Protocol, agent: Agent, num_players: int, callbacks: Callbacks) -> None:
    score = score_positions(agent, load_positions(num_players), protocol.position_seed, protocol.position_batch)
    positions, errors = (sum(getattr(stage, name) for stage in score.stages) for name in ("positions", "errors"))
    card.positions.append(
        PositionErrors(num_players, score.rate, score.interval, positions, errors, score.wins, score.wins_given_away)
    )
    callbacks.on_text(f"{num_players} players: errors in {percent(score.rate)} % of {positions} positions")
    _report(card, callbacks)


def _add_round(card: Card, protocol: Protocol, agent: Agent, step: Step, callbacks: Callbacks) -> None:
    players, opponent, number = step
    played = sum(one.games for one in card.rounds)
    results = make_round(protocol, agent, opponent, players, number).play(
        progress=lambda done: callbacks.on_games(played + done)
    )
    seconds, moves = _time_of(results)
    judged = protocol.judges_placements(*step, card.tier)
    card.rounds.append(
        Round(
            *step,
            wins=np.bincount(results.schedule.group_of, results.shares[:, 0]).tolist(),
            moves=moves,
            seconds=seconds,
            sha256=games_sha256(results),
            won_placements=won_placements(protocol, results) if judged else None,
        )
    )
    if (players, opponent) not in {one[:2] for one in card.missing_steps(protocol)}:
        rounds = [one for one in card.rounds if (one.players, one.opponent) == (players, opponent)]
        games, wins = sum(one.games for one in rounds), sum(sum(one.wins) for one in rounds)
        callbacks.on_text(f"{players} players: won {percent(wins / games)} % of {games} games against {opponent}")
    _report(card, callbacks)


def _time_of(results: Results) -> tuple[float, int]:
    """Return the seconds in which the first agent chose its moves, and the number of the moves."""
    return float(results.times.seconds[0].sum()), int(results.times.moves[0].sum())

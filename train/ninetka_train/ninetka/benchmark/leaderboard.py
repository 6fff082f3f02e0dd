"""The leaderboard: a Markdown page that compares the cards of several agents.

Start reading at `read_cards` and `leaderboard_page`.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from ninetka_agents.agent import MAX_SPEC_LENGTH
from ninetka_env.core.text import one_line
from ninetka_train.judging.fixed_pool import FixedPoolRating
from ninetka_train.judging.ratings_page import markdown_table
from ninetka_train.judging.texts import elo_text, range_text, share_text
from ninetka_train.ninetka.benchmark.card import Card, Figures, PlayersFigures, figures_of, quick_part, read_card
from ninetka_train.ninetka.benchmark.protocol import FULL, TIERS, Protocol, load_protocol
from ninetka_train.ninetka.exact_positions import PLAYERS

MIN_SEEDS = 5
"""Minimum number of networks of a training method of which the page shows the interquartile mean."""
MAX_NAME_LENGTH = 100


class Entry(NamedTuple):
    """A complete card with its figures."""

    path: Path
    card: Card
    figures: Figures
    is_verified: bool = False
    """Whether another run of the same agent gave the same results."""

    def rating(self, players: int) -> FixedPoolRating:
        """Return the rating with this number of players."""
        return self.figures.players[players].rating


def read_cards(folder: Path) -> tuple[list[Entry], list[str]]:
    """Read all cards of a folder. Of a full card that is not complete, the quick part is taken.

    Returns:
        The complete cards without repetitions, see `_without_repetitions`; and for each JSON file that is left out, a
        text that says why.

    Raises:
        OSError: if a file cannot be read.
        ValueError: if there is no complete card.
    """
    entries, left_out = [], []
    for path in sorted(path for path in folder.iterdir() if path.suffix.lower() == ".json" and path.is_file()):
        try:
            card = read_card(path)
        except ValueError as error:
            left_out.append(str(error))
            continue
        protocol = load_protocol(card.protocol)
        if not card.is_complete(protocol):
            card = quick_part(card, protocol)
        if card.is_complete(protocol):
            entries.append(Entry(path, card, figures_of(card, protocol)))
        else:
            left_out.append(f"{path}: it is not complete")
    if not entries:
        raise ValueError(f"{folder}: it has no complete card, a JSON file that `ninetka benchmark AGENT --out` writes")
    return _without_repetitions(entries), left_out


def _without_repetitions(entries: Iterable[Entry]) -> list[Entry]:
    """Return one entry for each result; it is verified if another run had the same one.

    A quick card is left out if a full card of the same agent has the same games.
    """
    same: dict[object, list[Entry]] = defaultdict(list)
    for entry in entries:
        same[_agent_key(entry.card), entry.card.tier, _results_key(entry.card)].append(entry)
    found = []
    for group in same.values():
        is_verified = any(_are_two_runs(one.card, other.card) for one, other in combinations(group, 2))
        found.append(group[0]._replace(is_verified=is_verified))
    full = [entry.card for entry in found if entry.card.tier == FULL]
    return [entry for entry in found if not any(_is_part_of(entry.card, card) for card in full)]


def _agent_key(card: Card) -> object:
    return card.agent, card.author, card.method, card.protocol, tuple(card.files), card.is_official


def _results_key(card: Card) -> object:
    """Return the results without times, and without the last digits of rates, which depend on the processor."""
    rounds = [replace(one, seconds=0.0) for one in sorted(card.rounds, key=lambda one: one.step)]
    positions = sorted(
        (one.players, one.errors, one.wins, one.wins_given_away, round(one.rate, 9)) for one in card.positions
    )
    return str(rounds), str(positions)


def _are_two_runs(card: Card, other: Card) -> bool:
    """Return whether no round took the same time on two cards: a copied round did."""
    times = {one.step: one.seconds for one in other.rounds}
    return all(one.seconds != times[one.step] for one in card.rounds)


def _is_part_of(card: Card, full: Card) -> bool:
    """Return whether a quick card has the agent and only games of a full one."""
    quick_games, games = ({(one.step, one.sha256) for one in each.rounds} for each in (card, full))
    return quick_games < games and _agent_key(card) == _agent_key(full)


def leaderboard_page(entries: Sequence[Entry], folder: Path, page: Path) -> str:
    """Return the page, with one table for each protocol and number of players.

    Args:
        entries: the cards, see `read_cards`.
        folder: the folder of the cards, which the page quotes.
        page: the path of the page, to which links are relative.
    """
    command = shlex.join(["ninetka", "benchmark", "--page", folder.as_posix(), "--out", page.as_posix()])
    about = _linked("benchmark", "benchmark.md", page)
    lines = ["# Leaderboard", "", f"Results of the {about} of 9tka, written by `{command}`.", ""]
    for version in sorted({entry.card.protocol for entry in entries}, reverse=True):
        chosen = [entry for entry in entries if entry.card.protocol == version and entry.card.is_official]
        lines += [_legend(load_protocol(version), page), ""] if chosen else []
        for players in PLAYERS if chosen else ():
            lines += [f"## Protocol {version}, {players} players", "", _games_line(version, players), ""]
            lines += [*_table(chosen, players, page), ""]
        lines += _methods([entry for entry in chosen if entry.card.method], version)
    others = [entry for entry in entries if not entry.card.is_official]
    if others:
        lines += ["## Not official", "", "Something differed from the protocol:", ""]
        lines += [f"- {_agent(one.card)}: {', '.join(map(_plain, one.card.differences))}" for one in others]
        lines.append("")
    return "\n".join(lines)


def _linked(text: str, file: str, page: Path) -> str:
    """Return a link to a page of the documentation if it lies next to the leaderboard."""
    return f"[{text}]({file})" if page.with_name(file).exists() else text


def _games_line(version: int, players: int) -> str:
    protocol = load_protocol(version)
    counts = ", ".join(f"{protocol.num_games(tier, [players]):,} ({tier})" for tier in TIERS)
    return f"Number of games: {counts}. Equal agents win {100 / players:.0f} %."


def _table(entries: Sequence[Entry], players: int, page: Path) -> list[str]:
    specs = load_protocol(entries[0].card.protocol).opponents_of(FULL)
    columns = [
        "agent",
        "Elo [95 %]",
        "wins %",
        "errors % [95 %]",
        *["placements % [95 %]"] * (players == 2),
        "ms",
        "card",
    ]
    rows = []
    for entry in sorted(entries, key=lambda entry: -_place(entry.rating(players))):
        figures = entry.figures.players[players]
        row = [_agent(entry.card), rating_text(figures.rating), _shares(figures, specs)]
        row += [share_text(figures.errors.rate, figures.errors.interval)]
        row += [_placements(entry.figures)] * (players == 2)
        times = (entry.card.milliseconds_alone, entry.figures.milliseconds)
        row += [" / ".join(map(_milliseconds, times))]
        rows.append([*row, _link(entry, page)])
    return markdown_table(columns, rows, is_code=False)


def _place(rating: FixedPoolRating) -> float:
    """Return the number by which agents are sorted: the rating, or its only bound."""
    return next(bound for bound in (rating.elo, rating.low, rating.high) if bound is not None)


def rating_text(rating: FixedPoolRating) -> str:
    """Format a rating and its interval, or its only bound."""
    if rating.elo is None or rating.low is None or rating.high is None:
        return range_text(rating.low, rating.high, sign="+")
    return elo_text(rating.elo, (rating.low, rating.high))


def _shares(figures: PlayersFigures, specs: Iterable[str]) -> str:
    """Return the whole percentages of games won against each opponent, `-` for opponents of another tier."""
    shares = [figures.shares.get(spec) for spec in specs]
    return " / ".join("-" if one is None else f"{100 * one.share:.0f}" for one in shares)


def _placements(figures: Figures) -> str:
    found = figures.placements
    return f"{share_text(found.share, found.interval)} of {found.cases} / {figures.judged}" if found else "-"


def _milliseconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _agent(card: Card) -> str:
    name = re.sub(r"[`|]", "?", one_line(card.agent, MAX_SPEC_LENGTH))  # they would end the code or the cell
    if len(name) > MAX_NAME_LENGTH:
        name = f"{name[: MAX_NAME_LENGTH // 2]} ... {name[-MAX_NAME_LENGTH // 2 :]}"
    return f"`{name}`{_by(card.author)}{', timed' if card.is_timed else ''}"


def _by(author: str) -> str:
    return f" by {_plain(author)}" if author else ""


def _plain(text: str) -> str:
    """Return a text in which neither Markdown nor HTML has a meaning."""
    return re.sub(r"[^\w ,-]|_", lambda found: f"&#{ord(found[0])};", one_line(text, MAX_NAME_LENGTH))


def _link(entry: Entry, page: Path) -> str:
    path = Path(os.path.relpath(entry.path, page.parent)).as_posix()
    verified = ", verified" if entry.is_verified else ""
    return f"[{entry.card.tier}]({quote(path)}){verified}"


def _methods(entries: Sequence[Entry], version: int) -> list[str]:
    """Return a table of training methods, each with the cards of several networks; empty if there is none."""
    methods: dict[tuple[str, str, str], dict[object, Entry]] = defaultdict(dict)
    for entry in entries:
        card = entry.card
        weights = tuple(digest for _, digest in card.files) or card.agent
        methods[card.method, card.author, card.tier].setdefault(weights, entry)  # one network counts once
    rows = [
        [
            _plain(method) + _by(author),
            tier,
            str(len(group)),
            *(_method_rating([*group.values()], players) for players in PLAYERS),
        ]
        for (method, author, tier), group in sorted(methods.items())
    ]
    if not rows:
        return []
    columns = ["method", "tier", "networks", *(f"Elo, {players} players" for players in PLAYERS)]
    text = f"Interquartile means of the ratings of at least {MIN_SEEDS} networks, trained with different seeds:"
    table = markdown_table(columns, rows, is_code=False)
    return [f"## Protocol {version}, training methods", "", text, "", *table, ""]


def _method_rating(entries: Sequence[Entry], players: int) -> str:
    ratings = [entry.rating(players).elo for entry in entries]
    known = [rating for rating in ratings if rating is not None]
    return elo_text(interquartile_mean(known), None) if len(known) == len(ratings) >= MIN_SEEDS else "-"


def interquartile_mean(values: Sequence[float]) -> float:
    """Return the mean without the lowest and the highest quarter (Agarwal et al., NeurIPS 2021)."""
    cut = len(values) // 4
    middle = sorted(values)[cut : len(values) - cut]
    return sum(middle) / len(middle)


def _legend(protocol: Protocol, page: Path) -> str:
    """Return a list that explains the columns of a protocol's tables."""
    opponents = " / ".join(f"`{spec}`" for spec in protocol.opponents_of(FULL))
    positions = _linked("positions with exact values", "positions.md", page)
    lines = [
        f"Elo: the rating on the scale of the protocol, where `{protocol.zero}` is 0. Each number of players has its "
        "own scale.",
        f"Wins: share of the games won by one such agent against {opponents} in all other seats. Quick cards have no "
        "games against the last one.",
        f"Errors: in the {positions}.",
        f"Placements: share of the solved games against `{protocol.placement_opponent}` that perfect play wins for the "
        "agent after all stones are placed; number of solved / all games.",
        "ms: time per move, alone (with two players) / in batches (all numbers of players); not part of the results, "
        "because machines differ.",
        "Verified: another run gave the same moves in all games, and the same results in the positions.",
    ]
    return "\n".join(f"- {line}" for line in lines)

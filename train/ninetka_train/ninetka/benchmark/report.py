"""Print the figures of a card as a table."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from ninetka_env.core.text import one_line
from ninetka_train.judging.report import new_table, report_console
from ninetka_train.judging.texts import elo_text, percent, range_text, share_text
from ninetka_train.ninetka.benchmark.card import Card, Figures, PlayersFigures, figures_of
from ninetka_train.ninetka.benchmark.protocol import Protocol
from ninetka_train.ninetka.exact_positions import PLAYERS


def print_card(card: Card, protocol: Protocol, console: Console | None = None) -> None:
    """Print the figures of a complete card: a column for each number of players.

    Args:
        card: the card.
        protocol: its protocol.
        console: where to print; by default stdout.
    """
    console, figures = console or report_console(), figures_of(card, protocol)
    note = f"Elo: {protocol.zero} is 0 on the scale of protocol {protocol.version}. % against: one {card.agent}, "
    note += "that opponent in all other seats. errors: in positions with exact values."
    table = new_table(f"{card.agent}, {card.tier} tier", "", *(f"{n} players" for n in PLAYERS), note=note)

    def add(label: str, cell: Callable[[PlayersFigures], str]) -> None:
        table.add_row(*map(Text, [label, *(cell(figures.players[number]) for number in PLAYERS)]))

    add("Elo", lambda one: "-" if one.rating.elo is None else elo_text(one.rating.elo, None))
    add("  95 %", lambda one: range_text(one.rating.low, one.rating.high, sign="+"))
    for spec in protocol.opponents_of(card.tier):
        add(f"% against {spec}", lambda one, spec=spec: percent(one.shares[spec].share))  # type: ignore[misc]
    add("errors %", lambda one: percent(one.errors.rate))
    add("  95 %", lambda one: range_text(100 * one.errors.interval[0], 100 * one.errors.interval[1], 1))
    add("wins given away", lambda one: f"{one.errors.wins_given_away} of {one.errors.wins}")
    console.print(table)
    console.print(Text("\n".join(_lines(card, figures))))


def _lines(card: Card, figures: Figures) -> list[str]:
    lines = [""]
    if found := figures.placements:
        share = share_text(found.share, found.interval, " %")
        lines.append(f"2 players: after the placements, perfect play wins {share} of the games for the agent")
        lines.append(f"({found.cases} of {figures.judged} games solved)")
    alone, batched = card.milliseconds_alone or 0, figures.milliseconds or 0
    lines.append(f"{alone:.3g} ms a move alone, {batched:.3g} ms in batches; {one_line('; '.join(card.machines), 300)}")
    lines.append(f"SHA-256 of all games: {card.games_sha256}")
    return lines

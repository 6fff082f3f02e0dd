"""The command `benchmark`: measure an agent of 9tka by a frozen protocol, and compare the results of several agents."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ninetka_train.commands import match_runner
from ninetka_train.commands.completion import complete_agent
from ninetka_train.exit_handling import exit_on_error, fail, stopped_by_signals

if TYPE_CHECKING:  # slow modules are imported inside the commands, so that --help is fast
    from ninetka_agents.agent import Agent
    from ninetka_train.ninetka.benchmark.card import Card


@stopped_by_signals()
def benchmark(
    agent: Annotated[
        str | None,
        typer.Argument(
            metavar="AGENT",
            help="The agent, such as net:simulations=64 or python:MODULE:NAME.",
            autocompletion=complete_agent,
        ),
    ] = None,
    tier: Annotated[
        str | None,
        typer.Option(
            "--tier",
            metavar="quick|full",
            help="quick, the default: 60 games for each opponent and number of players; full: 600, and some against"
            " a stronger opponent.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write all results, the card, to this JSON file; with --page, the page.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue with the results in the file of --out, also as another tier.")
    ] = False,
    author: Annotated[str, typer.Option("--author", metavar="TEXT", help="Author of the agent, for the page.")] = "",
    method: Annotated[
        str,
        typer.Option("--method", metavar="TEXT", help="Training method, the same for networks of several seeds."),
    ] = "",
    page: Annotated[
        Path | None,
        typer.Option("--page", metavar="FOLDER", help="Play no games: compare the cards of a folder on a page."),
    ] = None,
) -> None:
    """Measure an agent of 9tka by a protocol that never changes.

    With 2, 3 and 4 players, the agent plays games against opponents of five strengths (full: six), and chooses actions
    in positions with exact values. The result is an Elo rating for each number of players, on the scale of the
    protocol: maxn is 0.

    After Ctrl-C or SIGTERM, `--out FILE --resume` continues.
    """
    if page:
        given = {"AGENT": agent, "--tier": tier, "--resume": resume, "--author": author, "--method": method}
        _write_page(page, out, [name for name, value in given.items() if value])
        return
    if not agent:
        fail("expected an agent, such as ninetka benchmark maxn, or --page FOLDER; ninetka agents lists the agents")
    with exit_on_error("benchmarks"):
        from ninetka_agents.agent import make_agent
        from ninetka_train.ninetka.benchmark.protocol import QUICK, load_protocol
        from ninetka_train.ninetka.benchmark.report import print_card

        player = make_agent(agent)
        card = _prepare_card(player, tier or QUICK, out, resume, author.strip(), method.strip())
        _run(card, player, out)
        print_card(card, load_protocol(card.protocol))
        if out:  # a pipe gets the card once; a card that was complete may get another author
            _write(card, out)
            typer.echo(f"wrote {out}")
    if not card.is_official:
        typer.echo(f"note: not official; this differs from the protocol: {', '.join(card.differences)}", err=True)


def _prepare_card(agent: Agent, tier: str, out: Path | None, resume: bool, author: str, method: str) -> Card:
    """Return a card without results, or with those of an earlier run."""
    from ninetka_env.core.text import one_line
    from ninetka_train.commands.output_files import check_outputs
    from ninetka_train.ninetka.benchmark.card import read_card
    from ninetka_train.ninetka.benchmark.runner import resumed_card, start_card

    card = replace(start_card(agent, tier), author=author, method=method)
    check_outputs([("--out", out)])
    if resume and not out:
        raise ValueError("--resume continues with the results in the file of --out: give both")
    if not out or not out.is_file() or not out.stat().st_size:
        return card
    if not resume:  # its results may have taken hours
        raise ValueError(f"--out {out}: the file exists: add --resume to continue its card, or name another file")
    try:
        return resumed_card(read_card(out), card)
    except ValueError as error:
        raise ValueError(f"{out} cannot be continued: {one_line(str(error))}") from None


def _write(card: Card, out: Path) -> None:
    from ninetka_env.core.files import replace_file
    from ninetka_train.ninetka.benchmark.card import card_json
    from ninetka_train.ninetka.benchmark.protocol import load_protocol

    replace_file(out, [card_json(card, load_protocol(card.protocol)).encode()])


def _run(card: Card, agent: Agent, out: Path | None) -> None:
    """Run the benchmark with a progress display, and write the card after every result."""
    from ninetka_env.core.files import is_special
    from ninetka_train.judging.lockstep import AgentError
    from ninetka_train.ninetka.benchmark.protocol import load_protocol
    from ninetka_train.ninetka.benchmark.runner import Callbacks, run_benchmark

    games = load_protocol(card.protocol).num_games(card.tier)

    def save(latest: Card) -> None:
        if out and not is_special(out):
            _write(latest, out)

    with match_runner.exit_on_match_error(games):
        try:
            with match_runner.progress(games) as bar:
                run_benchmark(agent, card.tier, card=card, callbacks=Callbacks(bar.show, bar.print_line, save))
        except (KeyboardInterrupt, AgentError, OSError) as reason:
            played = sum(one.games for one in card.rounds)
            hint = "nothing is kept without --out FILE"
            if out:
                is_kept = out.is_file() and out.stat().st_size
                hint = f"continue with --out {shlex.quote(str(out))} --resume" if is_kept else "nothing is kept yet"
            typer.echo(f"stopped after {played} of {games} games: {hint}", err=True)
            if isinstance(reason, KeyboardInterrupt):
                raise typer.Exit(match_runner.exit_status(reason)) from None
            raise


def _write_page(folder: Path, out: Path | None, given: list[str]) -> None:
    """Write the leaderboard."""
    with exit_on_error("pages"):
        from ninetka_env.core.files import replace_file
        from ninetka_train.commands.output_files import check_outputs
        from ninetka_train.ninetka.benchmark.leaderboard import leaderboard_page, read_cards

        if given:
            raise ValueError(f"{given[0]}: --page plays no games, so this has no meaning: leave it out")
        if not out:
            raise ValueError("--page needs the file to write: add --out leaderboard.md")
        if not folder.is_dir():
            raise ValueError(f"--page {folder}: there is no such folder")
        check_outputs([("--out", out)], folder.glob("*.json"))
        entries, left_out = read_cards(folder)
        for text in left_out:
            typer.echo(f"note: left out: {text}", err=True)
        replace_file(out, [leaderboard_page(entries, folder, out).encode(errors="backslashreplace")])
    typer.echo(f"wrote {out}")

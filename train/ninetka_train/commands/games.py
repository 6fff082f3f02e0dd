"""The commands `replay`, `analyze`, `solve`, `study` and `gtp`: show, study and play games."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ninetka_train.commands.completion import complete_agent, complete_game
from ninetka_train.exit_handling import exit_on_error, fail, integer_option

RecordFile = Annotated[Path, typer.Argument(metavar="FILE", help="Games as `evaluate --save-games` writes them.")]
Number = Annotated[int, integer_option("--number", help="Which game of the file, counted from 1.")]


def replay(
    file: RecordFile,
    number: Number = 1,
    game: Annotated[
        str | None,
        typer.Option("--game", metavar="SPEC", help="python:MODULE:NAME if the file has games of your own."),
    ] = None,
    ply: Annotated[int | None, integer_option("--ply", help="Only the position after this many plies.")] = None,
    png: Annotated[
        Path | None,
        typer.Option("--png", metavar="FILE", help="Write a picture of the position (the last one without --ply)."),
    ] = None,
    gif: Annotated[
        Path | None, typer.Option("--gif", metavar="FILE", help="Write an animation of the whole game.")
    ] = None,
    dark: Annotated[bool, typer.Option("--dark", help="Draw on a dark page, with --png or --gif.")] = False,
) -> None:
    """Show a saved game: print its positions, or write a picture or an animation."""
    from ninetka_env.api.record_files import find_record, position_at, replay_text
    from ninetka_env.core.registry import load_variant
    from ninetka_train.reporting.boards import print_boards

    try:
        wanted = game and load_variant(game).definition  # imports the module of a game of your own
        _check_pictures(file, ply, png, gif, dark)
        record = find_record(file, number)
        if wanted and record.variant.definition is not wanted:
            raise ValueError(f"{file}: game {number} is of {record.variant.definition.title}, not of {wanted.title}")
        if gif:
            from ninetka_env.api.animation import save_gif

            save_gif(record, gif, theme="dark" if dark else "light")
        elif png:
            from ninetka_env.api.rendering import save_png

            save_png(position_at(record, ply), png, "dark" if dark else "light")
        else:
            print_boards(lambda color: replay_text(record, ply, color=color))
        if picture := gif or png:
            typer.echo(f"wrote {picture}")
    except (ValueError, OSError, ImportError) as error:
        fail(error)


def _check_pictures(file: Path, ply: int | None, png: Path | None, gif: Path | None, dark: bool) -> None:
    """Raise `ValueError` or `OSError` if `replay` cannot write the picture or animation that these options ask for."""
    from ninetka_train.commands.output_files import check_outputs

    _check_ending("--png", png, (".png",))
    _check_ending("--gif", gif, (".gif",))
    if gif and (png or ply is not None):
        raise ValueError("--gif shows the whole game: it cannot be combined with --ply or --png")
    if dark and not (png or gif):
        raise ValueError("--dark changes pictures and animations: it needs --png FILE or --gif FILE")
    check_outputs([("--png", png), ("--gif", gif)], [file])


def _check_ending(option: str, path: Path | None, endings: Sequence[str]) -> None:
    """Raise `ValueError` if a path is given whose ending is not one of `endings`."""
    if path and path.suffix.lower() not in endings:
        raise ValueError(f"{option} {path}: expected a name that ends in {' or '.join(endings)}")


def analyze(
    file: RecordFile,
    number: Number = 1,
    nodes: Annotated[
        int, integer_option("--nodes", help="Maximum number of nodes that the solver visits per position.")
    ] = 2_000_000,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the analysis to this file.")
    ] = None,
    png: Annotated[
        Path | None,
        typer.Option("--png", metavar="FILE.png", help="Write a picture of the game, also FILE-dark.png."),
    ] = None,
) -> None:
    """Show which slides of a two-player game of 9tka gave the win away.

    The solver decides which slides keep the win under perfect play.
    """
    import json

    from ninetka_env.api.record_files import find_record
    from ninetka_env.core.files import StrPath, replace_files
    from ninetka_train.commands.output_files import check_outputs
    from ninetka_train.ninetka.analyze import analysis_dict, analysis_text, draw_analysis
    from ninetka_train.ninetka.analyze import analyze as run
    from ninetka_train.reporting.style import picture_pair, picture_paths

    contents: dict[StrPath, list[bytes]] = {}
    with exit_on_error("pictures"):
        record = find_record(file, number)
        if png:  # before the analysis, which may take minutes
            importlib.import_module("matplotlib")
        _check_ending("--png", png, (".png",))
        light, dark = picture_paths(png) if png else (None, None)
        check_outputs([("--json", json_file), ("--png", light), ("--png", dark)], [file])
        analysis = run(record, nodes)
        typer.echo("\n".join(analysis_text(analysis)))
        if json_file:
            contents[json_file] = [(json.dumps(analysis_dict(analysis), indent=2) + "\n").encode()]
        if png:
            contents |= picture_pair(png, partial(draw_analysis, analysis))
        replace_files(contents)
    for written in contents:
        typer.echo(f"wrote {written}", err=True)


def solve(
    file: RecordFile,
    number: Number = 1,
    ply: Annotated[
        int | None, integer_option("--ply", help="The position after this many plies; by default the last one.")
    ] = None,
    nodes: Annotated[
        int, integer_option("--nodes", help="Maximum number of positions that the search visits.")
    ] = 10_000_000,
) -> None:
    """Show who wins a slide position of 9tka under perfect play, and how."""
    from ninetka_env.api.record_files import find_record, position_at

    try:
        position = position_at(find_record(file, number), ply)
        if position.name != "ninetka":
            raise ValueError(f"{file}: only games of 9tka can be solved; this one is of {position.definition().title}")
        from ninetka_train.ninetka.analyze import solution_text

        for line in solution_text(position, nodes):  # type: ignore[arg-type]  # a Game of 9tka
            typer.echo(line)
    except (ValueError, OSError) as error:
        fail(error)


def study(
    out: Annotated[
        Path,
        typer.Option("--out", metavar="PATH", help="Write PATH.md, .png, -dark.png and .json, such as docs/study."),
    ],
    games: Annotated[int, integer_option("--games", "-g", help="Games per agent.")] = 100,
    seed: Annotated[int, integer_option("--seed", help="Determines every game.")] = 0,
) -> None:
    """Study perfect play in two-player 9tka; this takes some minutes."""
    with exit_on_error("studies"):
        import ninetka_train.ninetka.study as module
        from ninetka_env.core.files import with_extension
        from ninetka_train.commands.output_files import check_outputs, named_files

        importlib.import_module("matplotlib")  # report a missing package before playing for minutes
        files = named_files("--out", out, (".md", ".png", "-dark.png", ".json"))
        out.parent.mkdir(parents=True, exist_ok=True)
        check_outputs(("--out", file) for file in files)
        found = module.study(games, seed, lambda what: typer.echo(what, err=True))
        module.write_study(found, out)
    typer.echo(f"wrote {with_extension(out, '.md')}, .png, -dark.png and .json")


def gtp(
    agent: Annotated[
        str,
        typer.Option(
            "--agent",
            metavar="SPEC",
            help="The agent that plays, such as mcts:simulations=10000.",
            autocompletion=complete_agent,
        ),
    ] = "mcts:simulations=10000,rave,playouts=heavy,reuse",
    game: Annotated[
        str,
        typer.Option(
            "--game",
            metavar="SPEC",
            help="The variant, such as go:komi=6.5,ko=positional.",
            autocompletion=complete_game,
        ),
    ] = "go",
    seed: Annotated[
        int | None, integer_option("--seed", help="Seed of the agent's random numbers; by default a new one.")
    ] = None,
    log: Annotated[
        Path | None, typer.Option("--log", metavar="FILE", help="Append all commands and responses to this file.")
    ] = None,
    resign: Annotated[
        float, typer.Option("--resign", metavar="SHARE", help="Resign below this expected share of wins; 0: never.")
    ] = 0.05,
    ponder: Annotated[
        bool, typer.Option("--ponder", help="Think during the opponent's turn; needs an agent with reuse.")
    ] = False,
) -> None:
    """Run an agent as a Go engine for Sabaki, GoGui and other GTP programs."""
    with exit_on_error("engines"):
        from ninetka_agents.go.gtp.engine import serve
        from ninetka_env import __version__
        from ninetka_train.commands.output_files import check_outputs

        check_outputs([("--log", log)])
        serve(agent, game, __version__, seed, log, resign, ponder)

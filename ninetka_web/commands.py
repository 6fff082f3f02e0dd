"""The commands `ninetka play` and `ninetka stats`; `ninetka_train.cli` registers them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NoReturn

import typer

Data = Annotated[Path | None, typer.Option("--data", metavar="FILE", help="File of tables and finished games.")]


def play(
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on; 127.0.0.1: this computer only.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="Port; 0 picks a free one.")
    ] = 9009,
    data: Data = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open the page.")] = False,
) -> None:
    """Play in the browser, against people and agents, with analysis."""
    try:
        from ninetka_web.server.server import is_loopback, serve
        from ninetka_web.tables.store import default_path

        if not is_loopback(host):
            typer.echo(f"warning: anyone who can reach {host} can play on this server and use its CPU", err=True)
        serve(host, port, data or default_path(), open_browser=not no_browser)
    except ImportError as error:
        from ninetka_env.core.imports import install_command

        _fail(f"the web app needs {error.name}: {install_command('web')}")
    except OSError as error:
        _fail(error)
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
        raise typer.Exit(130) from None


def stats(data: Data = None) -> None:
    """Show how often people beat agents, in the games that `play` has stored."""
    from ninetka_web.tables.store import default_path
    from ninetka_web.tables.tallies import print_tallies, read_tallies

    path = data or default_path()
    try:
        print_tallies(*read_tallies(path), path)
    except OSError as error:
        _fail(error)


def _fail(message: object) -> NoReturn:
    if isinstance(message, OSError) and message.filename is not None:
        message = f"{message.filename}: {message.strerror}"
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(2)

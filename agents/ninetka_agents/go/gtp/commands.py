"""The commands of the GTP specification: the required ones, and the commands for tournaments and regression tests.

Each handler calls the methods of `Session` in `session.py`. Other commands are in `extensions.py` and `analysis.py`.
"""

from __future__ import annotations

from pathlib import Path

from ninetka_agents.go.gtp.command_registry import CommandArguments, command, known_commands
from ninetka_agents.go.gtp.protocol import (
    GtpError,
    format_move,
    parse_colour,
    parse_integer,
    parse_move,
    parse_number,
    parse_point,
)
from ninetka_agents.go.gtp.session import Session
from ninetka_agents.go.status import agreed_result, find_statuses
from ninetka_env.core.sgf import read_sgf
from ninetka_env.games.go.game import Game
from ninetka_env.games.go.text import draw

NAME = "ninetka"


# Administration


@command("protocol_version")
def protocol_version(session: Session, arguments: CommandArguments) -> str:
    """Return the version of the protocol."""
    return "2"


@command("name")
def name(session: Session, arguments: CommandArguments) -> str:
    """Return the name of the engine."""
    return NAME


@command("version")
def version(session: Session, arguments: CommandArguments) -> str:
    """Return the version of the package and the spec of the agent."""
    return f"{session.version} {session.move_chooser.name}"


@command("known_command", min_arguments=1)
def known_command(session: Session, arguments: CommandArguments) -> str:
    """Return `true` if the command exists, else `false`."""
    return "true" if arguments[0] in known_commands(session) else "false"


@command("list_commands", "help")
def list_commands(session: Session, arguments: CommandArguments) -> str:
    """Return all commands, one per line."""
    return "\n".join(known_commands(session))


@command("quit")
def quit_(session: Session, arguments: CommandArguments) -> str:
    """Return an empty response; the engine then ends."""
    return ""


# The game


@command("boardsize", min_arguments=1)
def boardsize(session: Session, arguments: CommandArguments) -> str:
    """Change the size of the board, which clears it."""
    session.resize(parse_integer(arguments[0]))
    return ""


@command("clear_board")
def clear_board(session: Session, arguments: CommandArguments) -> str:
    """Clear the board; keep the size, the komi and the time settings."""
    session.clear()
    return ""


@command("komi", min_arguments=1)
def komi(session: Session, arguments: CommandArguments) -> str:
    """Set the komi of this game and of later games."""
    session.set_komi(parse_number(arguments[0]))
    return ""


@command("play", min_arguments=2)
def play(session: Session, arguments: CommandArguments) -> str:
    """Play a move: colour and vertex."""
    session.play(parse_colour(arguments[0]), parse_move(arguments[1], session.size))
    return ""


@command("genmove", min_arguments=1)
def genmove(session: Session, arguments: CommandArguments) -> str:
    """Choose a move for a colour and play it, or resign."""
    seat = parse_colour(arguments[0])
    return format_move(session.play_or_resign(seat, session.choose(seat)), session.size)


@command("kgs-genmove_cleanup", min_arguments=1)
def kgs_genmove_cleanup(session: Session, arguments: CommandArguments) -> str:
    """Choose a move and play it without resigning; sent after the players disagreed about dead stones.

    From then on, dead stones must be captured. This engine always does so, because its rules remove no dead stones.
    """
    seat = parse_colour(arguments[0])
    action = min(session.choose(seat), session.size**2)
    session.play(seat, action)
    return format_move(action, session.size)


@command("reg_genmove", min_arguments=1)
def reg_genmove(session: Session, arguments: CommandArguments) -> str:
    """Choose a move for a colour without playing it."""
    return format_move(session.choose(parse_colour(arguments[0])), session.size)


@command("undo")
def undo(session: Session, arguments: CommandArguments) -> str:
    """Undo the last move."""
    session.undo()
    return ""


@command("showboard")
def showboard(session: Session, arguments: CommandArguments) -> str:
    """Return a drawing of the board and the captures."""
    black, white = session.game.captured().tolist()
    return f"\n{draw(session.game.board)}\nBlack (X) has captured {black}, White (O) has captured {white}"


@command("loadsgf", min_arguments=1)
def loadsgf(session: Session, arguments: CommandArguments) -> str:
    """Load the first game of an SGF file: its last position, or the position before a given move, counted from 1."""
    positions = _positions(Path(arguments[0]))
    if arguments[1:]:
        positions = positions[: max(parse_integer(arguments[1]), 1)]
    session.load(positions)
    return ""


def _positions(path: Path) -> list[Game]:
    """Return the positions of the first game of an SGF file."""
    try:
        if not path.is_file():
            raise GtpError("cannot load file: no such file")
        with path.open("rb") as file:
            record = next(read_sgf(file))
        if record.variant.definition.name != Game.name:
            raise GtpError("cannot load file: no game of Go")
        return [game for game in record.replay() if isinstance(game, Game)]
    except OSError as error:
        raise GtpError(f"cannot load file: {error.strerror}") from None
    except (ValueError, StopIteration) as error:
        raise GtpError(f"cannot load file: {error}") from None


# Handicap


def handicap_points(size: int, stones: int) -> list[int]:
    """Return the points of `fixed_handicap` for a number of stones.

    The points are on the third line from the edge, or on the fourth if the size is at least 13. First come the
    corners, then the middles of the sides. For an odd number of stones above 4, the last point is the centre. If the
    size is even or below 9, only the corners are used.

    Raises:
        GtpError: if the protocol has no points for this number of stones.
    """
    most = 9 if size % 2 and size >= 9 else 4 if size >= 7 else 0
    if not 2 <= stones <= most:
        raise GtpError(f"invalid handicap: expected 2 to {most}" if most else f"invalid handicap: none on size {size}")
    low, middle = (2 if size < 13 else 3), size // 2
    high = size - 1 - low
    corners = [(low, low), (high, high), (high, low), (low, high)]
    sides = [(middle, low), (middle, high), (low, middle), (high, middle)]
    points = [*corners, *sides][: stones - (stones > 4 and stones % 2)]
    if stones > 4 and stones % 2:
        points.append((middle, middle))
    return [rank * size + file for rank, file in points[:stones]]


@command("fixed_handicap", "place_free_handicap", min_arguments=1)
def fixed_handicap(session: Session, arguments: CommandArguments) -> str:
    """Place a number of black stones on the fixed handicap points, and return the points."""
    points = handicap_points(session.size, parse_integer(arguments[0]))
    session.place_handicap(points)
    return " ".join(format_move(point, session.size) for point in points)


@command("set_free_handicap", min_arguments=1)
def set_free_handicap(session: Session, arguments: CommandArguments) -> str:
    """Place black handicap stones on the given vertices."""
    session.place_handicap([parse_point(word, session.size) for word in arguments])
    return ""


# Time


@command("time_settings", min_arguments=3)
def time_settings(session: Session, arguments: CommandArguments) -> str:
    """Set the main time, the length of a period of overtime, and the number of moves in a period; times in seconds."""
    main, overtime = parse_seconds(arguments[0]), parse_seconds(arguments[1])
    session.clock.set(main, overtime, parse_integer(arguments[2]))
    return ""


@command("time_left", min_arguments=3)
def time_left(session: Session, arguments: CommandArguments) -> str:
    """Set a colour's remaining time in seconds and the number of moves to play in this time; 0 moves in main time."""
    seat, seconds = parse_colour(arguments[0]), parse_number(arguments[1])
    session.clock.update(seat, max(seconds, 0.0), parse_integer(arguments[2]))
    return ""


def parse_seconds(word: str) -> float:
    """Parse a time in seconds, at least 0."""
    seconds = parse_number(word)
    if seconds < 0:
        raise GtpError("expected a time of at least 0 seconds")
    return seconds


# The end of the game


@command("final_score")
def final_score(session: Session, arguments: CommandArguments) -> str:
    """Return the result after removing dead stones, such as `B+2`."""
    return agreed_result(session.game)


@command("final_status_list", min_arguments=1)
def final_status_list(session: Session, arguments: CommandArguments) -> str:
    """Return the chains with a status, `alive`, `dead` or `seki`, one per line."""
    statuses = find_statuses(session.game)._asdict()
    if arguments[0] not in statuses:
        raise GtpError(f"invalid status: expected {', '.join(statuses)}")
    chains = statuses[arguments[0]]
    return "\n".join(" ".join(format_move(point, session.size) for point in chain) for chain in chains)

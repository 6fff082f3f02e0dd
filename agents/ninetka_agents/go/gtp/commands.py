"""The commands of the GTP specification: those required of every engine, and those for tournaments and regression."""

from __future__ import annotations

from pathlib import Path

from ninetka_agents.go.gtp.protocol import (
    GtpError,
    read_colour,
    read_move,
    read_number,
    read_point,
    read_whole,
    write_move,
)
from ninetka_agents.go.gtp.register import Words, command, known_commands
from ninetka_agents.go.gtp.session import Session
from ninetka_agents.go.status import agreed_result, find_statuses
from ninetka_env.core.sgf import read_sgf
from ninetka_env.games.go.game import Game
from ninetka_env.games.go.text import draw

NAME = "ninetka"


# Administration


@command("protocol_version")
def protocol_version(session: Session, arguments: Words) -> str:
    """Return the version of the protocol."""
    return "2"


@command("name")
def name(session: Session, arguments: Words) -> str:
    """Return the name of the engine."""
    return NAME


@command("version")
def version(session: Session, arguments: Words) -> str:
    """Return the version of the package and the spec of the agent."""
    return f"{session.version} {session.thinker.name}"


@command("known_command", needs=1)
def known_command(session: Session, arguments: Words) -> str:
    """Return `true` if the command exists, else `false`."""
    return "true" if arguments[0] in known_commands(session) else "false"


@command("list_commands", "help")
def list_commands(session: Session, arguments: Words) -> str:
    """Return all commands, one per line."""
    return "\n".join(known_commands(session))


@command("quit")
def quit_(session: Session, arguments: Words) -> str:
    """Return an empty response; the engine then ends."""
    return ""


# The game


@command("boardsize", needs=1)
def boardsize(session: Session, arguments: Words) -> str:
    """Change the size of the board, which clears it."""
    session.resize(read_whole(arguments[0]))
    return ""


@command("clear_board")
def clear_board(session: Session, arguments: Words) -> str:
    """Clear the board; size, komi and time settings stay."""
    session.clear()
    return ""


@command("komi", needs=1)
def komi(session: Session, arguments: Words) -> str:
    """Set the komi; it stays for later games."""
    session.set_komi(read_number(arguments[0]))
    return ""


@command("play", needs=2)
def play(session: Session, arguments: Words) -> str:
    """Play a move: colour and vertex."""
    session.play(read_colour(arguments[0]), read_move(arguments[1], session.size))
    return ""


@command("genmove", needs=1)
def genmove(session: Session, arguments: Words) -> str:
    """Choose a move for a colour and play it, or resign."""
    seat = read_colour(arguments[0])
    return write_move(session.play_or_resign(seat, session.choose(seat)), session.size)


@command("kgs-genmove_cleanup", needs=1)
def kgs_genmove_cleanup(session: Session, arguments: Words) -> str:
    """Choose a move and play it, after the players disagreed about dead stones; the engine must not resign.

    Engines must now capture dead stones. This engine does so in any case, because its rules remove no dead stones.
    """
    seat = read_colour(arguments[0])
    action = min(session.choose(seat), session.size**2)
    session.play(seat, action)
    return write_move(action, session.size)


@command("reg_genmove", needs=1)
def reg_genmove(session: Session, arguments: Words) -> str:
    """Choose a move for a colour without playing it."""
    return write_move(session.choose(read_colour(arguments[0])), session.size)


@command("undo")
def undo(session: Session, arguments: Words) -> str:
    """Undo the last move."""
    session.undo()
    return ""


@command("showboard")
def showboard(session: Session, arguments: Words) -> str:
    """Return a drawing of the board and the captures."""
    black, white = session.game.captured().tolist()
    return f"\n{draw(session.game.board)}\nBlack (X) has captured {black}, White (O) has captured {white}"


@command("loadsgf", needs=1)
def loadsgf(session: Session, arguments: Words) -> str:
    """Load the first game of a file: the position at its end, or before the move of a number, counted from 1."""
    positions = _positions(Path(arguments[0]))
    if arguments[1:]:
        positions = positions[: max(read_whole(arguments[1]), 1)]
    session.load(positions)
    return ""


def _positions(path: Path) -> list[Game]:
    """Return the positions of the first game of a file."""
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

    They are on the third line from the edge, from size 13 on the fourth: the corners, then the middles of the sides,
    and the centre last for an odd number of stones above 4. Boards of even size and those smaller than 9 use only the
    corners.

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


@command("fixed_handicap", "place_free_handicap", needs=1)
def fixed_handicap(session: Session, arguments: Words) -> str:
    """Place a number of black stones on the fixed handicap points, for both commands."""
    points = handicap_points(session.size, read_whole(arguments[0]))
    session.place_handicap(points)
    return " ".join(write_move(point, session.size) for point in points)


@command("set_free_handicap", needs=1)
def set_free_handicap(session: Session, arguments: Words) -> str:
    """Place black handicap stones on the given vertices."""
    session.place_handicap([read_point(word, session.size) for word in arguments])
    return ""


# Time


@command("time_settings", needs=3)
def time_settings(session: Session, arguments: Words) -> str:
    """Set the main time, the time of a period of overtime, and the number of moves in a period."""
    main, overtime = read_seconds(arguments[0]), read_seconds(arguments[1])
    session.clock.set(main, overtime, read_whole(arguments[2]))
    return ""


@command("time_left", needs=3)
def time_left(session: Session, arguments: Words) -> str:
    """Set the remaining time of a colour and the number of moves to play in it, 0 in main time."""
    seat, seconds = read_colour(arguments[0]), read_number(arguments[1])
    session.clock.tell(seat, max(seconds, 0.0), read_whole(arguments[2]))
    return ""


def read_seconds(word: str) -> float:
    """Parse a time in seconds, at least 0."""
    seconds = read_number(word)
    if seconds < 0:
        raise GtpError("expected a time of at least 0 seconds")
    return seconds


# The end


@command("final_score")
def final_score(session: Session, arguments: Words) -> str:
    """Return the result after removing dead stones, such as `B+2`."""
    return agreed_result(session.game)


@command("final_status_list", needs=1)
def final_status_list(session: Session, arguments: Words) -> str:
    """Return the chains with a status, `alive`, `dead` or `seki`, one per line."""
    statuses = find_statuses(session.game)._asdict()
    if arguments[0] not in statuses:
        raise GtpError(f"invalid status: expected {', '.join(statuses)}")
    chains = statuses[arguments[0]]
    return "\n".join(" ".join(write_move(point, session.size) for point in chain) for chain in chains)

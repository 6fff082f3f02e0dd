"""GTP commands that are not in the specification: those of GoGui, KGS and gomill, and KataGo's commands for rules.

The commands of the specification are in `commands.py`, those that report a search in `analysis.py`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from ninetka_agents.go.gtp.command_registry import CommandArguments, command
from ninetka_agents.go.gtp.commands import NAME, parse_seconds
from ninetka_agents.go.gtp.protocol import GtpError, parse_colour, parse_integer, parse_move, parse_point
from ninetka_agents.go.gtp.session import Session
from ninetka_agents.go.status import owner_shares

GOGUI_ANALYSES = (
    "dboard/Ownership/ninetka-ownership",
    "plist/Dead Stones/final_status_list dead",
    "plist/Stones in Seki/final_status_list seki",
    "string/Final Score/final_score",
)
"""The entries of GoGui's menu: the type of the response, the label and the command, separated by slashes."""

KATAGO_RULES = {
    "chinese": ("simple", "area"),
    "chinese-ogs": ("positional", "area"),
    "chinese-kgs": ("positional", "area"),
    "aga": ("situational", "area"),
    "bga": ("situational", "area"),
    "french": ("situational", "area"),
}
"""The options `ko` and `scoring` of KataGo's rule sets, by name. All of them have area scoring and forbid suicide."""


def _colour_vertex_pairs(words: CommandArguments) -> Iterator[tuple[str, str]]:
    """Yield pairs of a colour and a vertex."""
    if len(words) % 2:
        raise GtpError("syntax error: expected pairs of a color and a vertex")
    yield from zip(words[::2], words[1::2], strict=True)


# GoGui


@command("gogui-analyze_commands")
def gogui_analyze_commands(session: Session, arguments: CommandArguments) -> str:
    """Return the analyses that GoGui can show, one per line."""
    return "\n".join(GOGUI_ANALYSES)


@command("ninetka-ownership")
def ownership(session: Session, arguments: CommandArguments) -> str:
    """Return the owner of each point, averaged over playouts: 1 (Black) to -1 (White); one rank per line, top first."""
    black, white = owner_shares(session.game, seed=0)
    ranks = (black - white).reshape(session.size, session.size)[::-1]
    return "\n".join(" ".join(f"{value:.2f}" for value in rank) for rank in ranks)


@command("gogui-play_sequence")
def gogui_play_sequence(session: Session, arguments: CommandArguments) -> str:
    """Play a sequence of moves, each a colour and a vertex; if any move is not valid, play none of them."""
    moves = [
        (parse_colour(colour), parse_move(vertex, session.size)) for colour, vertex in _colour_vertex_pairs(arguments)
    ]
    with session.rollback_on_error():
        for seat, action in moves:
            session.play(seat, action)
    return ""


@command("gogui-setup")
def gogui_setup(session: Session, arguments: CommandArguments) -> str:
    """Add stones to the board and make this the start position."""
    stones = [
        (parse_colour(colour), parse_point(vertex, session.size)) for colour, vertex in _colour_vertex_pairs(arguments)
    ]
    session.set_up_stones(stones, session.game.to_move)
    return ""


@command("gogui-setup_player", min_arguments=1)
def gogui_setup_player(session: Session, arguments: CommandArguments) -> str:
    """Set the player to move in a position that was set up."""
    session.game = session.position_with_turn(parse_colour(arguments[0]))
    return ""


@command("gogui-interrupt")
def gogui_interrupt(session: Session, arguments: CommandArguments) -> str:
    """Do nothing. The existence of this command means that the comment `# interrupt` interrupts a search."""
    return ""


# Rules by KataGo's names


@command("kata-set-rules", min_arguments=1)
def kata_set_rules(session: Session, arguments: CommandArguments) -> str:
    """Set the rules by name; the board must be empty."""
    name = arguments[0].lower()
    if name not in KATAGO_RULES:
        raise GtpError(f"unknown rules: expected {', '.join(KATAGO_RULES)}")
    session.set_rules(*KATAGO_RULES[name])
    return ""


@command("kata-get-rules")
def kata_get_rules(session: Session, arguments: CommandArguments) -> str:
    """Return the rules in KataGo's JSON format."""
    game = session.game
    rules = {"ko": game.ko.upper(), "scoring": game.scoring.upper(), "suicide": False, "tax": "NONE",
            "whiteHandicapBonus": "0", "hasButton": False, "friendlyPassOk": False}  # fmt: skip
    return json.dumps(rules)


# KGS


@command("kgs-game_over")
def kgs_game_over(session: Session, arguments: CommandArguments) -> str:
    """Do nothing: KGS sends this command at the end of a game."""
    return ""


@command("kgs-time_settings", min_arguments=1)
def kgs_time_settings(session: Session, arguments: CommandArguments) -> str:
    """Set the time: `none`, `absolute MAIN`, `canadian MAIN PERIOD MOVES` or `byoyomi MAIN PERIOD PERIODS`.

    Japanese overtime (`byoyomi`) is treated as an unlimited number of periods of one move each; PERIODS is ignored.
    """
    kind, numbers = arguments[0].lower(), arguments[1:]
    needed = {"none": 0, "absolute": 1, "canadian": 3, "byoyomi": 3}
    if kind not in needed or len(numbers) < needed[kind]:
        raise GtpError("syntax error: expected none, absolute, canadian or byoyomi, and its times")
    times = [parse_seconds(word) for word in numbers[:2]]
    if kind in ("none", "absolute"):
        session.clock.set(times[0] if kind == "absolute" else 0.0, 0.0, 0)
    else:
        session.clock.set(times[0], times[1], 1 if kind == "byoyomi" else parse_integer(numbers[2]))
    return ""


# gomill


@command("gomill-describe_engine")
def gomill_describe_engine(session: Session, arguments: CommandArguments) -> str:
    """Return a description of the engine."""
    return f"{NAME} {session.version}\nagent {session.move_chooser.name}"


@command("gomill-cpu_time")
def gomill_cpu_time(session: Session, arguments: CommandArguments) -> str:
    """Return the CPU time that the engine has used, in seconds."""
    return f"{time.process_time():.3f}"


@command("gomill-explain_last_move")
def gomill_explain_last_move(session: Session, arguments: CommandArguments) -> str:
    """Return the number of simulations and the time of the last move; without a tree search, only the time."""
    return session.move_chooser.explanation

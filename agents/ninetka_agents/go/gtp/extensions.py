"""GTP commands of single controllers: GoGui, KGS, gomill, and the rules commands of KataGo."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from ninetka_agents.go.gtp.commands import NAME, read_seconds
from ninetka_agents.go.gtp.protocol import GtpError, read_colour, read_move, read_point, read_whole
from ninetka_agents.go.gtp.register import Words, command
from ninetka_agents.go.gtp.session import Session
from ninetka_agents.go.status import owner_shares

GOGUI_ANALYSES = (
    "dboard/Ownership/ninetka-ownership",
    "plist/Dead Stones/final_status_list dead",
    "plist/Stones in Seki/final_status_list seki",
    "string/Final Score/final_score",
)
"""The entries of GoGui's menu: the type of the response, the label, the command."""

RULES = {
    "chinese": ("simple", "area"),
    "chinese-ogs": ("positional", "area"),
    "chinese-kgs": ("positional", "area"),
    "aga": ("situational", "area"),
    "bga": ("situational", "area"),
    "french": ("situational", "area"),
}
"""KataGo's names of rules with area scoring and without suicide: the options `ko` and `scoring` of each."""


def _pairs(words: Words) -> Iterator[tuple[str, str]]:
    """Yield pairs of a colour and a vertex."""
    if len(words) % 2:
        raise GtpError("syntax error: expected pairs of a color and a vertex")
    yield from zip(words[::2], words[1::2], strict=True)


# GoGui


@command("gogui-analyze_commands")
def gogui_analyze_commands(session: Session, arguments: Words) -> str:
    """Return the analyses that GoGui can show, one per line."""
    return "\n".join(GOGUI_ANALYSES)


@command("ninetka-ownership")
def ownership(session: Session, arguments: Words) -> str:
    """Return the ownership of each point by playouts, from 1 (Black) to -1 (White), the highest rank first."""
    black, white = owner_shares(session.game, seed=0)
    ranks = (black - white).reshape(session.size, session.size)[::-1]
    return "\n".join(" ".join(f"{value:.2f}" for value in rank) for rank in ranks)


@command("gogui-play_sequence")
def gogui_play_sequence(session: Session, arguments: Words) -> str:
    """Play a sequence of colours and vertices; if one is not valid, play none."""
    moves = [(read_colour(colour), read_move(vertex, session.size)) for colour, vertex in _pairs(arguments)]
    with session.unless_it_fails():
        for seat, action in moves:
            session.play(seat, action)
    return ""


@command("gogui-setup")
def gogui_setup(session: Session, arguments: Words) -> str:
    """Add stones to the board and make this the start position."""
    stones = [(read_colour(colour), read_point(vertex, session.size)) for colour, vertex in _pairs(arguments)]
    session.set_up(stones, session.game.to_move)
    return ""


@command("gogui-setup_player", needs=1)
def gogui_setup_player(session: Session, arguments: Words) -> str:
    """Set the player to move in a position that was set up."""
    session.game = session.turn_of(read_colour(arguments[0]))
    return ""


@command("gogui-interrupt")
def gogui_interrupt(session: Session, arguments: Words) -> str:
    """Do nothing. The existence of this command means that the comment `# interrupt` interrupts a search."""
    return ""


# Rules, as KataGo names them


@command("kata-set-rules", needs=1)
def kata_set_rules(session: Session, arguments: Words) -> str:
    """Set the rules by name; the board must be empty."""
    name = arguments[0].lower()
    if name not in RULES:
        raise GtpError(f"unknown rules: expected {', '.join(RULES)}")
    session.set_rules(*RULES[name])
    return ""


@command("kata-get-rules")
def kata_get_rules(session: Session, arguments: Words) -> str:
    """Return the rules in KataGo's JSON format."""
    game = session.game
    told = {"ko": game.ko.upper(), "scoring": game.scoring.upper(), "suicide": False, "tax": "NONE",
            "whiteHandicapBonus": "0", "hasButton": False, "friendlyPassOk": False}  # fmt: skip
    return json.dumps(told)


# KGS


@command("kgs-game_over")
def kgs_game_over(session: Session, arguments: Words) -> str:
    """Do nothing: KGS sends this command at the end of a game."""
    return ""


@command("kgs-time_settings", needs=1)
def kgs_time_settings(session: Session, arguments: Words) -> str:
    """Set the time: `none`, `absolute MAIN`, `canadian MAIN PERIOD MOVES` or `byoyomi MAIN PERIOD PERIODS`.

    Japanese overtime (`byoyomi`) is treated as periods of one move without an end, whatever PERIODS is.
    """
    kind, numbers = arguments[0].lower(), arguments[1:]
    needed = {"none": 0, "absolute": 1, "canadian": 3, "byoyomi": 3}
    if kind not in needed or len(numbers) < needed[kind]:
        raise GtpError("syntax error: expected none, absolute, canadian or byoyomi, and its times")
    times = [read_seconds(word) for word in numbers[:2]]
    if kind in ("none", "absolute"):
        session.clock.set(times[0] if kind == "absolute" else 0.0, 0.0, 0)
    else:
        session.clock.set(times[0], times[1], 1 if kind == "byoyomi" else read_whole(numbers[2]))
    return ""


# gomill


@command("gomill-describe_engine")
def gomill_describe_engine(session: Session, arguments: Words) -> str:
    """Return a description of the engine."""
    return f"{NAME} {session.version}\nagent {session.thinker.name}"


@command("gomill-cpu_time")
def gomill_cpu_time(session: Session, arguments: Words) -> str:
    """Return the CPU time that the engine has used, in seconds."""
    return f"{time.process_time():.3f}"


@command("gomill-explain_last_move")
def gomill_explain_last_move(session: Session, arguments: Words) -> str:
    """Return the number of simulations and the time of the last move, or the time alone."""
    return session.thinker.explanation

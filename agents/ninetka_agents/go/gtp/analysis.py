"""GTP commands that report the statistics of a running tree search, as used by Sabaki, Lizzie and other programs.

After `=`, the engine writes lines such as `info move D4 visits 100 winrate 0.53 order 0 pv D4 C3`. Each line contains
all moves, the best first. `analyze` continues until another command arrives; `genmove_analyze` ends with `play D4`.
Commands that start with `lz-` write winrates in hundredths of a percent, as Leela Zero does. Commands that start with
`kata-` write winrates with six decimals and, on request, `ownership`, as KataGo does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ninetka_agents.go.gtp.command_registry import CommandArguments, command
from ninetka_agents.go.gtp.protocol import COLOURS, GtpError, format_move, parse_colour, parse_integer, parse_move
from ninetka_agents.go.gtp.session import Session
from ninetka_agents.go.status import owner_shares
from ninetka_agents.search.tree import Candidate, find_candidates
from ninetka_env.games.go.game import Game

MAX_MOVES_SHOWN = 400
"""The default of `maxmoves`: more moves than a board has."""
MIN_INTERVAL_S = 0.01
"""The minimum interval between lines in seconds, because writing long lines takes time from the search."""
POLL_INTERVAL_S = 0.02
"""The interval in seconds of polling for another command."""
FLAGS = {
    "ownership", "rootInfo", "pvVisits", "pvEdgeVisits", "ownershipStdev", "movesOwnership", "movesOwnershipStdev",
    "noResultValue",
}  # fmt: skip
"""Options of KataGo with a value `true` or `false`. Only `ownership` has an effect here; the others are ignored."""


@dataclass
class AnalysisOptions:
    """The arguments of an analysis command.

    `max_moves` is the maximum number of moves shown. `allowed` is the set of actions that may be shown (None for all),
    `avoided` the set of actions that are not shown.
    """

    seat: int
    interval: float = 0.5
    """Seconds between lines, at least `MIN_INTERVAL_S`."""
    max_moves: int = MAX_MOVES_SHOWN
    ownership: bool = False
    allowed: set[int] | None = None
    avoided: set[int] = field(default_factory=set)


def read_request(session: Session, words: CommandArguments) -> AnalysisOptions:
    """Parse the arguments: an optional colour, an optional interval, then options with their values."""
    words_left = list(words)
    request = AnalysisOptions(
        parse_colour(words_left.pop(0)) if words_left and words_left[0].lower() in COLOURS else session.game.to_move
    )
    if words_left and words_left[0].isdecimal():
        request.interval = _read_interval(words_left.pop(0))
    while words_left:
        _read_option(session, request, words_left)
    return request


def _read_option(session: Session, request: AnalysisOptions, words: list[str]) -> None:
    """Parse the option at the start of the remaining words, and remove its words."""
    key = words.pop(0)
    value = words.pop(0) if words else ""
    if key == "interval":
        request.interval = _read_interval(value)
    elif key == "minmoves":
        parse_integer(value)  # ignored: all moves with simulations are shown
    elif key == "maxmoves":
        request.max_moves = parse_integer(value)
    elif key in FLAGS:
        request.ownership |= key == "ownership" and value == "true"
    elif key in ("allow", "avoid") and len(words) >= 2:
        _read_moves(session, request, key, value, words)
    else:
        raise GtpError(f"syntax error: {key[:20]!r}")


def _read_interval(word: str) -> float:
    return max(parse_integer(word) / 100, MIN_INTERVAL_S)


def _read_moves(session: Session, request: AnalysisOptions, key: str, colour: str, words: list[str]) -> None:
    """Parse the moves and the depth of the option `allow` or `avoid`.

    The depth has no effect. Moves of the other colour are ignored.
    """
    moves = {parse_move(word, session.size) for word in words.pop(0).split(",")}
    parse_integer(words.pop(0))
    if parse_colour(colour) != request.seat:
        return
    if key == "allow":
        request.allowed = moves
    else:
        request.avoided |= moves


WinrateFormat = Callable[[float], str]
"""A function that formats a winrate."""
WINRATE_FORMATS: dict[str, WinrateFormat] = {
    "": lambda share: f"{share:.4f}",
    "lz-": lambda share: f"{10_000 * share:.0f}",
    "kata-": lambda share: f"{share:.6f}",
}


def info_line(game: Game, candidates: list[Candidate], request: AnalysisOptions, form: WinrateFormat) -> str:
    """Return one line with the statistics of the moves, the best first."""
    shown = [one for one in candidates if one.action not in request.avoided]
    if request.allowed is not None:
        shown = [one for one in shown if one.action in request.allowed]
    infos = [_info(game, one, order, form) for order, one in enumerate(shown[: request.max_moves])]
    if request.ownership:
        infos.append(_ownership(game))
    return " ".join(infos)


def _info(game: Game, one: Candidate, order: int, form: WinrateFormat) -> str:
    line = " ".join(format_move(action, game.size) for action in one.variation)
    move, winrate = format_move(one.action, game.size), form(one.share)
    return f"info move {move} visits {one.visits} winrate {winrate} order {order} pv {line}"


def _ownership(game: Game) -> str:
    """Return the expected owner of each point, 1 (the seat to move) to -1 (the opponent), in rows from the top."""
    shares = owner_shares(game, seed=0)
    values = (shares[game.to_move] - shares[1 - game.to_move]).reshape(game.size, game.size)[::-1]
    return "ownership " + " ".join(f"{value:.2f}" for value in np.ravel(values))


def analyze(form: WinrateFormat, session: Session, arguments: CommandArguments) -> Iterator[str]:
    """Search a position; yield lines with statistics until another command or an interrupt arrives."""
    request = read_request(session, arguments)
    game, start, shown = session.position_with_turn(request.seat), time.perf_counter(), -1.0
    for tree in session.move_chooser.search(game, lambda: session.has_pending_command() or session.is_interrupted()):
        spent = time.perf_counter() - start
        if shown < 0 or spent - shown >= request.interval:
            yield info_line(game, find_candidates(tree), request, form)
            shown = spent
    while not (
        session.has_pending_command() or session.is_interrupted()
    ):  # a finished search does not end the analysis
        time.sleep(POLL_INTERVAL_S)


def genmove_analyze(form: WinrateFormat, session: Session, arguments: CommandArguments) -> Iterator[str]:
    """Choose and play a move like `genmove`; yield lines with statistics during the search, then the move."""
    request = read_request(session, arguments)
    game, start, shown = session.position_with_turn(request.seat), time.perf_counter(), 0.0
    for tree in session.move_chooser.think(game, session.is_interrupted, session.seconds_for(request.seat)):
        spent = time.perf_counter() - start
        if spent - shown >= request.interval:
            yield info_line(game, find_candidates(tree), request, form)
            shown = spent
    yield info_line(game, find_candidates(tree), request, form)
    session.clock.spend(request.seat, time.perf_counter() - start)
    yield f"play {format_move(session.play_or_resign(request.seat, tree.best_action()), session.size)}"


for _prefix, _form in WINRATE_FORMATS.items():
    command(f"{_prefix}analyze", needs_search=True)(partial(analyze, _form))
    command(f"{_prefix}genmove_analyze", needs_search=True)(partial(genmove_analyze, _form))

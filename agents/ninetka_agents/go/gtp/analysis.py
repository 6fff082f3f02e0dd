"""GTP commands that report the statistics of a running tree search, as Sabaki, Lizzie and other programs use them.

After `=`, the engine writes lines such as `info move D4 visits 100 winrate 0.53 order 0 pv D4 C3`. Each line contains
all moves, the best first. `analyze` continues until another command arrives; `genmove_analyze` ends with `play D4`.
Commands with `lz-` write winrates in hundredths of a percent, as Leela Zero does; those with `kata-` write six decimals
and, on request, `ownership`, as KataGo does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ninetka_agents.go.gtp.protocol import COLOURS, GtpError, read_colour, read_move, read_whole, write_move
from ninetka_agents.go.gtp.register import Words, command
from ninetka_agents.go.gtp.session import Session
from ninetka_agents.go.status import owner_shares
from ninetka_agents.search.tree import Candidate, find_candidates
from ninetka_env.games.go.game import Game

MOST_SHOWN = 400
"""The default of `maxmoves`: more moves than a board has."""
SHORTEST = 0.01
"""The minimum interval between lines in seconds, because writing long lines takes time from the search."""
IDLE = 0.02
"""The interval in seconds of polling for another command."""
FLAGS = {
    "ownership", "rootInfo", "pvVisits", "pvEdgeVisits", "ownershipStdev", "movesOwnership", "movesOwnershipStdev",
    "noResultValue",
}  # fmt: skip
"""Options of KataGo with a value `true` or `false`. Only `ownership` has an effect here; the others are ignored."""


@dataclass
class Request:
    """The arguments of an analysis command.

    `most` is the maximum number of moves shown. `allowed` are the only actions shown (None for all), `avoided` are
    actions not shown.
    """

    seat: int
    interval: float = 0.5
    """Seconds between lines, at least `SHORTEST`."""
    most: int = MOST_SHOWN
    ownership: bool = False
    allowed: set[int] | None = None
    avoided: set[int] = field(default_factory=set)


def read_request(session: Session, words: Words) -> Request:
    """Parse the arguments: an optional colour, an optional interval, then options with their values."""
    left = list(words)
    request = Request(read_colour(left.pop(0)) if left and left[0].lower() in COLOURS else session.game.to_move)
    if left and left[0].isdecimal():
        request.interval = _read_interval(left.pop(0))
    while left:
        _read_option(session, request, left)
    return request


def _read_option(session: Session, request: Request, left: list[str]) -> None:
    """Parse the option at the start of the remaining words, and remove its words."""
    key = left.pop(0)
    value = left.pop(0) if left else ""
    if key == "interval":
        request.interval = _read_interval(value)
    elif key == "minmoves":
        read_whole(value)  # ignored: all moves with simulations are shown
    elif key == "maxmoves":
        request.most = read_whole(value)
    elif key in FLAGS:
        request.ownership |= key == "ownership" and value == "true"
    elif key in ("allow", "avoid") and len(left) >= 2:
        _read_moves(session, request, key, value, left)
    else:
        raise GtpError(f"syntax error: {key[:20]!r}")


def _read_interval(word: str) -> float:
    return max(read_whole(word) / 100, SHORTEST)


def _read_moves(session: Session, request: Request, key: str, colour: str, left: list[str]) -> None:
    """Parse the moves of `allow` or `avoid`, and the depth, which has no effect."""
    moves = {read_move(word, session.size) for word in left.pop(0).split(",")}
    read_whole(left.pop(0))
    if read_colour(colour) != request.seat:
        return
    if key == "allow":
        request.allowed = moves
    else:
        request.avoided |= moves


Form = Callable[[float], str]
"""A function that formats a winrate."""
FORMS: dict[str, Form] = {
    "": lambda share: f"{share:.4f}",
    "lz-": lambda share: f"{10_000 * share:.0f}",
    "kata-": lambda share: f"{share:.6f}",
}


def info_line(game: Game, candidates: list[Candidate], request: Request, form: Form) -> str:
    """Return one line with the statistics of the moves, the best first."""
    shown = [one for one in candidates if one.action not in request.avoided]
    if request.allowed is not None:
        shown = [one for one in shown if one.action in request.allowed]
    infos = [_info(game, one, order, form) for order, one in enumerate(shown[: request.most])]
    if request.ownership:
        infos.append(_ownership(game))
    return " ".join(infos)


def _info(game: Game, one: Candidate, order: int, form: Form) -> str:
    line = " ".join(write_move(action, game.size) for action in one.line)
    move, winrate = write_move(one.action, game.size), form(one.share)
    return f"info move {move} visits {one.visits} winrate {winrate} order {order} pv {line}"


def _ownership(game: Game) -> str:
    """Return the expected ownership of each point for the seat to move, 1 to -1, from the upper left."""
    shares = owner_shares(game, seed=0)
    values = (shares[game.to_move] - shares[1 - game.to_move]).reshape(game.size, game.size)[::-1]
    return "ownership " + " ".join(f"{value:.2f}" for value in np.ravel(values))


def analyze(form: Form, session: Session, arguments: Words) -> Iterator[str]:
    """Search a position, and report the search until another command arrives."""
    request = read_request(session, arguments)
    game, start, shown = session.turn_of(request.seat), time.perf_counter(), -1.0
    for tree in session.thinker.watch(game, lambda: session.pending() or session.interrupted()):
        spent = time.perf_counter() - start
        if shown < 0 or spent - shown >= request.interval:
            yield info_line(game, find_candidates(tree), request, form)
            shown = spent
    while not (session.pending() or session.interrupted()):  # a finished search does not end the analysis
        time.sleep(IDLE)


def genmove_analyze(form: Form, session: Session, arguments: Words) -> Iterator[str]:
    """Choose and play a move like `genmove`, and report the search in the meantime."""
    request = read_request(session, arguments)
    game, start, shown = session.turn_of(request.seat), time.perf_counter(), 0.0
    for tree in session.thinker.think(game, session.interrupted, session.seconds_for(request.seat)):
        spent = time.perf_counter() - start
        if spent - shown >= request.interval:
            yield info_line(game, find_candidates(tree), request, form)
            shown = spent
    yield info_line(game, find_candidates(tree), request, form)
    session.clock.spend(request.seat, time.perf_counter() - start)
    yield f"play {write_move(session.play_or_resign(request.seat, tree.best()), session.size)}"


for _prefix, _form in FORMS.items():
    command(f"{_prefix}analyze", analyses=True)(partial(analyze, _form))
    command(f"{_prefix}genmove_analyze", analyses=True)(partial(genmove_analyze, _form))

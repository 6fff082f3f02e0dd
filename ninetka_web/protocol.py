"""What browsers may say: one JSON object per WebSocket message, checked here against a schema before anything else.

Every message has a `type` and may carry an `id`, which the answer repeats: `{"type": "done", "id": 7}`, or
`{"type": "refused", "id": 7, "reason": "..."}` after which nothing has changed. What the server says beside that:
`welcome`, `state` (all that is known of the table, after each change), `notice`, `analysis`, `shares`, `exact`,
`winners`, `text`, and `compiling` when an answer waits for code that is being compiled, once. A winner there is a seat,
-1 where a game is drawn, null while it is open or not known.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.games.ninetka.geometry import NUM_ACTIONS

MAX_MESSAGE = 16_384
"""Bytes of a message; a game record has about 900."""
MAX_PLY = 1_000
"""More than any game has plies, passes included."""

STRENGTHS = {"random": ("", 0), "maxn": ("depth", 7), "mcts": ("simulations", 50_000), "net": ("simulations", 400)}
"""Per agent that may sit down, the option that sets its strength and its most: about two seconds a move."""
AGENT = re.compile(r"([a-z]+)(?::([a-z]+)=([1-9][0-9]{0,5}))?")
ME, OPEN = "me", "open"


def check_agent(spec: str) -> str:
    """Return the spec of an agent that browsers may ask for; `ValueError` names what is allowed."""
    match = AGENT.fullmatch(spec)
    if not match or match[1] not in STRENGTHS:
        raise ValueError(
            f"no agent {spec[:40]!r}: expected one of {', '.join(STRENGTHS)}, such as mcts:simulations=500"
        )
    option, most = STRENGTHS[match[1]]
    if match[2] and (match[2] != option or int(match[3]) > most):
        raise ValueError(f"{spec!r}: expected {match[1]}" + (f":{option}=1..{most}" if option else " alone"))
    return spec


def _check_seat(text: str) -> str:
    return text if text in (ME, OPEN) else check_agent(text)


def _check_name(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise ValueError("a name is printable and has no spaces at its ends")
    return text


Name = Annotated[str, Field(max_length=24), AfterValidator(_check_name)]
SeatSpec = Annotated[str, Field(max_length=40), AfterValidator(_check_seat)]
Seats = Annotated[list[SeatSpec], Field(min_length=2, max_length=4)]
TableId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{16}$")]
Token = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{43}$")]
Ply = Annotated[int, Field(ge=0, le=MAX_PLY)]
Text = Annotated[str, Field(max_length=8_000)]


class Message(BaseModel):
    """What all messages share."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    id: Annotated[int, Field(ge=0, lt=2**31)] = 0


class Hello(Message):
    """Comes first; `token` is what an earlier `welcome` gave, so that the person keeps the seats of before."""

    type: Literal["hello"]
    token: Token | None = None


class Create(Message):
    """Make a table and sit down where `seats` says `"me"`; `"open"` seats wait for others, the rest are agents."""

    type: Literal["create"]
    seats: Seats
    neutral_placement: Literal["players", "random"] = "players"
    turn_order: Literal["restart", "continue"] = "restart"
    name: Name = ""
    keep: bool = False
    """Whether the person agrees that the finished game is kept for the statistics."""
    position: Text | None = None
    """Begin with this position, as `Game` writes it, instead of an empty board."""


class Upload(Message):
    """Make a table that shows a finished game: a game record as `ninetka_env.api.records` describes it."""

    type: Literal["upload"]
    text: Text


class Join(Message):
    """Look at a table from now on."""

    type: Literal["join"]
    table: TableId


class Leave(Message):
    """Look at no table any more; seats are kept."""

    type: Literal["leave"]


class Discard(Message):
    """Remove a table of one's own that nobody else sits at."""

    type: Literal["discard"]
    table: TableId


class Sit(Message):
    """Take an open seat."""

    type: Literal["sit"]
    seat: Annotated[int, Field(ge=0, le=3)]
    name: Name = ""
    keep: bool = False


class Play(Message):
    """Play an action for the seat to move; `ply` is how many were played before, so that a late move is noticed."""

    type: Literal["play"]
    ply: Ply
    action: Annotated[int, Field(ge=0, lt=NUM_ACTIONS)]


class Undo(Message):
    """Take back one's last move and all after it; other people at the table are asked."""

    type: Literal["undo"]


class Answer(Message):
    """Answer another's wish to take back."""

    type: Literal["answer"]
    accept: bool


class Resign(Message):
    """Give the game up; with others of three or four at the table MaxN plays on."""

    type: Literal["resign"]


class Rematch(Message):
    """Play again after the game is over; everybody moves up a seat."""

    type: Literal["rematch"]


class Pace(Message):
    """Set how long agents wait between moves, in milliseconds, and whether they wait at all."""

    type: Literal["pace"]
    wait: Annotated[int, Field(ge=0, le=5_000)]
    paused: bool


class Analyse(Message):
    """Look at the position after `ply` actions and at the win shares of all up to now, until told otherwise."""

    type: Literal["analyse"]
    ply: Ply
    engine: Literal["mcts", "net"]


class Rest(Message):
    """Stop the analysis."""

    type: Literal["rest"]


class AskRecord(Message):
    """Ask for the record of the finished game."""

    type: Literal["record"]


class AskPosition(Message):
    """Ask for the position after `ply` actions as text."""

    type: Literal["position"]
    ply: Ply


AnyMessage = (
    Hello | Create | Upload | Join | Leave | Discard | Sit | Play | Undo | Answer | Resign | Rematch | Pace
    | Analyse | Rest | AskRecord | AskPosition
)  # fmt: skip
_ADAPTER: TypeAdapter[AnyMessage] = TypeAdapter(Annotated[AnyMessage, Field(discriminator="type")])


class RefusedError(Exception):
    """A wish that is not granted: the reason is shown to the person, and nothing has changed."""


def read_message(text: str) -> AnyMessage:
    """Return the message of a text; `RefusedError` says what is wrong with it."""
    if len(text.encode(errors="replace")) > MAX_MESSAGE:
        raise RefusedError(f"a message has at most {MAX_MESSAGE} bytes")
    try:
        return _ADAPTER.validate_json(text)
    except ValidationError as error:
        first: Any = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part)[:40] for part in first["loc"])
        raise RefusedError(f"{where}: {first['msg'][:200]}" if where else str(first["msg"])[:200]) from None


def told_winner(winner: int) -> int | None:
    """Return a winner as browsers are told: the seat, `DRAWN`, or None for `UNFINISHED`."""
    return None if winner == UNFINISHED else winner


def id_of(text: str) -> int:
    """Return the id that a refused message seems to carry, 0 if none can be made out."""
    match = re.search(r'"id"\s*:\s*([0-9]{1,9})\s*[,}]', text[:MAX_MESSAGE])
    return int(match[1]) if match else 0

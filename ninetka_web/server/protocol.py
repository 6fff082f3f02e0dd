"""What browsers may say: one JSON object per WebSocket message, checked here against a schema before anything else.

Every message has a `type` and may carry an `id`, which the answer repeats: `{"type": "done", "id": 7}`, or
`{"type": "refused", "id": 7, "reason": "..."}` after which nothing has changed. What the server says beside that:
`welcome` (games, what there is to choose, tables of one's own), `state` (the table after each change: the moves from
number `from` on, and `start` where those before count no more), `notice`, `text`, `chat` (lines that were said), of an
analysis `analysis`, `insight`, `shares`, `exact`, `winners`, `variation`, `hint` and `failed`, and `compiling` when an
answer waits for code that is being compiled, once. A winner there is a seat, -1 where a game is drawn, null while it is
open or not known.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from ninetka_env.core.registry import DEFAULT
from ninetka_web.games.adapter import adapter_of
from ninetka_web.tables.refusal import RefusedError

MAX_MESSAGE = 65_536
"""Bytes of a message; a record of Kropki on 39 x 32 with its chains has some 30,000."""
MAX_PLY = MAX_ACTION = 5_000
"""More than any game has plies, passes and drawings included, and than there are actions."""

ME, OPEN = "me", "open"


_JOINERS = dict.fromkeys((0x200C, 0x200D))
"""Zero-width joiners, which some scripts and emoji need."""


def _check_name(text: str) -> str:
    seen = text.translate(_JOINERS)
    if not seen.isprintable() or text != text.strip() or (text and not seen):
        raise ValueError("a name is printable and has no spaces at its ends")
    return text


Name = Annotated[str, Field(max_length=24), AfterValidator(_check_name)]
SeatSpec = Annotated[str, Field(max_length=40)]
Seats = Annotated[list[SeatSpec], Field(min_length=2, max_length=4)]
GameName = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,24}$")]
Engine = Annotated[str, Field(pattern=r"^[a-z]{1,12}$")]
OptionName = Annotated[str, Field(pattern=r"^[a-z_]{1,24}$")]
OptionValue = bool | int | float | Annotated[str, Field(pattern=r"^[a-z]{1,24}$")]
TableId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{16}$")]
Token = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{43}$")]
Ply = Annotated[int, Field(ge=0, le=MAX_PLY)]
Action = Annotated[int, Field(ge=0, lt=MAX_ACTION)]
Text = Annotated[str, Field(max_length=60_000)]
MainTime = Annotated[int, Field(ge=10, le=10_800)]
Increment = Annotated[int, Field(ge=0, le=180)]
Question = Annotated[int, Field(ge=0, lt=2**31)]
"""Which question an answer is for, as the state tells, so that a late click answers no other one."""


class Message(BaseModel):
    """What all messages share."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    id: Annotated[int, Field(ge=0, lt=2**31)] = 0


class Hello(Message):
    """Comes first; `token` is what an earlier `welcome` gave, so that the person keeps its seats."""

    type: Literal["hello"]
    token: Token | None = None


class Create(Message):
    """Make a table and sit down where `seats` says `"me"`; `"open"` seats wait for others, the rest are agents."""

    type: Literal["create"]
    game: GameName = DEFAULT
    seats: Seats
    options: Annotated[dict[OptionName, OptionValue], Field(max_length=12)] = Field(default_factory=dict)
    """Of those that the game offers at tables."""
    name: Name = ""
    keep: bool = False
    """Whether the person agrees that the finished game is kept for the statistics."""
    clock: tuple[MainTime, Increment] | None = None
    """Seconds that each person has for the game, and that a turn adds; none plays without."""
    position: Text | None = None
    """Begin with this position of the game, as `Game` writes it, instead of the start; it tells the options."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Take no agent and no option but those that the game offers."""
        adapter = adapter_of(self.game)
        for spec in set(self.seats) - {ME, OPEN}:
            adapter.offer.player(spec, len(self.seats))
        adapter.offer.variant(self.options, len(self.seats))
        return self


class Upload(Message):
    """Make a table that shows a game: a record as `ninetka_env.api.records` describes it, or an SGF file."""

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
    """Remove a table of one's own; while others have it on their lists, from the own list."""

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
    action: Action


class Undo(Message):
    """Take back one's last move and all after it; other people at the table are asked."""

    type: Literal["undo"]


class Answer(Message):
    """Answer another's wish to take back or to play again."""

    type: Literal["answer"]
    question: Question
    accept: bool


class Accept(Message):
    """Agree to how the finished game is counted, as the page proposes it."""

    type: Literal["accept"]
    question: Question


class PlayOn(Message):
    """Do not agree: what ended the game is taken back."""

    type: Literal["play_on"]
    question: Question


class Resign(Message):
    """Give the game up; with others of three or four at the table an agent plays on."""

    type: Literal["resign"]


class Rematch(Message):
    """Play again after the game is over; everybody moves up a seat, and other people at the table are asked."""

    type: Literal["rematch"]


class Claim(Message):
    """Go on without people who have left the game and not come back: win it, or call it off."""

    type: Literal["claim"]
    win: bool


class Say(Message):
    """Say something to all at the table."""

    type: Literal["say"]
    text: Annotated[str, Field(min_length=1, max_length=200)]


class AskKey(Message):
    """Ask for what a personal link holds: who opens it has one's seats at this table then. The one before is void."""

    type: Literal["key"]


class Reclaim(Message):
    """Take the seats that a personal link is for."""

    type: Literal["reclaim"]
    key: Token


class Pace(Message):
    """Set how long agents wait between moves, in milliseconds, and whether they wait at all."""

    type: Literal["pace"]
    wait: Annotated[int, Field(ge=0, le=5_000)]
    paused: bool


class Analyse(Message):
    """Look at the position after `ply` actions and at the win shares of all up to now, until it is stopped."""

    type: Literal["analyse"]
    ply: Ply
    engine: Engine
    line: Annotated[list[Action], Field(max_length=400)] | None = None
    """Played on from there without changing the game: what can be played then is told as `variation`."""
    hint: bool = False
    """Ask for nothing but one good move, told as `hint`."""


class Rest(Message):
    """Stop the analysis."""

    type: Literal["rest"]


class AskRecord(Message):
    """Ask for the record of the finished game."""

    type: Literal["record"]
    sgf: bool = False
    """As SGF, where the game has that."""


class AskPosition(Message):
    """Ask for the position after `ply` actions as text."""

    type: Literal["position"]
    ply: Ply


AnyMessage = (
    Hello | Create | Upload | Join | Leave | Discard | Sit | Play | Undo | Answer | Accept | PlayOn | Resign | Rematch
    | Claim | Say | AskKey | Reclaim | Pace | Analyse | Rest | AskRecord | AskPosition
)  # fmt: skip
_ADAPTER: TypeAdapter[AnyMessage] = TypeAdapter(Annotated[AnyMessage, Field(discriminator="type")])


def read_message(text: str) -> AnyMessage:
    """Return the message of a text; `RefusedError` says what is wrong with it."""
    if len(text.encode(errors="replace")) > MAX_MESSAGE:
        raise RefusedError(f"a message has at most {MAX_MESSAGE} bytes")
    try:
        return _ADAPTER.validate_json(text)
    except ValidationError as error:
        first: Any = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where, what = ".".join(str(part)[:40] for part in first["loc"]), str(first["msg"])
        if first["type"] == "value_error":  # a sentence of ours
            where, what = "", what.removeprefix("Value error, ")
        raise RefusedError(f"{where}: {what[:200]}" if where else what[:200]) from None


def id_of(text: str) -> int:
    """Return the id that a refused message seems to carry, 0 if none can be made out."""
    match = re.search(r'"id"\s*:\s*([0-9]{1,9})\s*[,}]', text[:MAX_MESSAGE])
    return int(match[1]) if match else 0

"""The messages of browsers: one JSON object per WebSocket message, validated here against a schema.

Every message has a `type` and may have an `id`, which the answer repeats: `{"type": "done", "id": 7}`, or
`{"type": "refused", "id": 7, "reason": "..."}`, after which nothing has changed. The server also sends:

- `welcome`: the games with their forms, and the user's tables.
- `state`: a table after each change, with the moves from number `from` on; `start` is there if earlier moves are void.
- `notice`, `text` and `chat` (chat messages).
- the results of an analysis: `analysis`, `insight`, `shares`, `exact`, `winners`, `variation`, `hint` and `failed`.
- `compiling`: an answer waits for code that is being compiled. Compiled code is cached on disk.

A winner in these messages is a seat, -1 for a draw, or null if the game is not finished or its winner is unknown.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from ninetka_env.core.registry import DEFAULT
from ninetka_web.games.adapter import adapter_of
from ninetka_web.tables.refusal import RefusedError

MAX_MESSAGE = 65_536
"""Maximal size of a message in bytes; a game record of Kropki on 39 x 32 with its chains has about 30,000."""
MAX_PLY = MAX_ACTION = 5_000
"""More than the plies of any game (including passes and drawings) and more than the actions of any game."""

ME, OPEN = "me", "open"


_JOINERS = dict.fromkeys((0x200C, 0x200D))
"""Zero-width joiners. They are not printable, but some scripts and emoji need them."""


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
"""The number of the question that is answered, from the state. So a late click cannot answer a newer question."""


class Message(BaseModel):
    """Base class of all messages."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    id: Annotated[int, Field(ge=0, lt=2**31)] = 0


class Hello(Message):
    """The first message of a connection. The `token` of an earlier `welcome` identifies the user."""

    type: Literal["hello"]
    token: Token | None = None


class Create(Message):
    """Create a table. The user takes seats `"me"`, other people can take seats `"open"`, the rest are agents."""

    type: Literal["create"]
    game: GameName = DEFAULT
    seats: Seats
    options: Annotated[dict[OptionName, OptionValue], Field(max_length=12)] = Field(default_factory=dict)
    """Options of the game's form."""
    name: Name = ""
    keep: bool = False
    """Whether the server may store the finished game for the statistics."""
    clock: tuple[MainTime, Increment] | None = None
    """Seconds that each person has for the game, and seconds added after each turn; None for no clock."""
    position: Text | None = None
    """A position as `Game` writes it, to start from; its options replace `options`."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Allow only agents and options that the game offers."""
        adapter = adapter_of(self.game)
        for spec in set(self.seats) - {ME, OPEN}:
            adapter.offer.player(spec, len(self.seats))
        adapter.offer.variant(self.options, len(self.seats))
        return self


class Upload(Message):
    """Create a table that shows a game: a game record (see `ninetka_env.api.records`) or an SGF file."""

    type: Literal["upload"]
    text: Text


class Join(Message):
    """Watch a table."""

    type: Literal["join"]
    table: TableId


class Leave(Message):
    """Watch no table; the user keeps the seats."""

    type: Literal["leave"]


class Discard(Message):
    """Remove a table of the user; while it is on the lists of others, only from the user's list."""

    type: Literal["discard"]
    table: TableId


class Sit(Message):
    """Take an open seat."""

    type: Literal["sit"]
    seat: Annotated[int, Field(ge=0, le=3)]
    name: Name = ""
    keep: bool = False


class Play(Message):
    """Play an action for the seat to move. `ply` is the number of plies so far; it detects moves that come too late."""

    type: Literal["play"]
    ply: Ply
    action: Action


class Undo(Message):
    """Take back the user's last move and all later moves; the other people at the table must agree."""

    type: Literal["undo"]


class Answer(Message):
    """Answer the request of another user to take back a move or to play again."""

    type: Literal["answer"]
    question: Question
    accept: bool


class Accept(Message):
    """Agree to the proposed score of the finished game."""

    type: Literal["accept"]
    question: Question


class PlayOn(Message):
    """Disagree with the proposed score: the passes that ended the game are taken back."""

    type: Literal["play_on"]
    question: Question


class Resign(Message):
    """Resign the game; if other people play at a table of three or four, an agent plays on."""

    type: Literal["resign"]


class Rematch(Message):
    """Play again after the game is over, with rotated seats; the other people at the table must agree."""

    type: Literal["rematch"]


class Claim(Message):
    """Continue without people who left the game and did not come back: win it, or call it off."""

    type: Literal["claim"]
    win: bool


class Say(Message):
    """Send a chat message to the table."""

    type: Literal["say"]
    text: Annotated[str, Field(min_length=1, max_length=200)]


class AskKey(Message):
    """Ask for the key of a personal link. The link gives the user's seats to who opens it; older links become void."""

    type: Literal["key"]


class Reclaim(Message):
    """Take the seats of a personal link."""

    type: Literal["reclaim"]
    key: Token


class Pace(Message):
    """Set the delay between the moves of agents, in milliseconds, and whether they are paused."""

    type: Literal["pace"]
    wait: Annotated[int, Field(ge=0, le=5_000)]
    paused: bool


class Analyse(Message):
    """Analyse the position after `ply` actions, and the win probabilities of the whole game, until it is stopped."""

    type: Literal["analyse"]
    ply: Ply
    engine: Engine
    line: Annotated[list[Action], Field(max_length=400)] | None = None
    """Actions to try from there without changing the game; the message `variation` sends the result."""
    hint: bool = False
    """Whether to send only one good move, in the message `hint`."""


class Rest(Message):
    """Stop the analysis."""

    type: Literal["rest"]


class AskRecord(Message):
    """Ask for the game record of the finished game."""

    type: Literal["record"]
    sgf: bool = False
    """Whether to send SGF instead, if the game has it."""


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
    """Return the validated message of a text; `RefusedError` names the first error."""
    if len(text.encode(errors="replace")) > MAX_MESSAGE:
        raise RefusedError(f"a message has at most {MAX_MESSAGE} bytes")
    try:
        return _ADAPTER.validate_json(text)
    except ValidationError as error:
        first: Any = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where, what = ".".join(str(part)[:40] for part in first["loc"]), str(first["msg"])
        if first["type"] == "value_error":  # raised by our own validators, so the message is complete
            where, what = "", what.removeprefix("Value error, ")
        raise RefusedError(f"{where}: {what[:200]}" if where else what[:200]) from None


def id_of(text: str) -> int:
    """Return the id of a message that could not be parsed; 0 if none is found."""
    match = re.search(r'"id"\s*:\s*([0-9]{1,9})\s*[,}]', text[:MAX_MESSAGE])
    return int(match[1]) if match else 0

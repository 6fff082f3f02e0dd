"""The messages of browsers: one JSON object per WebSocket message, validated here against a schema.

Every message has a `type` and may have an `id`. The answer has the same `id`: `{"type": "done", "id": 7}` or
`{"type": "refused", "id": 7, "reason": "..."}`. A refused message changes nothing. The server also sends:

- `welcome`: the games with their forms, and the user's tables.
- `state`: a table after each change, with the moves from number `from` on. If it contains `start`, the first
  position, it replaces all earlier moves.
- `notice`, `text` and `chat` (chat messages).
- the results of an analysis: `analysis`, `insight`, `shares`, `exact`, `winners`, `variation`, `hint` and `failed`.
- `compiling`: an answer waits for code that is being compiled. Compiled code is cached on disk.

A winner in these messages is a seat, -1 for a draw, or null if the game is not finished or its winner is unknown.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from ninetka_env.core.registry import DEFAULT_GAME
from ninetka_web.games.adapter import adapter_of
from ninetka_web.tables.refusal import RefusedError

MAX_MESSAGE = 65_536
"""Maximal size of a message in bytes; a game record of Kropki on 39 x 32 with its chains has about 30,000."""
MAX_PLY = MAX_ACTION = 5_000
"""More than the plies of any game (including passes and drawings) and more than the actions of any game."""

# The seats of `Create` that are not agents: the user's own seat, and a seat that another person can take.
ME, OPEN = "me", "open"


_JOINERS = dict.fromkeys((0x200C, 0x200D))
"""Zero-width joiners. They are not printable, but some scripts and emoji need them."""


def _check_name(text: str) -> str:
    visible = text.translate(_JOINERS)
    if not visible.isprintable() or text != text.strip() or (text and not visible):
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
QuestionNumber = Annotated[int, Field(ge=0, lt=2**31)]
"""The number of the answered question, as in the message `state`. A late answer to an old question is refused."""


class Message(BaseModel):
    """Base class of all messages."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    id: Annotated[int, Field(ge=0, lt=2**31)] = 0


class Hello(Message):
    """The first message of a connection. The `token` of an earlier `welcome` identifies the user."""

    type: Literal["hello"]
    token: Token | None = None


class Create(Message):
    """Create a table. In `seats`, `"me"` is a seat of the user, `"open"` a free seat; other texts name agents."""

    type: Literal["create"]
    game: GameName = DEFAULT_GAME
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
            adapter.offer.parse_agent(spec, len(self.seats))
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
    """Remove a table from the user's list, and delete it if it is on no other user's list."""

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
    question: QuestionNumber
    accept: bool


class Accept(Message):
    """Agree to the proposed score of the finished game."""

    type: Literal["accept"]
    question: QuestionNumber


class PlayOn(Message):
    """Disagree with the proposed score: the passes that ended the game are taken back."""

    type: Literal["play_on"]
    question: QuestionNumber


class Resign(Message):
    """Resign the game; if other people play at a table of three or four, an agent takes over."""

    type: Literal["resign"]


class Rematch(Message):
    """Play again after the game is over, with rotated seats; the other people at the table must agree."""

    type: Literal["rematch"]


class Claim(Message):
    """Continue without people who left the game and did not come back: win it, or call it off."""

    type: Literal["claim"]
    win: bool


class Chat(Message):
    """Send a chat message to the table."""

    type: Literal["chat"]
    text: Annotated[str, Field(min_length=1, max_length=200)]


class GetPersonalLink(Message):
    """Ask for the key of a personal link. A user who opens the link gets the seats; older links become void."""

    type: Literal["personal_link"]


class Reclaim(Message):
    """Take the seats of a personal link."""

    type: Literal["reclaim"]
    key: Token


class Pace(Message):
    """Set the delay between the moves of agents, in milliseconds, and whether they are paused."""

    type: Literal["pace"]
    delay_ms: Annotated[int, Field(ge=0, le=5_000)]
    paused: bool


class Analyse(Message):
    """Analyse the position after `ply` actions, and send the win probabilities of the whole game, until stopped."""

    type: Literal["analyse"]
    ply: Ply
    engine: Engine
    variation: Annotated[list[Action], Field(max_length=400)] | None = None
    """Actions to try after the first `ply` actions, without changing the game. The result is a message `variation`."""
    hint: bool = False
    """Whether to send only one good move, in the message `hint`."""


class StopAnalysis(Message):
    """Stop the analysis."""

    type: Literal["stop_analysis"]


class GetRecord(Message):
    """Ask for the game record of the finished game."""

    type: Literal["record"]
    sgf: bool = False
    """Whether to send SGF instead, if the game has it."""


class GetPosition(Message):
    """Ask for the position after `ply` actions as text."""

    type: Literal["position"]
    ply: Ply


ClientMessage = (
    Hello | Create | Upload | Join | Leave | Discard | Sit | Play | Undo | Answer | Accept | PlayOn | Resign | Rematch
    | Claim | Chat | GetPersonalLink | Reclaim | Pace | Analyse | StopAnalysis | GetRecord | GetPosition
)  # fmt: skip
_MESSAGE_ADAPTER: TypeAdapter[ClientMessage] = TypeAdapter(Annotated[ClientMessage, Field(discriminator="type")])


def read_message(text: str) -> ClientMessage:
    """Return the validated message of a text; `RefusedError` names the first error."""
    if len(text.encode(errors="replace")) > MAX_MESSAGE:
        raise RefusedError(f"a message has at most {MAX_MESSAGE} bytes")
    try:
        return _MESSAGE_ADAPTER.validate_json(text)
    except ValidationError as error:
        first: Any = error.errors(include_url=False, include_context=False, include_input=False)[0]
        location, reason = ".".join(str(part)[:40] for part in first["loc"]), str(first["msg"])
        if first["type"] == "value_error":  # raised by our own validators, so the message is complete
            location, reason = "", reason.removeprefix("Value error, ")
        raise RefusedError(f"{location}: {reason[:200]}" if location else reason[:200]) from None


def message_id_of(text: str) -> int:
    """Return the id of a message that could not be parsed; 0 if none is found."""
    match = re.search(r'"id"\s*:\s*([0-9]{1,9})\s*[,}]', text[:MAX_MESSAGE])
    return int(match[1]) if match else 0

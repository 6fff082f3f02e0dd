"""A table: who sits where, and the game that they play. It decides alone what is allowed, and knows no network.

Whatever a person asks for is granted as a whole, or refused by `RefusedError` with a reason; then nothing has changed.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from ninetka_env.api.records import GameRecord
from ninetka_env.core.game import Event
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.registry import Variant
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import PASS
from ninetka_env.games.ninetka.rules import Phase
from ninetka_env.games.ninetka.text import SEATS
from ninetka_web.protocol import ME, OPEN, Create, RefusedError, told_winner

STAND_IN = "maxn"
"""The agent that plays on for a person who has given up."""


@dataclass
class Seat:
    """A place at the table: an agent's, a person's, or open."""

    agent: str = ""
    """The agent's spec; empty for people."""
    name: str = ""
    holder: str = ""
    """Who may play for the seat, as `people.digest` names people; empty for agents and open seats."""
    keep: bool = False
    """Whether the person agrees that finished games are kept."""

    @property
    def kind(self) -> str:
        """`"agent"`, `"person"` or `"open"`."""
        return "agent" if self.agent else "person" if self.holder or self.name else "open"


@dataclass
class Setup:
    """How a game begins."""

    num_players: int
    neutral_placement: str = "players"
    turn_order: str = "restart"
    auto_pass: bool = True
    neutrals: list[int] = field(default_factory=list)
    """The squares drawn with `neutral_placement="random"`."""
    position: str = ""
    """A position to begin with, as text; empty for the beginning of a game."""

    @classmethod
    def of_record(cls, record: GameRecord) -> Setup:
        """Return the setup of a recorded game; `RefusedError` if it is one that tables cannot show."""
        definition = record.variant.definition
        if definition is not Game.definition():
            raise RefusedError(f"tables show {Game.definition().title}, and this is a game of {definition.title}")
        return cls(**record.variant.options, neutrals=list(record.drawn))

    @property
    def variant(self) -> Variant:
        """The game and its options."""
        return Game.definition().variant(
            num_players=self.num_players,
            neutral_placement=self.neutral_placement,
            turn_order=self.turn_order,
            auto_pass=self.auto_pass,
        )

    def start(self) -> Game:
        """Return the position before the first action."""
        return Game.from_text(self.position) if self.position else Game.start_from(self.variant, tuple(self.neutrals))

    def redrawn(self) -> Setup:
        """Return the same setup with new neutral stones if they are drawn."""
        if self.neutral_placement == "players" or self.position:
            return self
        return replace(self, neutrals=list(Game.start(self.variant).drawn_actions()))


@dataclass
class Table:
    """The authority on one table."""

    id: str
    setup: Setup
    seats: list[Seat]
    actions: list[int] = field(default_factory=list)
    """Those played so far; `moves` tells the same in full."""
    round: int = 0
    """Games played here before."""
    resigned: list[int] = field(default_factory=list)
    """Seats whose person has given up."""
    ended: bool = False
    """Whether the game ended where it stands: by an event, or given up by the last person, and then nobody wins."""
    event: Event | None = None
    """What ended the game before the rules did, to the win of somebody."""
    undo_to: int = -1
    """The ply to go back to when all agree, -1 for no such wish."""
    undo_asked: list[str] = field(default_factory=list)
    """The people who have not answered yet."""
    paused: bool = False
    wait: int = 700
    """Milliseconds between moves of agents."""
    helped: bool = False
    """Whether a person took back a move or looked at an analysis while the game ran."""
    shown: bool = False
    """Whether this is an uploaded game, to look at only."""
    begun: str = ""
    """When the game began, ISO 8601 in UTC."""

    def __post_init__(self) -> None:
        """Play the actions that are there already."""
        self.begun = self.begun or datetime.now(UTC).isoformat(timespec="seconds")
        self.revision = 0
        self._deal(list(self.actions))
        if self.event:
            self._end(Event(*self.event))

    def _deal(self, actions: list[int]) -> None:
        """Set the game to be the one of these actions from the start."""
        self.game = self.setup.start()
        self.start = self.game.copy()
        self.actions = []
        self.moves: list[dict[str, Any]] = []
        for action in actions:
            self._advance(action)

    def _advance(self, action: int) -> None:
        game, mover, phase = self.game, self.game.to_move, self.game.phase
        slides = phase == Phase.MOVEMENT and action != PASS and game.movable().flat[action]
        landing = game.landing(action) if slides else action
        game.play(action)
        move = {"seat": mover, "action": action, "to": landing, "passed": list(game.passed)}
        if phase == Phase.MOVEMENT:
            move["owners"] = game.section_owners().tolist()
        self.actions.append(action)
        self.moves.append(move)

    def _end(self, event: Event) -> None:
        self.game.forfeit(event.seat, event.kind)
        self.event, self.ended = event, True

    # Making tables

    @classmethod
    def create(cls, wish: Create, person: str) -> Table:
        """Make the table that a person asks for."""
        setup = Setup(len(wish.seats), wish.neutral_placement, wish.turn_order)
        if wish.position is not None:
            setup = _setup_of(wish.position, len(wish.seats))
        seats = [_seat_of(text, wish.name, person, wish.keep) for text in wish.seats]
        return cls(new_id(), setup.redrawn(), seats)

    @classmethod
    def of_record(cls, record: GameRecord) -> Table:
        """Make a table that shows a finished game."""
        setup, event = Setup.of_record(record), record.event
        seats = [Seat(name=record.tags.get(colour, colour)[:40]) for colour in record.seats]
        resigned = [event.seat] if event and event.kind == "resigned" else []
        return cls(new_id(), setup, seats, list(record.actions), resigned=resigned, event=event, shown=True)

    # What can be asked for

    def seats_of(self, person: str) -> list[int]:
        """Return the seats that a person holds."""
        return [number for number, seat in enumerate(self.seats) if person and seat.holder == person]

    @property
    def is_over(self) -> bool:
        """Whether the game has ended, by the rules or because it was given up."""
        return self.ended or self.game.is_over

    @property
    def agent_to_move(self) -> str:
        """The spec of the agent whose turn it is, empty if it is nobody's or a person's."""
        return "" if self.is_over or self.shown else self.seats[self.game.to_move].agent

    def play(self, person: str, ply: int, action: int) -> None:
        """Play a person's move."""
        self._check_running()
        if ply != len(self.actions):
            raise RefusedError(
                f"the move comes too late: it was meant for ply {ply}, the game is at ply {len(self.actions)}"
            )
        if self.game.to_move not in self.seats_of(person):
            raise RefusedError(f"it is {SEATS[self.game.to_move]}'s turn, which is not your seat")
        if not self.game.legal_mask()[action]:
            raise RefusedError(self.game.describe_illegal(action))
        self._clear_undo()
        self._advance(action)

    def play_agent(self, action: int) -> None:
        """Play the move that the agent whose turn it is has chosen."""
        self._advance(action)

    def sit(self, person: str, seat: int, name: str, keep: bool) -> None:
        """Take an open seat."""
        self._check_running()
        if seat >= len(self.seats) or self.seats[seat].kind != "open":
            raise RefusedError("this seat is taken")
        self.seats[seat] = Seat(name=name, holder=person, keep=keep)

    def undo(self, person: str) -> None:
        """Take back a person's last move, at once or when everyone else at the table agrees."""
        self._check_running()
        mine = self.seats_of(person)
        plies = [ply for ply, move in enumerate(self.moves) if move["seat"] in mine]
        if not plies:
            raise RefusedError("you have no move to take back")
        self.undo_to = plies[-1]
        self.undo_asked = sorted({seat.holder for seat in self.seats} - {"", person})
        self._undo_if_agreed()

    def answer(self, person: str, accept: bool) -> None:
        """Agree or disagree to take back."""
        if person not in self.undo_asked:
            raise RefusedError("nobody has asked you to take a move back")
        if not accept:
            self._clear_undo()
            return
        self.undo_asked.remove(person)
        self._undo_if_agreed()

    def _undo_if_agreed(self) -> None:
        if not self.undo_asked:
            self._deal(self.actions[: self.undo_to])
            self._clear_undo()
            self.helped = True

    def _clear_undo(self) -> None:
        self.undo_to, self.undo_asked = -1, []

    def resign(self, person: str) -> None:
        """Give up all seats of a person."""
        self._check_running()
        mine = self.seats_of(person)
        if not mine:
            raise RefusedError("only who plays can give up")
        others = {seat.holder for seat in self.seats} - {"", person}
        self._clear_undo()
        self.resigned += mine
        if len(self.seats) == 2 and len(mine) == 1:
            self._end(Event("resigned", mine[0]))
            return
        if not others:
            self.ended = True
            return
        for number in mine:
            self.seats[number] = Seat(agent=STAND_IN, name=self.seats[number].name)

    def rematch(self, person: str) -> None:
        """Begin the next game; everybody moves up a seat."""
        if self.shown:
            raise RefusedError("this table only shows a game")
        if not self.is_over:
            raise RefusedError("the game is not over yet")
        if not self.seats_of(person) and any(seat.holder for seat in self.seats):
            raise RefusedError("only who plays at this table can begin the next game")
        self.seats = self.seats[-1:] + self.seats[:-1]
        self.setup = self.setup.redrawn()
        self.round += 1
        self.resigned, self.ended, self.event, self.helped = [], False, None, False
        self.begun = datetime.now(UTC).isoformat(timespec="seconds")
        self._deal([])

    def set_pace(self, person: str, wait: int, paused: bool) -> None:
        """Set the pace of the agents: by the people who play or, where agents play alone, by whoever watches."""
        if any(seat.holder for seat in self.seats) and not self.seats_of(person):
            raise RefusedError("only who plays at this table can set its pace")
        self.wait, self.paused = wait, paused

    def check_analysis(self, person: str) -> None:
        """Refuse an analysis that would help one person against another."""
        if not self.is_over and not self.shown and {seat.holder for seat in self.seats} - {"", person}:
            raise RefusedError("people play here: the analysis opens when the game is over")

    def _check_running(self) -> None:
        if self.shown:
            raise RefusedError("this table only shows a game")
        if self.is_over:
            raise RefusedError("the game is over")

    # What can be seen

    def positions(self) -> Iterator[Game]:
        """Yield the position before the first action and after each."""
        game = self.start.copy()
        yield game.copy()
        for action in self.actions:
            game.play(action)
            yield game.copy()

    def position(self, ply: int) -> Game:
        """Return the position after `ply` actions."""
        if ply > len(self.actions):
            raise RefusedError(f"the game has {len(self.actions)} plies, not {ply}")
        return next(game for number, game in enumerate(self.positions()) if number == ply)

    def record(self) -> GameRecord:
        """Return the record of the finished game."""
        if self.setup.position:
            raise RefusedError("a game that did not begin with an empty board has no record; copy positions instead")
        if not self.game.is_over:
            raise RefusedError("a record holds a finished game; copy the position instead")
        tags = {SEATS[number]: self.who(number) for number in range(len(self.seats))} | {"date": self.begun[:10]}
        setup = self.setup
        return GameRecord.of(self.actions, setup.variant, drawn=setup.neutrals, event=self.event, tags=tags)

    def who(self, seat: int) -> str:
        """Name who sits on a seat."""
        taken = self.seats[seat]
        return taken.agent or taken.name or ("person" if taken.holder else OPEN)

    @property
    def winner(self) -> int:
        """The seat that has won, or `DRAWN`; `UNFINISHED` before the end, and where the last person gave up."""
        return self.game.winner() if self.game.is_over else UNFINISHED

    def view(self) -> dict[str, Any]:
        """Return what everybody may know; JSON."""
        game, over = self.game, self.is_over
        return {
            "table": self.id,
            "revision": self.revision,
            "round": self.round,
            "start": {"board": self.start.board.ravel().tolist(), "owners": self.start.section_owners().tolist()},
            "moves": self.moves,
            "seats": [
                {"kind": seat.kind, "agent": seat.agent, "name": seat.name, "keep": seat.keep} for seat in self.seats
            ],
            "to_move": game.to_move,
            "phase": game.phase.name.lower(),
            "legal": [] if over or self.shown else self._legal(),
            "owners": game.section_owners().tolist(),
            "over": over,
            "ended": self.ended,
            "event": self.event._asdict() if self.event else None,
            "winner": told_winner(self.winner),
            "resigned": self.resigned,
            "undo": self.undo_to if self.undo_asked else -1,
            "paused": self.paused,
            "wait": self.wait,
            "shown": self.shown,
            "from_position": bool(self.setup.position),
        }

    def _legal(self) -> list[list[int]]:
        """Return the legal actions, each with the square where its stone comes to rest."""
        game = self.game
        slides = game.phase == Phase.MOVEMENT
        return [[a, game.landing(a) if slides and a != PASS else a] for a in game.legal_actions().tolist()]

    # To and from the journal

    def to_json(self) -> str:
        """Return all that must outlive the server, as text."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("setup", "seats")}
        return json.dumps({**fields, "setup": asdict(self.setup), "seats": [asdict(seat) for seat in self.seats]})

    @classmethod
    def from_json(cls, text: str) -> Table:
        """Return the table that `to_json` wrote."""
        fields = json.loads(text)
        setup, seats = Setup(**fields.pop("setup")), [Seat(**seat) for seat in fields.pop("seats")]
        resigned = fields["resigned"]
        if "event" not in fields and fields["ended"] and len(seats) == 2 and len(resigned) == 1:
            fields["event"] = ("resigned", resigned[0])  # as written before there were events
        return cls(setup=setup, seats=seats, **fields)


def new_id() -> str:
    """Return an unguessable name for a table: 96 random bits in 16 letters."""
    return secrets.token_urlsafe(12)


def _seat_of(text: str, name: str, person: str, keep: bool) -> Seat:
    if text == ME:
        return Seat(name=name, holder=person, keep=keep)
    return Seat() if text == OPEN else Seat(agent=text)


def _setup_of(text: str, seats: int) -> Setup:
    """Return the setup that begins with a position; `RefusedError` if the text holds none that can be played on."""
    try:
        game = Game.from_text(text)
    except ValueError as error:
        raise RefusedError(f"the position cannot be read: {error}") from None
    if game.num_players != seats:
        raise RefusedError(f"the position is one of {game.num_players} players, and the table has {seats} seats")
    if game.is_over:
        raise RefusedError("in this position the game is over")
    return Setup(seats, turn_order=game.turn_order, auto_pass=game.auto_pass, position=str(game))

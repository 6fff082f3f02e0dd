"""A table: its seats and its game. It decides what users may do, and does not depend on the server.

Every request of a user is either carried out completely, or `RefusedError` gives the reason and nothing has changed.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ninetka_env.core.game import Event, Game
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.stated import winner_of
from ninetka_web.games.adapter import adapter_of
from ninetka_web.games.offer import Json
from ninetka_web.tables.clocks import Clock
from ninetka_web.tables.course import Course
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.setup import Seat, Setup, digest
from ninetka_web.tables.wishes import REMATCH, UNDO, Wishes


@dataclass
class Table:
    """The state of one table. All fields are stored; see `journal.py`."""

    id: str
    setup: Setup
    seats: list[Seat]
    actions: list[int] = field(default_factory=list)
    """The actions played so far, shared with `course`."""
    round: int = 0
    """The number of earlier games at this table."""
    handed: list[int] = field(default_factory=list)
    """Indices of actions before which a turn was skipped, in games of other programs: see `GameRecord.handed`."""
    resigned: list[int] = field(default_factory=list)
    """Seats whose user resigned, or was replaced by an agent after losing on time or leaving."""
    ended: bool = False
    """Whether the game ended before its rules ended it: by an event, or without a winner."""
    event: Event | None = None
    """The event that ended the game before its rules did and made a seat win."""
    called_off: bool = False
    """Whether the game was called off because a user had left; no seat loses."""
    wishes: Wishes = field(default_factory=Wishes)
    clock: Clock | None = None
    proposal: Json | None = None
    """The proposed score of the finished game: see `Adapter.settle`."""
    accepted: list[str] = field(default_factory=list)
    """The users who agree to the proposal."""
    agreed: bool = False
    """Whether all users agree to the proposal."""
    told: str = ""
    """The result in the file of an uploaded game, if it differs from that of the rules: see `GameRecord.stated`."""
    paused: bool = False
    wait: int = 700
    """Milliseconds between the moves of agents."""
    helped: bool = False
    """Whether a user took back a move or used an analysis during the game."""
    shown: bool = False
    """Whether this is an uploaded game that can only be viewed."""
    begun: str = ""
    """The start of the game, ISO 8601 in UTC."""
    maker: str = ""
    """The `digest` of the quota key of the creator; empty if unknown."""
    forgotten: list[str] = field(default_factory=list)
    """The users who removed the finished game from their list."""

    def __post_init__(self) -> None:
        """Set up the game and replay its actions."""
        self.begun = self.begun or datetime.now(UTC).isoformat(timespec="seconds")
        self.revision = 0
        self.adapter = adapter_of(self.setup.game)
        self._begin(self.actions, self.handed)
        if self.event:
            self.end(self.event)

    @property
    def game(self) -> Game:
        """The current position."""
        return self.course.game

    def _begin(self, actions: list[int], handed: list[int]) -> None:
        """Start the game and play these actions."""
        self.course = Course(self.adapter, self.setup.start(), actions, handed)
        self.actions, self.handed = self.course.actions, self.course.handed

    def end(self, event: Event) -> None:
        """End the game by an event."""
        self.game.forfeit(event.seat, event.kind)
        self.event, self.ended = event, True

    def rewind(self, ply: int) -> None:
        """Go back to the position before ply `ply`. This clears open requests and the proposed score."""
        self.course.rewind(ply)
        self.wishes.clear()
        self.proposal, self.accepted, self.agreed = None, [], False

    # Requests of users

    def seats_of(self, person: str) -> list[int]:
        """Return the seats of a user."""
        return [number for number, seat in enumerate(self.seats) if person and seat.holder == person]

    @property
    def is_over(self) -> bool:
        """Whether the game has ended, by the rules or otherwise, and no agreement on the score is pending."""
        return self.ended or (self.game.is_over and not self.is_settling)

    @property
    def people(self) -> set[str]:
        """The users who have a seat."""
        return {seat.holder for seat in self.seats} - {""}

    @property
    def is_settling(self) -> bool:
        """Whether the rules have ended the game and its users have yet to agree on the score."""
        over = self.game.is_over and not (self.ended or self.shown or self.agreed)
        return over and bool(self.people) and self.adapter.may_settle(self.game)

    @property
    def is_running(self) -> bool:
        """Whether a move can be played."""
        return not (self.ended or self.shown or self.game.is_over)

    @property
    def agent_to_move(self) -> str:
        """The spec of the agent to move; empty if no agent is to move."""
        return self.seats[self.game.to_move].agent if self.is_running else ""

    def play(self, person: str, ply: int, action: int) -> None:
        """Play a user's move at ply `ply`."""
        self.check_running()
        if ply != len(self.actions):
            raise RefusedError(
                f"the move comes too late: it was meant for ply {ply}, the game is at ply {len(self.actions)}"
            )
        if not self.is_running:
            raise RefusedError("the game is being counted: agree, or play on")
        if self.game.to_move not in self.seats_of(person):
            raise RefusedError(f"it is {self.colour(self.game.to_move)}'s turn, which is not your seat")
        if not 0 <= action < self.game.num_actions or not self.game.legal_mask()[action]:
            raise RefusedError(self.adapter.board.why_not(self.game, action))
        if self.clock and self.clock.is_out:
            raise RefusedError("your time is over")
        seat = self.game.to_move
        self.wishes.clear()
        self.course.play(action)
        if self.clock and (self.game.to_move != seat or self.game.is_over):
            self.clock.run(None)
            self.clock.end_turn(seat)

    def play_agent(self, action: int) -> None:
        """Play the move of the agent to move."""
        self.course.play(action)
        if self.game.is_over:
            self.wishes.clear()  # a finished game cannot be continued

    def sit(self, person: str, seat: int, name: str, keep: bool) -> None:
        """Take an open seat."""
        self.check_running()
        if seat >= len(self.seats) or self.seats[seat].kind != "open":
            raise RefusedError("this seat is taken")
        self.seats[seat] = Seat(name=name, holder=person, keep=keep)

    def undo(self, person: str) -> None:
        """Take back a user's last move, at once if no other people play, otherwise when all of them agree."""
        self.check_running()
        mine = self.seats_of(person)
        plies = [ply for ply, move in enumerate(self.course.moves) if move["seat"] in mine]
        if not plies:
            raise RefusedError("you have no move to take back")
        if self.wishes.ask(UNDO, person, self.people - {person}, plies[-1]):
            self._take_back(plies[-1])

    def answer(self, person: str, accept: bool) -> None:
        """Agree or disagree with the request of another user."""
        kind, ply = self.wishes.kind, self.wishes.ply
        if self.wishes.answer(person, accept):
            self._take_back(ply) if kind == UNDO else self._begin_anew()

    def _take_back(self, ply: int) -> None:
        self.rewind(ply)
        self.helped = True

    def wind(self) -> None:
        """Run the clock of the person to move, once no seat is open."""
        if self.clock:
            waits = self.is_running and all(seat.kind != "open" for seat in self.seats)
            seat = self.game.to_move if waits and not self.agent_to_move else None
            if seat != self.clock.running:
                self.clock.run(seat)

    def rematch(self, person: str) -> None:
        """Start the next game with rotated seats, at once if no other people play, otherwise when all of them agree."""
        if self.shown:
            raise RefusedError("this table only shows a game")
        if not self.is_over:
            raise RefusedError("the game is not over yet")
        if not self.seats_of(person) and any(seat.holder for seat in self.seats):
            raise RefusedError("only players of this table can start the next game")
        if self.wishes.ask(REMATCH, person, self.people - {person}):
            self._begin_anew()

    def _begin_anew(self) -> None:
        self.seats = self.seats[-1:] + self.seats[:-1]
        self.setup = self.setup.redrawn()
        self.round += 1
        self.resigned, self.ended, self.event, self.helped = [], False, None, False
        self.called_off, self.forgotten = False, []
        self.wishes = Wishes(question=self.wishes.question)
        if self.clock:
            self.clock = Clock.of(self.clock.main, self.clock.increment, len(self.seats))
        self.proposal, self.accepted, self.agreed = None, [], False
        self.begun = datetime.now(UTC).isoformat(timespec="seconds")
        self._begin([], [])

    def give_key(self, person: str) -> str:
        """Create a personal link to the seats of a user and return its key. Only the digest of the key is stored."""
        key, mine = secrets.token_urlsafe(32), self.seats_of(person)
        if not mine:
            raise RefusedError("you have no seat at this table")
        for number in mine:
            self.seats[number].key = digest(key)
        return key

    def reclaim(self, person: str, key: str) -> None:
        """Give a user the seats of a personal link."""
        seats = [seat for seat in self.seats if seat.key == digest(key)]
        if not seats:
            raise RefusedError("this personal link is not valid (any more): ask for a new one where you play")
        old = seats[0].holder
        if old == person:
            return
        if person in self.people:
            raise RefusedError("you play another seat at this table")
        for seat in seats:
            seat.holder = person
        self.wishes.rename(old, person)
        for people in (self.accepted, self.forgotten):
            people[:] = [person if one == old else one for one in people]

    def set_pace(self, person: str, wait: int, paused: bool, alone: bool) -> None:
        """Set the delay between the moves of agents, and whether they are paused.

        Users who play at the table may do this; if only agents play, everyone may. Only a user who is `alone` (see
        `People.is_alone`) may pause the agents.
        """
        if self.people and person not in self.people:
            raise RefusedError("only players of this table can set its pace")
        if paused and not (self.paused or alone):
            raise RefusedError("other people are at this table, so the agents are not paused")
        self.wait, self.paused = wait, paused

    def check_analysis(self, person: str) -> None:
        """Refuse an analysis that would help one user against another."""
        if not self.is_over and not self.shown and self.people - {person}:
            raise RefusedError("people play here: the analysis opens when the game is over")

    def check_running(self) -> None:
        """Refuse a request that needs a running game."""
        if self.shown:
            raise RefusedError("this table only shows a game")
        if self.is_over:
            raise RefusedError("the game is over")

    # The public state

    def colour(self, seat: int) -> str:
        """Return the name of a seat's colour, in lower case."""
        return self.game.definition().seats[seat].lower()

    def who(self, seat: int) -> str:
        """Return the name of a seat's agent or user; without one, `Seat.kind`."""
        taken = self.seats[seat]
        return taken.agent or taken.name or taken.kind

    @property
    def winner(self) -> int:
        """The winning seat, or `DRAWN`.

        `UNFINISHED` before the end, if the last user gave up, and if the file of an uploaded game states no winner.
        """
        if self.agreed and self.proposal:
            return int(self.proposal["winner"])
        return winner_of(self.game, self.told) if self.game.is_over and not self.is_settling else UNFINISHED


def new_id() -> str:
    """Return a new unguessable table id: 96 random bits in 16 characters."""
    return secrets.token_urlsafe(12)

"""A table: who sits where, and the game that they play. It decides alone what is allowed, and knows no network.

Whatever a person asks for is granted as a whole, or refused by `RefusedError` with a reason; then nothing has changed.
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
    """The authority on one table."""

    id: str
    setup: Setup
    seats: list[Seat]
    actions: list[int] = field(default_factory=list)
    """Those played so far; see `course` for more about them."""
    round: int = 0
    """Games played here before."""
    handed: list[int] = field(default_factory=list)
    """Before which of them a turn was left out, in games of other programs: see `GameRecord.handed`."""
    resigned: list[int] = field(default_factory=list)
    """Seats whose person has given up, or has been replaced by an agent: out of time, or gone."""
    ended: bool = False
    """Whether the game ended where it stands: by an event, or given up by the last person, and then nobody wins."""
    event: Event | None = None
    """What ended the game before the rules did, to the win of somebody."""
    called_off: bool = False
    """Whether it ended because somebody had gone, to nobody's loss."""
    wishes: Wishes = field(default_factory=Wishes)
    clock: Clock | None = None
    proposal: Json | None = None
    """How the finished game may be counted: see `Adapter.settle`."""
    accepted: list[str] = field(default_factory=list)
    """The people who agree to that."""
    agreed: bool = False
    """Whether everybody does."""
    told: str = ""
    """The result that the file of an uploaded game states, if our rules give another one: see `GameRecord.stated`."""
    paused: bool = False
    wait: int = 700
    """Milliseconds between moves of agents."""
    helped: bool = False
    """Whether a person took back a move or looked at an analysis while the game ran."""
    shown: bool = False
    """Whether this is an uploaded game, to look at only."""
    begun: str = ""
    """When the game began, ISO 8601 in UTC."""
    maker: str = ""
    """Whom the table is charged to, in the words of `setup.digest`; empty where that is not known."""
    forgotten: list[str] = field(default_factory=list)
    """The people who have taken the finished game off their list."""

    def __post_init__(self) -> None:
        """Play the actions that are there already."""
        self.begun = self.begun or datetime.now(UTC).isoformat(timespec="seconds")
        self.revision = 0
        self.adapter = adapter_of(self.setup.game)
        self._begin(self.actions, self.handed)
        if self.event:
            self.end(self.event)

    @property
    def game(self) -> Game:
        """The position now."""
        return self.course.game

    def _begin(self, actions: list[int], handed: list[int]) -> None:
        """Begin the game, and play these actions."""
        self.course = Course(self.adapter, self.setup.start(), actions, handed)
        self.actions, self.handed = self.course.actions, self.course.handed

    def end(self, event: Event) -> None:
        """End the game before its rules do."""
        self.game.forfeit(event.seat, event.kind)
        self.event, self.ended = event, True

    def rewind(self, ply: int) -> None:
        """Go back to the position before ply `ply`; whatever was asked or proposed since is void."""
        self.course.rewind(ply)
        self.wishes.clear()
        self.proposal, self.accepted, self.agreed = None, [], False

    # What can be asked for

    def seats_of(self, person: str) -> list[int]:
        """Return the seats that a person holds."""
        return [number for number, seat in enumerate(self.seats) if person and seat.holder == person]

    @property
    def is_over(self) -> bool:
        """Whether the game has ended, by the rules or because it was given up, and nothing is left to agree on."""
        return self.ended or (self.game.is_over and not self.is_settling)

    @property
    def people(self) -> set[str]:
        """Who holds a seat."""
        return {seat.holder for seat in self.seats} - {""}

    @property
    def is_settling(self) -> bool:
        """Whether the rules have ended the game, and people are to agree on how it is counted."""
        over = self.game.is_over and not (self.ended or self.shown or self.agreed)
        return over and bool(self.people) and self.adapter.may_settle(self.game)

    @property
    def is_running(self) -> bool:
        """Whether there is a move to be made."""
        return not (self.ended or self.shown or self.game.is_over)

    @property
    def agent_to_move(self) -> str:
        """The spec of the agent whose turn it is, empty if it is nobody's or a person's."""
        return self.seats[self.game.to_move].agent if self.is_running else ""

    def play(self, person: str, ply: int, action: int) -> None:
        """Play a person's move."""
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
        """Play the move that the agent whose turn it is has chosen."""
        self.course.play(action)
        if self.game.is_over:
            self.wishes.clear()  # nobody can open a finished game again

    def sit(self, person: str, seat: int, name: str, keep: bool) -> None:
        """Take an open seat."""
        self.check_running()
        if seat >= len(self.seats) or self.seats[seat].kind != "open":
            raise RefusedError("this seat is taken")
        self.seats[seat] = Seat(name=name, holder=person, keep=keep)

    def undo(self, person: str) -> None:
        """Take back a person's last move, at once or when everyone else at the table agrees."""
        self.check_running()
        mine = self.seats_of(person)
        plies = [ply for ply, move in enumerate(self.course.moves) if move["seat"] in mine]
        if not plies:
            raise RefusedError("you have no move to take back")
        if self.wishes.ask(UNDO, person, self.people - {person}, plies[-1]):
            self._take_back(plies[-1])

    def answer(self, person: str, accept: bool) -> None:
        """Agree or disagree to what another person wishes."""
        kind, ply = self.wishes.kind, self.wishes.ply
        if self.wishes.answer(person, accept):
            self._take_back(ply) if kind == UNDO else self._begin_anew()

    def _take_back(self, ply: int) -> None:
        self.rewind(ply)
        self.helped = True

    def wind(self) -> None:
        """Let the clock of the person run whose turn it is, once all seats are taken."""
        if self.clock:
            waits = self.is_running and all(seat.kind != "open" for seat in self.seats)
            seat = self.game.to_move if waits and not self.agent_to_move else None
            if seat != self.clock.running:
                self.clock.run(seat)

    def rematch(self, person: str) -> None:
        """Begin the next game, at once or when everyone else at the table agrees; everybody moves up a seat."""
        if self.shown:
            raise RefusedError("this table only shows a game")
        if not self.is_over:
            raise RefusedError("the game is not over yet")
        if not self.seats_of(person) and any(seat.holder for seat in self.seats):
            raise RefusedError("only who plays at this table can begin the next game")
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
        """Return what a new personal link to the seats of a person holds; only its digest stays here."""
        key, mine = secrets.token_urlsafe(32), self.seats_of(person)
        if not mine:
            raise RefusedError("you have no seat at this table")
        for number in mine:
            self.seats[number].key = digest(key)
        return key

    def reclaim(self, person: str, key: str) -> None:
        """Give a person the seats that a personal link is for."""
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
        """Set the pace of the agents: by the people who play or, where agents play alone, by whoever watches.

        They are paused only for who is `alone`: not by one against others who play, or watch what they play.
        """
        if self.people and person not in self.people:
            raise RefusedError("only who plays at this table can set its pace")
        if paused and not (self.paused or alone):
            raise RefusedError("others are at this table: the agents are not paused by one of them")
        self.wait, self.paused = wait, paused

    def check_analysis(self, person: str) -> None:
        """Refuse an analysis that would help one person against another."""
        if not self.is_over and not self.shown and self.people - {person}:
            raise RefusedError("people play here: the analysis opens when the game is over")

    def check_running(self) -> None:
        """Refuse what needs a game that goes on."""
        if self.shown:
            raise RefusedError("this table only shows a game")
        if self.is_over:
            raise RefusedError("the game is over")

    # What can be seen

    def colour(self, seat: int) -> str:
        """Name a seat, in lower case."""
        return self.game.definition().seats[seat].lower()

    def who(self, seat: int) -> str:
        """Name who sits on a seat."""
        taken = self.seats[seat]
        return taken.agent or taken.name or taken.kind

    @property
    def winner(self) -> int:
        """The seat that has won, or `DRAWN`.

        `UNFINISHED` before the end, where the last person gave up, and where a file states that nobody has won.
        """
        if self.agreed and self.proposal:
            return int(self.proposal["winner"])
        return winner_of(self.game, self.told) if self.game.is_over and not self.is_settling else UNFINISHED


def new_id() -> str:
    """Return an unguessable name for a table: 96 random bits in 16 letters."""
    return secrets.token_urlsafe(12)

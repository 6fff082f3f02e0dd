"""A table: its seats and its game. It decides what users may do, and does not depend on the server.

Start reading at `Table.play`. Resignations and other ends of games are in `endings.py`;
`ninetka_web/server/live_tables.py` keeps the tables of a server.

Every request of a user is either carried out completely, or `RefusedError` gives the reason and nothing has changed.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ninetka_env.core.game import Event, Game
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.stated_results import stated_or_counted_winner
from ninetka_web.games.adapter import adapter_of
from ninetka_web.games.offer import Json
from ninetka_web.tables.clocks import Clock
from ninetka_web.tables.game_history import GameHistory
from ninetka_web.tables.pending_request import REMATCH, UNDO, PendingRequest
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.setup import Seat, Setup, digest


@dataclass
class Table:
    """The state of one table. All fields are stored; see `journal.py`."""

    id: str
    setup: Setup
    seats: list[Seat]
    actions: list[int] = field(default_factory=list)
    """The actions played so far, shared with `history`."""
    round: int = 0
    """The number of earlier games at this table."""
    handed: list[int] = field(default_factory=list)
    """Indices of actions before which a turn was skipped in an uploaded game: see `GameRecord.skipped_turns`."""
    resigned: list[int] = field(default_factory=list)
    """Seats whose user resigned, or was replaced by an agent after losing on time or leaving."""
    ended: bool = False
    """Whether the game ended before its rules ended it: by an event, or without a winner."""
    event: Event | None = None
    """The event that ended the game before its rules did and made a seat win."""
    called_off: bool = False
    """Whether the game was called off because a user had left; no seat loses."""
    pending_request: PendingRequest = field(default_factory=PendingRequest)
    clock: Clock | None = None
    proposal: Json | None = None
    """The proposed score of the finished game: see `Adapter.propose_score`."""
    accepted: list[str] = field(default_factory=list)
    """The users who agree to the proposal."""
    agreed: bool = False
    """Whether all users agree to the proposal."""
    stated_result: str = ""
    """The result in the file of an uploaded game, if it differs from that of the rules: see `GameRecord.stated`."""
    paused: bool = False
    agent_delay_ms: int = 700
    """Milliseconds between the moves of agents."""
    helped: bool = False
    """Whether a user took back a move or used an analysis during the game."""
    view_only: bool = False
    """Whether this is an uploaded game that can only be viewed."""
    started_at: str = ""
    """The start of the game, ISO 8601 in UTC."""
    created_by: str = ""
    """The `digest` of the quota key of the creator; empty if unknown."""
    hidden_by: list[str] = field(default_factory=list)
    """The users who removed the finished game from their list."""

    def __post_init__(self) -> None:
        """Set up the game and replay its actions."""
        self.started_at = self.started_at or datetime.now(UTC).isoformat(timespec="seconds")
        self.revision = 0
        self.adapter = adapter_of(self.setup.game)
        self._start_game(self.actions, self.handed)
        if self.event:
            self.end(self.event)

    @property
    def game(self) -> Game:
        """The current position."""
        return self.history.game

    def _start_game(self, actions: list[int], handed: list[int]) -> None:
        """Start the game and play these actions."""
        self.history = GameHistory(self.adapter, self.setup.start(), actions, handed)
        self.actions, self.handed = self.history.actions, self.history.handed

    def end(self, event: Event) -> None:
        """End the game by an event."""
        self.game.forfeit(event.seat, event.kind)
        self.event, self.ended = event, True

    def rewind(self, ply: int) -> None:
        """Go back to the position before ply `ply`. This clears open requests and the proposed score."""
        self.history.rewind(ply)
        self.pending_request.clear()
        self.proposal, self.accepted, self.agreed = None, [], False

    # Requests of users

    def seats_of(self, user: str) -> list[int]:
        """Return the seats of a user."""
        return [number for number, seat in enumerate(self.seats) if user and seat.user == user]

    @property
    def is_over(self) -> bool:
        """Whether the game has ended, by the rules or otherwise, and no agreement on the score is pending."""
        return self.ended or (self.game.is_over and not self.is_settling)

    @property
    def users(self) -> set[str]:
        """The users who have a seat."""
        return {seat.user for seat in self.seats} - {""}

    @property
    def is_settling(self) -> bool:
        """Whether the rules have ended the game and its users have yet to agree on the score."""
        over = self.game.is_over and not (self.ended or self.view_only or self.agreed)
        return over and bool(self.users) and self.adapter.may_settle(self.game)

    @property
    def is_running(self) -> bool:
        """Whether a move can be played."""
        return not (self.ended or self.view_only or self.game.is_over)

    @property
    def agent_to_move(self) -> str:
        """The spec of the agent to move; empty if no agent is to move."""
        return self.seats[self.game.to_move].agent if self.is_running else ""

    def play(self, user: str, ply: int, action: int) -> None:
        """Play a user's move at ply `ply`."""
        self.check_running()
        if ply != len(self.actions):
            raise RefusedError(
                f"the move comes too late: it was meant for ply {ply}, the game is at ply {len(self.actions)}"
            )
        if not self.is_running:
            raise RefusedError("the game is being counted: agree, or play on")
        if self.game.to_move not in self.seats_of(user):
            raise RefusedError(f"it is {self.colour(self.game.to_move)}'s turn, which is not your seat")
        if not 0 <= action < self.game.num_actions or not self.game.legal_mask()[action]:
            raise RefusedError(self.adapter.board.illegal_reason(self.game, action))
        if self.clock and self.clock.is_expired:
            raise RefusedError("your time is over")
        seat = self.game.to_move
        self.pending_request.clear()
        self.history.play(action)
        if self.clock and (self.game.to_move != seat or self.game.is_over):
            self.clock.switch_to(None)
            self.clock.end_turn(seat)

    def play_agent(self, action: int) -> None:
        """Play the move of the agent to move."""
        self.history.play(action)
        if self.game.is_over:
            self.pending_request.clear()  # the request was for the unfinished game

    def sit(self, user: str, seat: int, name: str, keep: bool) -> None:
        """Take an open seat."""
        self.check_running()
        if seat >= len(self.seats) or self.seats[seat].kind != "open":
            raise RefusedError("this seat is taken")
        self.seats[seat] = Seat(name=name, user=user, keep=keep)

    def undo(self, user: str) -> None:
        """Take back a user's last move, at once if no other people play, otherwise when all of them agree."""
        self.check_running()
        own_seats = self.seats_of(user)
        plies = [ply for ply, move in enumerate(self.history.moves) if move["seat"] in own_seats]
        if not plies:
            raise RefusedError("you have no move to take back")
        if self.pending_request.ask(UNDO, user, self.users - {user}, plies[-1]):
            self._take_back(plies[-1])

    def answer(self, user: str, accept: bool) -> None:
        """Agree or disagree with the request of another user."""
        kind, ply = self.pending_request.kind, self.pending_request.ply
        if self.pending_request.answer(user, accept):
            self._take_back(ply) if kind == UNDO else self._start_rematch()

    def _take_back(self, ply: int) -> None:
        self.rewind(ply)
        self.helped = True

    def update_clock(self) -> None:
        """Run the clock of the person to move; no clock while a seat is open or an agent is to move."""
        if self.clock:
            may_run = self.is_running and all(seat.kind != "open" for seat in self.seats)
            seat = self.game.to_move if may_run and not self.agent_to_move else None
            if seat != self.clock.running:
                self.clock.switch_to(seat)

    def rematch(self, user: str) -> None:
        """Start the next game with rotated seats, at once if no other people play, otherwise when all of them agree."""
        if self.view_only:
            raise RefusedError("this table only shows a game")
        if not self.is_over:
            raise RefusedError("the game is not over yet")
        if not self.seats_of(user) and any(seat.user for seat in self.seats):
            raise RefusedError("only players of this table can start the next game")
        if self.pending_request.ask(REMATCH, user, self.users - {user}):
            self._start_rematch()

    def _start_rematch(self) -> None:
        self.seats = self.seats[-1:] + self.seats[:-1]
        self.setup = self.setup.redrawn()
        self.round += 1
        self.resigned, self.ended, self.event, self.helped = [], False, None, False
        self.called_off, self.hidden_by = False, []
        self.pending_request = PendingRequest(question=self.pending_request.question)
        if self.clock:
            self.clock = Clock.of(self.clock.main, self.clock.increment, len(self.seats))
        self.proposal, self.accepted, self.agreed = None, [], False
        self.started_at = datetime.now(UTC).isoformat(timespec="seconds")
        self._start_game([], [])

    def create_personal_link(self, user: str) -> str:
        """Create a personal link to the seats of a user and return its key. Only the digest of the key is stored."""
        key, own_seats = secrets.token_urlsafe(32), self.seats_of(user)
        if not own_seats:
            raise RefusedError("you have no seat at this table")
        for number in own_seats:
            self.seats[number].link_digest = digest(key)
        return key

    def reclaim(self, user: str, key: str) -> None:
        """Give a user the seats of a personal link."""
        seats = [seat for seat in self.seats if seat.link_digest == digest(key)]
        if not seats:
            raise RefusedError("this personal link is not valid (any more): ask for a new one where you play")
        previous_user = seats[0].user
        if previous_user == user:
            return
        if user in self.users:
            raise RefusedError("you play another seat at this table")
        for seat in seats:
            seat.user = user
        self.pending_request.replace_user(previous_user, user)
        for users in (self.accepted, self.hidden_by):
            users[:] = [user if each == previous_user else each for each in users]

    def set_pace(self, user: str, delay_ms: int, paused: bool, is_alone: bool) -> None:
        """Set the delay between the moves of agents, and whether they are paused.

        Users who play at the table may do this; if only agents play, any user may. Agents are paused only if
        `is_alone` is true (see `Presence.is_alone`).
        """
        if self.users and user not in self.users:
            raise RefusedError("only players of this table can set its pace")
        if paused and not (self.paused or is_alone):
            raise RefusedError("other people are at this table, so the agents are not paused")
        self.agent_delay_ms, self.paused = delay_ms, paused

    def check_analysis(self, user: str) -> None:
        """Refuse an analysis that would help one user against another."""
        if not self.is_over and not self.view_only and self.users - {user}:
            raise RefusedError("people play here: the analysis opens when the game is over")

    def check_running(self) -> None:
        """Refuse a request that needs a running game."""
        if self.view_only:
            raise RefusedError("this table only shows a game")
        if self.is_over:
            raise RefusedError("the game is over")

    # The public state

    def colour(self, seat: int) -> str:
        """Return the name of a seat's colour, in lower case."""
        return self.game.definition().seats[seat].lower()

    def seat_name(self, seat: int) -> str:
        """Return the name of a seat's agent or user; without one, `Seat.kind`."""
        seat_info = self.seats[seat]
        return seat_info.agent or seat_info.name or seat_info.kind

    @property
    def winner(self) -> int:
        """The winning seat, or `DRAWN`.

        `UNFINISHED` before the end, if the last user gave up, or if the file of an uploaded game states no winner.
        """
        if self.agreed and self.proposal:
            return int(self.proposal["winner"])
        return (
            stated_or_counted_winner(self.game, self.stated_result)
            if self.game.is_over and not self.is_settling
            else UNFINISHED
        )


def new_id() -> str:
    """Return a new unguessable table id: 96 random bits in 16 characters."""
    return secrets.token_urlsafe(12)

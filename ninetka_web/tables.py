"""A table: who sits where, and the game that they play. It decides alone what is allowed, and knows no network.

Whatever a person asks for is granted as a whole, or refused by `RefusedError` with a reason; then nothing has changed.
"""

from __future__ import annotations

import itertools
import json
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from ninetka_env.api.records import GameRecord
from ninetka_env.core.game import Event, Game
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.sgf import sgf_text
from ninetka_web.adapter import Json, adapter_of, told_winner
from ninetka_web.protocol import OPEN, Create, RefusedError
from ninetka_web.setup import Seat, Setup, adapter_for, seat_of, setup_of


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
    handed: list[int] = field(default_factory=list)
    """Before which of them a turn was left out, in games of other programs: see `GameRecord.handed`."""
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
    proposal: Json | None = None
    """How the finished game may be counted: see `Adapter.settle`."""
    accepted: list[str] = field(default_factory=list)
    """The people who agree to that."""
    agreed: bool = False
    """Whether everybody does."""
    told: str = ""
    """What the file of an uploaded game says of its result, if that is another one than ours."""
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
        self.adapter = adapter_of(self.setup.game)
        self._deal(list(self.actions), self.handed)
        if self.event:
            self._end(Event(*self.event))

    def _deal(self, actions: list[int], handed: list[int] | None = None) -> None:
        """Set the game to be the one of these actions from the start."""
        self.game = self.setup.start()
        self.begin = self.game.copy()
        self.history = next(_HISTORIES)
        self.actions, self.handed = [], []
        self.moves: list[Json] = []
        self.told_moves: list[str] = []
        self._cells = self.adapter.cells(self.game)
        self.start = {
            "cells": self._cells.tolist(),
            "scores": self.adapter.scores(self.game),
            "notes": self.adapter.notes(self.game),
        }
        for number, action in enumerate(actions):
            if handed and number in handed:
                self.handed.append(number)
                self.game.hand_turn(1 - self.game.to_move)
            self._advance(action)

    def _advance(self, action: int) -> None:
        game, adapter = self.game, self.adapter
        before = game.copy()
        game.play(action)
        cell, landing = adapter.cell_of(before, action), adapter.landing(before, action)
        cells = adapter.cells(game)
        changed = (cells != self._cells).nonzero()[0]
        move = {
            "seat": before.to_move,
            "action": action,
            "name": adapter.move_name(before, action),
            "says": adapter.says(before, action, game),
            "stage": self._stage_of(before),
            "from": cell,
            "to": cell if landing is None else landing,
            "passed": list(game.passed),
            "cells": [[int(place), int(cells[place])] for place in changed],
            "scores": adapter.scores(game),
            "notes": adapter.notes(game),
        }
        self._cells = cells
        self.actions.append(action)
        self.moves.append(move)
        self.told_moves.append(json.dumps(move))

    def _stage_of(self, game: Game) -> str:
        return game.definition().stages[game.stage] if self.adapter.stages else ""

    def _end(self, event: Event) -> None:
        self.game.forfeit(event.seat, event.kind)
        self.event, self.ended = event, True

    # Making tables

    @classmethod
    def create(cls, wish: Create, person: str) -> Table:
        """Make the table that a person asks for."""
        adapter = adapter_for(wish.game)
        if wish.position is not None:
            setup = setup_of(adapter, wish.position, len(wish.seats))
        else:
            setup = Setup.of(adapter.variant(wish.options, len(wish.seats)))
        return cls(new_id(), setup, [seat_of(text, wish.name, person, wish.keep) for text in wish.seats])

    @classmethod
    def of_record(cls, record: GameRecord) -> Table:
        """Make a table that shows a game of a record."""
        setup, event = Setup.of_record(record), record.event
        seats = [Seat(name=record.tags.get(colour.lower(), colour.lower())[:40].strip()) for colour in record.seats]
        resigned = [event.seat] if event and event.kind == "resigned" else []
        return cls(
            new_id(), setup, seats, list(record.actions), handed=list(record.handed), resigned=resigned, event=event,
            told=record.tags.get("told", ""), shown=True,
        )  # fmt: skip

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
        self._check_running()
        if ply != len(self.actions):
            raise RefusedError(
                f"the move comes too late: it was meant for ply {ply}, the game is at ply {len(self.actions)}"
            )
        if not self.is_running:
            raise RefusedError("the game is being counted: agree, or play on")
        if self.game.to_move not in self.seats_of(person):
            raise RefusedError(f"it is {self.colour(self.game.to_move)}'s turn, which is not your seat")
        if not 0 <= action < self.game.num_actions or not self.game.legal_mask()[action]:
            raise RefusedError(self.adapter.why_not(self.game, action))
        self._clear_undo()
        self._advance(action)

    def play_agent(self, action: int) -> None:
        """Play the move that the agent whose turn it is has chosen."""
        self._advance(action)
        if self.game.is_over:
            self._clear_undo()  # nobody can open a finished game again

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
        self.undo_asked = sorted(self.people - {person})
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
            self._clear_proposal()
            self.helped = True

    def _clear_undo(self) -> None:
        self.undo_to, self.undo_asked = -1, []

    def propose(self, proposal: Json) -> None:
        """Take in how the finished game may be counted."""
        self.proposal, self.accepted = proposal, []

    def accept(self, person: str) -> None:
        """Agree to what is proposed; when everybody does, the game is over."""
        if not self.is_settling or self.proposal is None:
            raise RefusedError("there is nothing to agree on")
        if person not in self.people:
            raise RefusedError("only who plays can agree")
        self.accepted = sorted({*self.accepted, person})
        self.agreed = self.people == set(self.accepted)
        self._clear_undo()

    def play_on(self, person: str) -> None:
        """Take the passes back that ended the game."""
        if not self.is_settling:
            raise RefusedError("there is nothing to agree on")
        if person not in self.people:
            raise RefusedError("only who plays can play on")
        self._deal(self.actions[:-2])
        self._clear_undo()
        self._clear_proposal()

    def _clear_proposal(self) -> None:
        self.proposal, self.accepted, self.agreed = None, [], False

    def resign(self, person: str) -> None:
        """Give up all seats of a person."""
        self._check_running()
        mine = self.seats_of(person)
        if not mine:
            raise RefusedError("only who plays can give up")
        if self.is_settling:
            raise RefusedError("the game is being counted: agree, or play on")
        others = self.people - {person}
        self._clear_undo()
        self.resigned += mine
        if len(self.seats) == 2 and len(mine) == 1:
            self._end(Event("resigned", mine[0]))
            return
        if not others:
            self.ended = True
            return
        for number in mine:
            self.seats[number] = Seat(agent=self.adapter.stand_in, name=self.seats[number].name)

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
        self._clear_proposal()
        self.begun = datetime.now(UTC).isoformat(timespec="seconds")
        self._deal([])

    def set_pace(self, person: str, wait: int, paused: bool) -> None:
        """Set the pace of the agents: by the people who play or, where agents play alone, by whoever watches."""
        if any(seat.holder for seat in self.seats) and not self.seats_of(person):
            raise RefusedError("only who plays at this table can set its pace")
        self.wait, self.paused = wait, paused

    def check_analysis(self, person: str) -> None:
        """Refuse an analysis that would help one person against another."""
        if not self.is_over and not self.shown and self.people - {person}:
            raise RefusedError("people play here: the analysis opens when the game is over")

    def _check_running(self) -> None:
        if self.shown:
            raise RefusedError("this table only shows a game")
        if self.is_over:
            raise RefusedError("the game is over")

    # What can be seen

    def positions(self) -> Iterator[Game]:
        """Yield the position before the first action and after each."""
        game = self.begin.copy()
        yield game.copy()
        for number, action in enumerate(self.actions):
            if number in self.handed:
                game.hand_turn(1 - game.to_move)
            game.play(action)
            yield game.copy()

    def position(self, ply: int) -> Game:
        """Return the position after `ply` actions."""
        if ply > len(self.actions):
            raise RefusedError(f"the game has {len(self.actions)} plies, not {ply}")
        return next(game for number, game in enumerate(self.positions()) if number == ply)

    def record(self) -> GameRecord:
        """Return the record of the finished game."""
        if self.setup.position or self.handed:
            raise RefusedError("a game that did not begin with an empty board has no record; copy positions instead")
        if not (self.is_over and self.game.is_over):
            raise RefusedError("a record holds a finished game; copy the position instead")
        setup = self.setup
        return GameRecord.of(self.actions, setup.variant, drawn=setup.drawn, event=self.event, tags=self._tags())

    def _tags(self) -> dict[str, str]:
        """Return what a record tells beside the game: who played, when, and a result that was agreed on."""
        who = {self.colour(number): self.who(number) for number in range(len(self.seats))}
        told = self.told or (str(self.proposal["result"]) if self.proposal and self.agreed else "")
        return who | {"date": self.begun[:10]} | ({"told": told} if told else {})

    def sgf(self) -> str:
        """Return the game as SGF, as far as it has come."""
        if self.game.definition().sgf is None:
            raise RefusedError(f"{self.game.definition().title} has no form in SGF")
        setup = self.setup
        record = GameRecord(
            setup.variant, tuple(self.actions), (), 0, tuple(setup.drawn), self.event, self._tags(),
            self.begin.copy() if setup.position else None, tuple(self.handed),
        ).with_result(self.game, unfinished=True)  # fmt: skip
        return sgf_text(record)

    def colour(self, seat: int) -> str:
        """Name a seat, in lower case."""
        return self.game.definition().seats[seat].lower()

    def who(self, seat: int) -> str:
        """Name who sits on a seat."""
        taken = self.seats[seat]
        return taken.agent or taken.name or ("person" if taken.holder else OPEN)

    @property
    def winner(self) -> int:
        """The seat that has won, or `DRAWN`; `UNFINISHED` before the end, and where the last person gave up."""
        if self.agreed and self.proposal:
            return int(self.proposal["winner"])
        return self.game.winner() if self.game.is_over and not self.is_settling else UNFINISHED

    def view(self) -> Json:
        """Return what everybody may know, but for the moves and the start; JSON."""
        game, over = self.game, self.is_over
        return {
            "table": self.id,
            "game": self.setup.game,
            "config": self.adapter.config(self.begin),
            "revision": self.revision,
            "round": self.round,
            "seats": [
                {"kind": seat.kind, "agent": seat.agent, "name": seat.name, "keep": seat.keep} for seat in self.seats
            ],
            "to_move": game.to_move,
            "stage": self._stage_of(game),
            **(self._choices() if self.is_running else _NO_CHOICES),
            "settling": self.is_settling,
            "proposal": self.proposal,
            "score_word": self.adapter.score_word,
            "over": over,
            "ended": self.ended,
            "outcome": self._outcome() if over and game.is_over and not self.event else "",
            "event": self.event._asdict() if self.event else None,
            "winner": told_winner(self.winner),
            "told": self.told,
            "resigned": self.resigned,
            "undo": self.undo_to if self.undo_asked else -1,
            "paused": self.paused,
            "wait": self.wait,
            "shown": self.shown,
            "from_position": bool(self.setup.position or self.handed),
        }

    def _choices(self) -> Json:
        """Return what can be done by whose turn it is, and how it is told."""
        game, adapter = self.game, self.adapter
        mine, others = adapter.prompt(game)
        return {"hits": adapter.hits(game), "buttons": adapter.buttons(game), "previews": adapter.previews(game),
                "ghost": adapter.ghost(game), "verb": adapter.verb(game), "prompt": [mine, others]}  # fmt: skip

    def _outcome(self) -> str:
        if self.agreed and self.proposal:
            return str(self.proposal["say"])
        return self.adapter.outcome(self.game)

    # To and from the journal

    def to_json(self) -> str:
        """Return all that must outlive the server, as text."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("setup", "seats")}
        return json.dumps({**fields, "setup": asdict(self.setup), "seats": [asdict(seat) for seat in self.seats]})

    @classmethod
    def from_json(cls, text: str) -> Table:
        """Return the table that `to_json` wrote."""
        fields = json.loads(text)
        setup, seats = Setup.from_fields(fields.pop("setup")), [Seat(**seat) for seat in fields.pop("seats")]
        resigned = fields["resigned"]
        if "event" not in fields and fields["ended"] and len(seats) == 2 and len(resigned) == 1:
            fields["event"] = ("resigned", resigned[0])  # as written before there were events
        return cls(setup=setup, seats=seats, **fields)


_HISTORIES = itertools.count()
"""Numbers for what browsers may know of a table's moves: as long as it stays the same, moves are only added."""
_NO_CHOICES: Json = {"hits": [], "buttons": [], "previews": {}, "ghost": 0, "verb": "", "prompt": ["", ""]}


def new_id() -> str:
    """Return an unguessable name for a table: 96 random bits in 16 letters."""
    return secrets.token_urlsafe(12)

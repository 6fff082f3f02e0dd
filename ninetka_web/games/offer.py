"""What people may choose when they make a table: the rows of the form, and the agents that may sit down."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ninetka_env.core.registry import Definition, Variant, get_definition

Json = dict[str, Any]
AGENT = re.compile(r"([a-z]+)(?::([a-z]+)=([1-9][0-9]{0,5}))?")
"""An agent as browsers say it: its name, and one number."""


@dataclass(frozen=True)
class Player:
    """An agent that may sit down: browsers choose its name and one number, and nothing else."""

    name: str
    title: str
    strengths: tuple[tuple[int, str], ...] = ((0, ""),)
    """The numbers that the form offers, 0 for none, each with its words."""
    option: str = ""
    """What the number sets; empty for agents without one."""
    most: int = 0
    """The largest number, about two seconds a move."""
    usual: int = 0
    fixed: str = ""
    """Further options of its spec, the same for everybody."""
    seats: tuple[int, ...] = ()
    """At how many it plays; empty for any."""

    def told(self) -> Json:
        """Return what browsers are told."""
        return {"name": self.name, "title": self.title, "strengths": self.strengths, "option": self.option,
                "usual": self.usual, "seats": self.seats}  # fmt: skip


SOLVER = "solver"
"""The engine, and the agent, that knows perfect play."""
RANDOM = Player("random", "Random", ((0, "any legal move"),))
NET = Player(
    "net",
    "Neural network",
    ((0, "at first sight"), (64, "with 64 simulations"), (200, "with 200 simulations: hard"),
     (400, "with 400 simulations: hardest")),
    "simulations",
    400,
)  # fmt: skip


@dataclass(frozen=True)
class Choices:
    """A row of the form in which one of a few values is chosen; each sets one option or several."""

    title: str
    values: tuple[tuple[Json, str], ...]
    hidden: bool = False
    """Whether it stands under "More"."""

    def allows(self, name: str, value: Any) -> bool:
        """Return whether an option may have a value, as far as this row knows it."""
        return any(sets.get(name) == value for sets, _ in self.values)

    @property
    def names(self) -> set[str]:
        """The options that it sets."""
        return {name for sets, _ in self.values for name in sets}

    def told(self) -> Json:
        """Return what browsers are told."""
        return {"title": self.title, "hidden": self.hidden, "values": self.values}


@dataclass(frozen=True)
class Number:
    """A row of the form with a number."""

    title: str
    name: str
    least: float
    most: float
    step: float = 1
    hidden: bool = True

    def allows(self, name: str, value: Any) -> bool:
        """Return whether the option may have a value."""
        return type(value) in (int, float) and self.least <= value <= self.most

    @property
    def names(self) -> set[str]:
        """The option that it sets."""
        return {self.name}

    def told(self) -> Json:
        """Return what browsers are told."""
        return {"title": self.title, "hidden": self.hidden, "name": self.name, "least": self.least, "most": self.most,
                "step": self.step}  # fmt: skip


@dataclass(frozen=True)
class Offer:
    """What the first page offers of a game."""

    name: str
    """The game's name in the register."""
    slogan: str
    steps: tuple[tuple[str, str], ...]
    """What the first page tells: three times what is done, and more of it."""
    rules: tuple[tuple[str, str], ...]
    """How to play, in paragraphs: what it is about, and what is to be known of it."""
    players: tuple[Player, ...]
    """The agents that may sit down, where the server has what they need."""
    opponent: str
    """Who sits in the other seats of the form at first."""
    form: tuple[Choices | Number, ...] = ()
    """The options that people choose; all others have their defaults."""
    seats: tuple[int, ...] = (2,)
    """How many may play."""
    stand_in: str = ""
    """The agent that plays on for one of several people who has given up; only for more than two seats."""
    stages: Mapping[str, str] = field(default_factory=dict)
    """Headings in the list of moves, by stage; none where the stages do not follow one another."""

    @property
    def definition(self) -> Definition:
        """The game in the register."""
        return get_definition(self.name)

    def variant(self, options: Json, seats: int) -> Variant:
        """Return the game with the options that somebody chose in the form; `ValueError` names what is wrong."""
        for name, value in options.items():
            rows = [row for row in self.form if name in row.names]
            if not rows:
                known = ", ".join(sorted({name for row in self.form for name in row.names}))
                raise ValueError(f"unknown option {name!r}: expected one of {known}")
            if not any(row.allows(name, value) for row in rows):
                raise ValueError(f"{name}={value!r}: not offered at tables")
        if seats not in self.seats:
            raise ValueError(f"{seats} seats: {self.definition.title} is for {' or '.join(map(str, self.seats))}")
        variant = self.definition.variant(**options)
        return variant.replaced(num_players=seats) if len(self.seats) > 1 else variant

    def player(self, spec: str, seats: int = 0) -> tuple[Player, str]:
        """Return the agent that a browser asks for, and its number as text; `seats` of the table, 0 if not known.

        Raises:
            ValueError: for all but those of `players`, naming what is allowed. Whatever way a spec has come, it starts
                no program and opens no file.
        """
        match = AGENT.fullmatch(spec)
        named = {one.name: one for one in (*self.players, NET)}
        if not match or match[1] not in named:
            raise ValueError(
                f"no agent {spec[:40]!r}: expected one of {', '.join(named)}, such as mcts:simulations=500"
            )
        player = named[match[1]]
        if match[2] and (match[2] != player.option or int(match[3]) > player.most):
            allowed = f"{player.name}:{player.option}=1..{player.most}" if player.option else f"{player.name} alone"
            raise ValueError(f"{spec!r}: expected {allowed}")
        if seats and player.seats and seats not in player.seats:
            raise ValueError(f"{player.title} plays at {' or '.join(map(str, player.seats))} seats, not at {seats}")
        return player, match[3] or ""

    def spec(self, text: str) -> str:
        """Return the whole spec of the agent that a browser asks for, on one thread; raises as `player` does."""
        player, number = self.player(text)
        if not player.option:
            return player.name
        number = number or (str(player.usual) if player.fixed else "")
        told = f"{player.option}={number}" if number else ""
        return f"{player.name}:{','.join(filter(None, (told, player.fixed, 'threads=1')))}"

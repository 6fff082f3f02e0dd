"""What the home page offers for a game: texts, the rows of the new-game form, and the agents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ninetka_env.core.registry import Definition, Variant, get_definition

Json = dict[str, Any]
AGENT = re.compile(r"([a-z]+)(?::([a-z]+)=([1-9][0-9]{0,5}))?")
"""Pattern of an agent as browsers name it: its name and one number."""


@dataclass(frozen=True)
class Player:
    """An agent that users can choose as an opponent. Browsers send its name and one number, nothing else."""

    name: str
    title: str
    strengths: tuple[tuple[int, str], ...] = ((0, ""),)
    """The numbers that the form offers, 0 for none, each with its label."""
    option: str = ""
    """The option that the number sets; empty for agents without a number."""
    most: int = 0
    """The largest number allowed; it takes about two seconds per move."""
    usual: int = 0
    fixed: str = ""
    """Further options of the agent's spec, the same for all users."""
    seats: tuple[int, ...] = ()
    """The numbers of seats at which the agent can play; empty for any."""

    def told(self) -> Json:
        """Return the agent as JSON for the form."""
        return {"name": self.name, "title": self.title, "strengths": self.strengths, "option": self.option,
                "usual": self.usual, "seats": self.seats}  # fmt: skip


SOLVER = "solver"
"""The name of the engine, and of the agent, that computes perfect play."""
RANDOM = Player("random", "Random", ((0, "any legal move"),))
NET = Player(
    "net",
    "Neural network",
    ((0, "without search"), (64, "with 64 simulations"), (200, "with 200 simulations: hard"),
     (400, "with 400 simulations: hardest")),
    "simulations",
    400,
)  # fmt: skip


@dataclass(frozen=True)
class Choices:
    """A row of the form with a few values to choose from; each value sets one or more options."""

    title: str
    values: tuple[tuple[Json, str], ...]
    hidden: bool = False
    """Whether the row is under "More"."""

    def allows(self, name: str, value: Any) -> bool:
        """Return whether this row offers a value of an option."""
        return any(sets.get(name) == value for sets, _ in self.values)

    @property
    def names(self) -> set[str]:
        """The names of the options that the row sets."""
        return {name for sets, _ in self.values for name in sets}

    def told(self) -> Json:
        """Return the row as JSON for the form."""
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
        """Return whether a value is a number in the range of this row."""
        return type(value) in (int, float) and self.least <= value <= self.most

    @property
    def names(self) -> set[str]:
        """The name of the option that the row sets."""
        return {self.name}

    def told(self) -> Json:
        """Return the row as JSON for the form."""
        return {"title": self.title, "hidden": self.hidden, "name": self.name, "least": self.least, "most": self.most,
                "step": self.step}  # fmt: skip


@dataclass(frozen=True)
class Offer:
    """What the home page shows and offers for one game."""

    name: str
    """The game's name in the registry."""
    slogan: str
    steps: tuple[tuple[str, str], ...]
    """Three pairs of a short heading and a text that summarise the game."""
    rules: tuple[tuple[str, str], ...]
    """How to play: paragraphs, each with its heading."""
    players: tuple[Player, ...]
    """The agents that users can choose, if the server has what they need."""
    opponent: str
    """The agent that the form puts into the other seats by default."""
    form: tuple[Choices | Number, ...] = ()
    """The options that users can choose; all other options have their defaults."""
    seats: tuple[int, ...] = (2,)
    """The allowed numbers of seats."""
    stand_in: str = ""
    """The agent that takes over the seat of a user who resigned; only for games with more than two seats."""
    stages: Mapping[str, str] = field(default_factory=dict)
    """Headings in the list of moves, by stage; empty for games without successive stages."""

    @property
    def definition(self) -> Definition:
        """The game's definition in the registry."""
        return get_definition(self.name)

    def variant(self, options: Json, seats: int) -> Variant:
        """Return the game with the options of a filled form; `ValueError` names an option that is not allowed."""
        for name, value in options.items():
            rows = [row for row in self.form if name in row.names]
            if not rows:
                known = ", ".join(sorted({name for row in self.form for name in row.names}))
                raise ValueError(f"unknown option {name!r}: expected one of {known}")
            if not any(row.allows(name, value) for row in rows):
                raise ValueError(f"{name}={value!r}: not offered in the web app")
        if seats not in self.seats:
            raise ValueError(f"{seats} seats: {self.definition.title} is for {' or '.join(map(str, self.seats))}")
        variant = self.definition.variant(**options)
        return variant.replaced(num_players=seats) if len(self.seats) > 1 else variant

    def player(self, spec: str, seats: int = 0) -> tuple[Player, str]:
        """Return the agent that a browser names, and its number as text. `seats` is the number of seats, 0 if unknown.

        Raises:
            ValueError: if the agent is not one of `players`; the message names what is allowed. So a text from a
                browser or a game record never starts a program or opens a file.
        """
        match = AGENT.fullmatch(spec)
        named = {one.name: one for one in (*self.players, NET)}
        if not match or match[1] not in named:
            raise ValueError(
                f"unknown agent {spec[:40]!r}: expected one of {', '.join(named)}, such as mcts:simulations=500"
            )
        player = named[match[1]]
        if match[2] and (match[2] != player.option or int(match[3]) > player.most):
            allowed = f"{player.name}:{player.option}=1..{player.most}" if player.option else f"{player.name} alone"
            raise ValueError(f"{spec!r}: expected {allowed}")
        if seats and player.seats and seats not in player.seats:
            raise ValueError(f"{player.title} plays at {' or '.join(map(str, player.seats))} seats, not at {seats}")
        return player, match[3] or ""

    def spec(self, text: str) -> str:
        """Return the full spec of the agent that a browser names, on one thread. Raises as `player` does."""
        player, number = self.player(text)
        if not player.option:
            return player.name
        number = number or (str(player.usual) if player.fixed else "")
        told = f"{player.option}={number}" if number else ""
        return f"{player.name}:{','.join(filter(None, (told, player.fixed, 'threads=1')))}"

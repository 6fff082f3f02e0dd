"""What the start page offers for a game: texts, the rows of the new-game form, and the agents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ninetka_env.core.registry import Definition, Variant, get_definition

Json = dict[str, Any]
AGENT_PATTERN = re.compile(r"([a-z]+)(?::([a-z]+)=([1-9][0-9]{0,5}))?")
"""Matches an agent as browsers name it: `NAME` or `NAME:OPTION=NUMBER`."""


@dataclass(frozen=True)
class OfferedAgent:
    """An agent that users can choose as an opponent. Browsers send its name and one number, nothing else."""

    name: str
    title: str
    strengths: tuple[tuple[int, str], ...] = ((0, ""),)
    """(number, label) pairs that the form offers; the number 0 means that `option` is not set."""
    option: str = ""
    """The option that the number sets; empty for agents without a number."""
    max_strength: int = 0
    """The largest number allowed; with this number, the agent takes about two seconds per move."""
    default_strength: int = 0
    fixed_options: str = ""
    """Further options of the agent's spec, the same for all users."""
    seat_counts: tuple[int, ...] = ()
    """The numbers of seats at which the agent can play; empty for any."""

    def as_json(self) -> Json:
        """Return the agent as JSON for the form."""
        return {"name": self.name, "title": self.title, "strengths": self.strengths, "option": self.option,
                "default_strength": self.default_strength, "seats": self.seat_counts}  # fmt: skip


SOLVER = "solver"
"""The name of the engine, and of the agent, that computes perfect play."""
RANDOM = OfferedAgent("random", "Random", ((0, "any legal move"),))
NET = OfferedAgent(
    "net",
    "Neural network",
    ((0, "without search"), (64, "with 64 simulations"), (200, "with 200 simulations: hard"),
     (400, "with 400 simulations: hardest")),
    "simulations",
    400,
)  # fmt: skip


@dataclass(frozen=True)
class ChoicesRow:
    """A row of the form with a few values to choose from; each value sets one or more options."""

    title: str
    values: tuple[tuple[Json, str], ...]
    hidden: bool = False
    """Whether the row is under "More"."""

    def allows(self, name: str, value: Any) -> bool:
        """Return whether this row offers a value of an option."""
        return any(options.get(name) == value for options, _ in self.values)

    @property
    def option_names(self) -> set[str]:
        """The names of the options that the row sets."""
        return {name for options, _ in self.values for name in options}

    def as_json(self) -> Json:
        """Return the row as JSON for the form."""
        return {"title": self.title, "hidden": self.hidden, "values": self.values}


@dataclass(frozen=True)
class NumberRow:
    """A row of the form with a number."""

    title: str
    name: str
    minimum: float
    maximum: float
    step: float = 1
    hidden: bool = True

    def allows(self, name: str, value: Any) -> bool:
        """Return whether a value is a number in the range of this row."""
        return type(value) in (int, float) and self.minimum <= value <= self.maximum

    @property
    def option_names(self) -> set[str]:
        """The name of the option that the row sets."""
        return {self.name}

    def as_json(self) -> Json:
        """Return the row as JSON for the form."""
        return {"title": self.title, "hidden": self.hidden, "name": self.name, "minimum": self.minimum,
                "maximum": self.maximum, "step": self.step}  # fmt: skip


@dataclass(frozen=True)
class Offer:
    """What the start page shows and offers for one game."""

    name: str
    """The game's name in the registry."""
    slogan: str
    steps: tuple[tuple[str, str], ...]
    """Three pairs of a short heading and a text that summarise the game."""
    rules: tuple[tuple[str, str], ...]
    """How to play: paragraphs, each with its heading."""
    agents: tuple[OfferedAgent, ...]
    """The agents that users can choose; `Adapter.agents` leaves out those that the server cannot run."""
    opponent: str
    """The agent that the form puts into the other seats by default."""
    form: tuple[ChoicesRow | NumberRow, ...] = ()
    """The options that users can choose; all other options have their defaults."""
    seats: tuple[int, ...] = (2,)
    """The allowed numbers of seats."""
    substitute: str = ""
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
            rows = [row for row in self.form if name in row.option_names]
            if not rows:
                known = ", ".join(sorted({name for row in self.form for name in row.option_names}))
                raise ValueError(f"unknown option {name!r}: expected one of {known}")
            if not any(row.allows(name, value) for row in rows):
                raise ValueError(f"{name}={value!r}: not offered in the web app")
        if seats not in self.seats:
            raise ValueError(f"{seats} seats: {self.definition.title} is for {' or '.join(map(str, self.seats))}")
        variant = self.definition.variant(**options)
        return variant.replace_options(num_players=seats) if len(self.seats) > 1 else variant

    def parse_agent(self, spec: str, seats: int = 0) -> tuple[OfferedAgent, str]:
        """Return the agent that a browser names, and its number as text. `seats` is the number of seats, 0 if unknown.

        Raises:
            ValueError: if the agent is not one of `agents`; the message names what is allowed. So a text from a
                browser or a game record never starts a program or opens a file.
        """
        match = AGENT_PATTERN.fullmatch(spec)
        named = {each.name: each for each in (*self.agents, NET)}
        if not match or match[1] not in named:
            raise ValueError(
                f"unknown agent {spec[:40]!r}: expected one of {', '.join(named)}, such as mcts:simulations=500"
            )
        agent = named[match[1]]
        if match[2] and (match[2] != agent.option or int(match[3]) > agent.max_strength):
            allowed = f"{agent.name}:{agent.option}=1..{agent.max_strength}" if agent.option else f"{agent.name} alone"
            raise ValueError(f"{spec!r}: expected {allowed}")
        if seats and agent.seat_counts and seats not in agent.seat_counts:
            raise ValueError(f"{agent.title} plays at {' or '.join(map(str, agent.seat_counts))} seats, not at {seats}")
        return agent, match[3] or ""

    def spec(self, text: str) -> str:
        """Return the full spec, with one thread, of the agent that a browser names. Raises as `parse_agent` does."""
        agent, number = self.parse_agent(text)
        if not agent.option:
            return agent.name
        number = number or (str(agent.default_strength) if agent.fixed_options else "")
        strength_text = f"{agent.option}={number}" if number else ""
        return f"{agent.name}:{','.join(filter(None, (strength_text, agent.fixed_options, 'threads=1')))}"

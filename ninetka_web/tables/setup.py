"""How a table begins: who sits where, and from which start of which game."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace

from ninetka_env.api.records import GameRecord
from ninetka_env.core.game import Game
from ninetka_env.core.registry import Variant, get_definition
from ninetka_web.games.adapter import Adapter, adapter_of
from ninetka_web.games.offer import Json
from ninetka_web.tables.refusal import RefusedError


@dataclass
class Seat:
    """A place at the table: an agent's, a person's, or open."""

    agent: str = ""
    """The agent's spec; empty for people."""
    name: str = ""
    holder: str = ""
    """Who may play for the seat, as `digest` names people; empty for agents and open seats."""
    keep: bool = False
    """Whether the person agrees that finished games are kept."""
    key: str = ""
    """The digest of what a personal link holds, which gives the seat to whoever opens it; empty unless there is one."""

    @property
    def kind(self) -> str:
        """`"agent"`, `"person"` or `"open"`."""
        return "agent" if self.agent else "person" if self.holder or self.name else "open"


@dataclass
class Setup:
    """How a game begins."""

    game: str
    options: Json
    """All of the game's."""
    drawn: list[int] = field(default_factory=list)
    """What chance drew before the first turn: see `Game.drawn_actions`."""
    position: str = ""
    """A position to begin with, as text; empty for the beginning of a game."""

    @classmethod
    def of(cls, variant: Variant, position: str = "") -> Setup:
        """Return the setup of a variant, nothing drawn yet."""
        return cls(variant.definition.name, dict(variant.options), position=position).redrawn()

    @classmethod
    def of_record(cls, record: GameRecord) -> Setup:
        """Return the setup of a recorded game; `RefusedError` if it is one that tables cannot show."""
        adapter_for(record.variant.definition.name)
        position = "" if record.begin is None else str(record.begin)
        return cls(record.variant.definition.name, dict(record.variant.options), list(record.drawn), position)

    @property
    def variant(self) -> Variant:
        """The game and its options."""
        return get_definition(self.game).variant(**self.options)

    @property
    def kind(self) -> str:
        """Whose compiled code it needs; see `Adapter.kind`."""
        return adapter_of(self.game).kind(self.options)

    def start(self) -> Game:
        """Return the position before the first action."""
        variant = self.variant
        game: Game
        if self.position:
            game = variant.game_class.from_text(self.position)
        else:
            game = variant.game_class.start_from(variant, tuple(self.drawn))
        return game

    def redrawn(self) -> Setup:
        """Return the same setup with what chance draws drawn anew."""
        variant = self.variant
        if not variant.sizes.drawn or self.position:
            return self
        return replace(self, drawn=list(variant.game_class.start(variant).drawn_actions()))


def digest(token: str) -> str:
    """Return what a person is known by: enough to recognise the token, not to guess it."""
    return hashlib.sha256(token.encode()).hexdigest()[:32]


def adapter_for(game: str) -> Adapter:
    """Return the adapter of a game; `RefusedError` names the games that tables have."""
    try:
        return adapter_of(game)
    except ValueError as error:
        raise RefusedError(str(error)) from None


def setup_of(adapter: Adapter, text: str, seats: int) -> Setup:
    """Return the setup that begins with a position; `RefusedError` if the text holds none that can be played on."""
    try:
        game: Game = adapter.offer.definition.game_class.from_text(text)
    except ValueError as error:
        raise RefusedError(f"the position cannot be read: {error}") from None
    if game.num_players != seats:
        raise RefusedError(f"the position is one of {game.num_players} players, and the table has {seats} seats")
    if game.is_over:
        raise RefusedError("in this position the game is over")
    return Setup(adapter.name, adapter.options_of(game), position=str(game))

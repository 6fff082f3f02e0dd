"""The seats of a table, and the game, options and first position with which it starts.

Start reading at `Seat` and `Setup`; `table.py` plays the game.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace

from ninetka_env.api.records import GameRecord
from ninetka_env.core.game import Game
from ninetka_env.core.registry import Variant, get_definition
from ninetka_web.games.adapter import Adapter, adapter_of
from ninetka_web.games.offer import Json
from ninetka_web.tables.refusal import RefusedError

LOCAL_USER = "local"
"""The user of all seats at tables that no connection can watch: variations and dry runs."""


@dataclass
class Seat:
    """A seat of a table, taken by an agent or a person, or open."""

    agent: str = ""
    """The agent's spec; empty for people and open seats."""
    name: str = ""
    user: str = ""
    """The user who plays the seat: the `digest` of a token; empty for agents and open seats."""
    keep: bool = False
    """Whether the user allows the server to store finished games."""
    link_digest: str = ""
    """The digest of the key in the seat's personal link; empty without a link. A user who opens it gets the seat."""

    @property
    def kind(self) -> str:
        """`"agent"`, `"person"` or `"open"`."""
        return "agent" if self.agent else "person" if self.user or self.name else "open"


@dataclass
class Setup:
    """The game, options and first position of a table."""

    game: str
    options: Json
    """All options of the game."""
    drawn: list[int] = field(default_factory=list)
    """Actions drawn at random before the first turn: see `Game.drawn_actions`."""
    position: str = ""
    """The first position as text; empty for the start of a game."""

    @classmethod
    def of(cls, variant: Variant, position: str = "") -> Setup:
        """Return the setup of a variant that starts from `position`; without a position, with new random draws."""
        return cls(variant.definition.name, dict(variant.options), position=position).redrawn()

    @classmethod
    def of_record(cls, record: GameRecord) -> Setup:
        """Return the setup of a game record; `RefusedError` if the web app does not have its game."""
        adapter_or_refuse(record.variant.definition.name)
        position = "" if record.start_position is None else str(record.start_position)
        return cls(record.variant.definition.name, dict(record.variant.options), list(record.drawn), position)

    @property
    def variant(self) -> Variant:
        """The game and its options."""
        return get_definition(self.game).variant(**self.options)

    @property
    def compile_key(self) -> str:
        """The key of the compiled code that the game needs; see `Adapter.compile_key`."""
        return adapter_of(self.game).compile_key(self.options)

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
        """Return a copy with new random draws, or this setup if the game has no draws or starts from `position`."""
        variant = self.variant
        if not variant.sizes.num_drawn or self.position:
            return self
        return replace(self, drawn=list(variant.game_class.start(variant).drawn_actions()))


def digest(token: str) -> str:
    """Return the digest of a token. It identifies the token without revealing it."""
    return hashlib.sha256(token.encode()).hexdigest()[:32]


def adapter_or_refuse(game: str) -> Adapter:
    """Return the adapter of a game; `RefusedError` names the games of the web app."""
    try:
        return adapter_of(game)
    except ValueError as error:
        raise RefusedError(str(error)) from None


def setup_from_position(adapter: Adapter, text: str, seats: int) -> Setup:
    """Return the setup that starts from a position; `RefusedError` if the text is no position to play from."""
    try:
        game: Game = adapter.offer.definition.game_class.from_text(text)
    except ValueError as error:
        raise RefusedError(f"the position cannot be read: {error}") from None
    if game.num_players != seats:
        raise RefusedError(f"the position is one of {game.num_players} players, and the table has {seats} seats")
    if game.is_over:
        raise RefusedError("in this position the game is over")
    return Setup(adapter.name, adapter.options_of(game), position=str(game))

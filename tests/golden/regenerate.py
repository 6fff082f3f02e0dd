"""Rewrite the golden playthroughs (`make golden`).

`python -m golden.regenerate [GAME ...]`, with `tests` on the path, rewrites only those of the named games.

Each game with playthroughs has a module `tests/GAME/playthroughs.py` with

- `PLAYTHROUGHS`: maps the name of each file to the options and the seed of its game, such as `("num_players=2", 7)`;
- `reference(options, drawn)`: returns a view of a new game of the slow reference, which shares no code with the
  package; `options` are all options of the game by name, `drawn` the actions chosen at random by the game itself.

Nothing is written unless the package and the reference agree at every ply of every file.
"""

from __future__ import annotations

import importlib
import random
import sys
from types import ModuleType

from golden.playthrough import write_playthrough
from golden.views import GOLDEN_FOLDER, make_header, views_of

from ninetka_env.core.registry import load_variant

TESTS = GOLDEN_FOLDER.parent


def recorded_games() -> list[str]:
    """Return the names of the games that have playthroughs."""
    return sorted(path.parent.name for path in TESTS.glob("*/playthroughs.py"))


def playthroughs_of(game: str) -> ModuleType:
    """Return the module `playthroughs` of a game."""
    return importlib.import_module(f"{game}.playthroughs")


def playthrough(game: str, options: str, seed: int) -> str:
    """Play a random game and return its playthrough; raise `DifferenceError` if package and reference differ."""
    variant = load_variant(f"{game}:{options}")
    drawn = variant.game_class.start(variant, seed).drawn_actions()
    reference = playthroughs_of(game).reference(variant.options, drawn)
    return write_playthrough(
        make_header(variant, seed), [reference, *views_of(variant, seed)], random.Random(seed).choice
    )


def main(games: list[str]) -> None:
    """Write the playthroughs of the named games; delete the playthroughs that `PLAYTHROUGHS` no longer lists."""
    texts = {
        GOLDEN_FOLDER / game / f"{name}.txt": playthrough(game, *chosen)
        for game in games
        for name, chosen in playthroughs_of(game).PLAYTHROUGHS.items()
    }
    for game in games:
        (GOLDEN_FOLDER / game).mkdir(exist_ok=True)
        for old in {*(GOLDEN_FOLDER / game).glob("*.txt")} - texts.keys():
            old.unlink()
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    print(f"wrote {len(texts)} playthroughs of {', '.join(games)}, which agree with the references")


if __name__ == "__main__":
    main(sys.argv[1:] or recorded_games())

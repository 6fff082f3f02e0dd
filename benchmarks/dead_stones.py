"""Measure how well `ninetka_agents.go.status` proposes the dead stones of finished Go games.

The winner and the lead after removing these stones are compared with the result that the game's file states.

    python -m benchmarks.dead_stones FOLDER... [--size 9] [--games 1000] [--seed 0]

At most `--games` SGF files below each folder are used, in random order. A game is used if it has the board size, ends
by two passes, and its `RE` gives the winning margin, such as `B+2.5`, or a draw. Files that cannot be read, repeated
games, and results that are impossible with the komi are skipped. Under area scoring, Black's lead plus komi must be a
whole number.

Each row of the table shows, for one folder: the number of games used; the share of games whose winner is the stated one
if all stones are counted as alive; the same share after the proposed dead stones are removed; the share of games whose
lead is then within one point of the stated lead; and the time of a proposal.

The collections measured for docs/guides/gtp.md are in the GitHub repositories michaelnny/alpha_zero
(`games/pro_games/go/9x9`, games of GoQuest and CGOS) and ChinChangYang/gnugo (`regression/games`).
"""

from __future__ import annotations

import argparse
import random
import re
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ninetka_agents.go.status import agreed_position, find_statuses
from ninetka_env.api.record_files import read_records
from ninetka_env.games.go.game import Game
from ninetka_train.judging.ratings_page import markdown_table

COLUMNS = ("folder", "games", "winner right as it stands %", "winner right %", "lead within 1 point %", "ms")
RESULT = re.compile(rb"(?<![A-Z])RE\[(?:([BW])\+([0-9]+(?:\.[0-9]+)?)|0|Draw|Jigo)\]", re.IGNORECASE)
"""Searched in the file's text, because a `GameRecord` does not show whether `RE` is missing or equal to the result by
the rules."""


def main() -> None:
    """Measure the folders and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--size", type=int, default=9, help="board size")
    parser.add_argument("--games", type=int, default=1000, help="maximum number of games per folder")
    parser.add_argument("--seed", type=int, default=0, help="seed of the selection of games")
    chosen = parser.parse_args()
    find_statuses(Game.new(size=chosen.size))  # compiles
    rows = [measure_folder(folder, chosen.size, chosen.games, chosen.seed) for folder in chosen.folders]
    print("\n".join(markdown_table(COLUMNS, rows)))


def measure_folder(folder: Path, size: int, count: int, seed: int) -> list[str]:
    """Measure a folder and return its row of the table."""
    as_stands, winner_right, lead_close, taken = [], [], [], 0.0
    for game, stated in finished_games(folder, size, seed):
        begin = time.perf_counter()
        dead = find_statuses(game).dead
        taken += time.perf_counter() - begin
        proposed_lead = lead(agreed_position(game, dead))
        as_stands.append(np.sign(lead(agreed_position(game, []))) == np.sign(stated))
        winner_right.append(np.sign(proposed_lead) == np.sign(stated))
        lead_close.append(abs(proposed_lead - stated) <= 1)
        if len(winner_right) == count:
            break
    if not winner_right:
        return [folder.name, "0", "", "", "", ""]
    shares = [f"{100 * np.mean(flags):.1f}" for flags in (as_stands, winner_right, lead_close)]
    return [folder.name, str(len(winner_right)), *shares, f"{1000 * taken / len(winner_right):.1f}"]


def finished_games(folder: Path, size: int, seed: int) -> Iterator[tuple[Game, float]]:
    """Yield the last position and Black's stated lead of each usable game of a folder, in random order."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() == ".sgf")
    random.Random(seed).shuffle(paths)
    seen = set()
    for path in paths:
        match = RESULT.search(path.read_bytes())
        final = last_position(path) if match else None
        if not match or final is None or final.size != size or final.passes < 2 or final in seen:
            continue
        seen.add(final)
        stated = float(match[2] or 0) * (-1 if match[1] in (b"W", b"w") else 1)
        if final.scoring != "area" or (stated + final.komi).is_integer():
            yield final, stated


def last_position(path: Path) -> Game | None:
    """Return the last position of the first game of a file; None if it cannot be read or is not Go."""
    with warnings.catch_warnings(action="ignore"):
        try:
            final = next(read_records(path)).final()
        except (OSError, ValueError, StopIteration):
            return None
    return final if isinstance(final, Game) else None


def lead(game: Game) -> float:
    """Return by how many points Black leads."""
    black, white = game.scores().tolist()
    return float(black - white)


if __name__ == "__main__":
    main()

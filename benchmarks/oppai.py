"""Run oppai-rs for comparison: random games, the speed of its UCT, and matches against it.

oppai-rs by E. Kurnevsky (github.com/pointsgame/oppai-rs, commit eb35c10) is under the AGPL. If it is installed, it runs
here as a separate program; none of its code is in this repository. Two environment variables name its programs:

- NINETKA_OPPAI_BENCH: the path of `oppai-bench`, which plays random games on its field;
- NINETKA_OPPAI_CLI: the command line of `oppai-cli`, which answers each line of JSON with a line of JSON, such as
  `oppai-cli --backend Ndarray --solver Uct --threads-count 1`.

    python -m benchmarks.oppai --games 100
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ninetka_agents.agent import Actions, Agent, Forfeit, make_agent
from ninetka_env.core.game import Game as AnyGame
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.kropki.game import Game
from ninetka_train.judging.evaluate import evaluate
from ninetka_train.judging.report import print_report

BENCH = os.environ.get("NINETKA_OPPAI_BENCH")
CLI = os.environ.get("NINETKA_OPPAI_CLI")
COLOURS = ("Red", "Black")
"""Names of the seats in oppai-rs."""
FULL_PLAYOUTS = 100_000
"""Number of UCT playouts at complexity 1. oppai-rs takes a multiple of this number, its *complexity*."""


def random_games(program: str, side: int, count: int) -> Callable[[], int]:
    """Return a function that plays `count` random games with oppai-rs, under the rule `immediate`."""
    command = [program, "-w", str(side), "-h", str(side), "-n", str(count), "-s", "7"]

    def run() -> int:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return count

    return run


def simulations(command: str, game: Game, count: int) -> Callable[[], int]:
    """Return a function that searches a position with `count` playouts of oppai-rs, with a new tree in each call."""
    agent = OppaiSeatAgent(command, game, count)

    def run() -> int:
        agent.set_up()
        agent.best_moves()
        return count

    return run


class OppaiAgent(Agent):
    """Agent that plays with oppai-rs: one process per game, which receives every move."""

    has_seat_agents = True

    def __init__(self, command: str, playouts: int) -> None:
        """Set the command line and the number of playouts per move; solvers that do not search ignore the number."""
        self.name = f"oppai-rs:playouts={playouts}"
        self._command, self._playouts = command, playouts

    def start(self, game: AnyGame) -> OppaiSeatAgent:
        """Start a process for a game."""
        assert isinstance(game, Game)
        return OppaiSeatAgent(self._command, game, self._playouts)

    def act(self, games: StateArray, rng: np.random.Generator) -> Actions:
        """Raise `NotImplementedError`, because oppai-rs plays whole games only."""
        raise NotImplementedError


class OppaiSeatAgent:
    """oppai-rs in one game of the rule `immediate`; see `ninetka_agents.agent.SeatAgent`."""

    def __init__(self, command: str, game: Game, playouts: int) -> None:
        """Start the program and send it the position; raise `Forfeit` if the program does not answer."""
        self._game, self._share = game.copy(), playouts / FULL_PLAYOUTS
        pipe, words = subprocess.PIPE, shlex.split(command)
        self._process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        self.set_up()

    def set_up(self) -> None:
        """Send the board size, then the points on the board, alternating between the seats."""
        game = self._game
        self._request(command="Init", width=game.width, height=game.height)
        by_seat = [np.flatnonzero(game.board == seat + 1).tolist() for seat in range(2)]
        for pair in zip(*by_seat, strict=True):
            for seat, node in enumerate(pair):
                self._put_point(node, seat)

    def best_moves(self) -> list[int]:
        """Return the nodes that oppai-rs considers, best first."""
        constraint = {"type": "Complexity", "value": self._share}
        answer = self._request(command="Analyze", player=COLOURS[self._game.to_move], constraint=constraint)
        return [one["coords"]["y"] * self._game.width + one["coords"]["x"] for one in answer["moves"]]

    def act(self, rng: np.random.Generator) -> int:
        """Return the best move, or the first legal action if oppai-rs returns no move."""
        return next(iter(self.best_moves()), int(self._game.legal_actions()[0]))

    def observe(self, action: int) -> None:
        """Send a move to the program."""
        self._put_point(action, self._game.to_move)
        self._game.play(action)

    def close(self) -> None:
        """Terminate the program."""
        self._process.kill()
        self._process.communicate()

    def _put_point(self, node: int, seat: int) -> None:
        row, column = divmod(node, self._game.width)
        if not self._request(command="PutPoint", coords={"x": column, "y": row}, player=COLOURS[seat])["put"]:
            raise Forfeit("left", f"refused the point {self._game.action_name(node)}")

    def _request(self, **request: Any) -> Any:
        """Send a request as a line of JSON and return the response."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps(request, separators=(",", ":")), file=self._process.stdin, flush=True)
            return json.loads(self._process.stdout.readline())
        except (OSError, ValueError):
            raise Forfeit("left", f"no answer to {request['command']}") from None


def main() -> None:
    """Play a match with alternating colours."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--games", type=int, default=100)
    parser.add_argument("--playouts", type=int, default=1000, help="per move of oppai-rs (default: %(default)s)")
    parser.add_argument(
        "--agent",
        default="mcts:simulations=1000,rave,threads=1",
        help="opponent (default: %(default)s)",
    )
    parser.add_argument("--game", default="kropki:territory=immediate,start=cross", help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the agent; oppai-rs chooses its own")
    chosen = parser.parse_args()
    if not CLI:
        sys.exit("error: NINETKA_OPPAI_CLI is not set to the command line of oppai-cli")
    agents = [make_agent(chosen.agent, chosen.game), OppaiAgent(CLI, chosen.playouts)]
    print_report(evaluate(agents, num_games=chosen.games, game=chosen.game, seed=chosen.seed, batch=2))


if __name__ == "__main__":
    main()

"""AlphaZero in one file: a small network learns 9tka, Kropki or Go from games that it plays by Gumbel search.

    python examples/alphazero.py --game kropki:width=6,height=6,territory=immediate --opponent greedy --minutes 10
    python examples/alphazero.py --game ninetka:num_players=3 --opponent maxn --minutes 10

The search of the library evaluates all games of a batch at once. Its improved policy (softmax of logits and completed
Q values) is the policy target, and the outcome of the game is the value target (Danihelka et al., "Policy improvement
by planning with Gumbel", ICLR 2022). The guide docs/guides/self-play.md explains the loop. `ninetka train` has more
options. The saved network plays in all commands of this library:

    ninetka evaluate python:examples.alphazero:load_agent,path=alphazero.pt maxn --game ninetka:num_players=3
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ninetka_agents import make_agent
from ninetka_agents.search.evaluation import observation_evaluate
from ninetka_agents.search.gumbel import GumbelOptions, GumbelSearch
from ninetka_env.api.vector import GameVectorEnv
from ninetka_env.core.registry import Variant, load_variant
from ninetka_train.judging.evaluate import evaluate

Array = np.ndarray[Any, Any]
DEFAULT_OPPONENTS = {"ninetka": "maxn", "kropki": "greedy", "go": "mcts:simulations=50"}


def number(low: float, high: float, kind: type = float) -> Callable[[str], float]:
    """Return a function that converts the text of an option to a number from `low` to `high`."""

    def convert(text: str) -> float:
        if not low <= (value := kind(text)) <= high:
            raise argparse.ArgumentTypeError(f"{text}: expected a number from {low:g} to {high:g}")
        return value

    convert.__name__ = kind.__name__  # argparse writes it if the text is no number
    return convert


def parse_arguments() -> argparse.Namespace:
    """Return the settings from the command line."""
    parser = argparse.ArgumentParser(
        description="AlphaZero in one file.", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add, count, positive = parser.add_argument, number(1, 1e6, int), number(1e-9, 1e6)
    add("--game", default="ninetka", help="game with its options, such as ninetka:num_players=3")
    add("--opponent", help="agent of the evaluation; by default maxn (9tka), greedy (Kropki) or mcts:simulations=50")
    add("--seed", type=number(0, 2**62, int), default=0, help="seed of weights, games and evaluation")
    add("--minutes", type=positive, default=10.0, help="time limit of playing and learning")
    add("--iterations", type=count, help="number of iterations, instead of a time limit")
    add("--save", type=Path, default=Path("alphazero.pt"), metavar="FILE", help="file for the network")
    add("--eval-games", type=count, default=200, help="games of each evaluation")
    add("--threads", type=count, default=2, help="threads of torch and of the search")
    add("--num-envs", type=count, default=128, help="games played in parallel")
    add("--num-steps", type=count, default=16, help="plies per game and iteration")
    add("--simulations", type=count, default=16, help="simulations per search")
    add("--window", type=count, default=512, help="plies per game that are kept for learning")
    add("--passes", type=positive, default=4.0, help="mean number of times that a position is learned")
    add("--minibatch", type=count, default=512, help="positions per gradient step")
    add("--learning-rate", type=positive, default=1.5e-3, help="first learning rate; it falls linearly to 0")
    add("--width", type=count, default=32, help="channels of the network")
    args = parser.parse_args()
    try:
        name = load_variant(args.game).definition.name
        args.opponent = args.opponent or DEFAULT_OPPONENTS.get(name, "random")
        make_agent(args.opponent, args.game)
    except ValueError as error:
        parser.error(str(error))
    if args.save.is_dir() or not args.save.parent.is_dir():
        parser.error(f"argument --save: {args.save}: expected a file in a folder that exists")
    return args


class Network(nn.Module):
    """Policy, and the share of the win that each seat expects, from the planes of the seat to move."""

    def __init__(self, variant: Variant, width: int) -> None:
        """Make a network for the observations and actions of a game."""
        super().__init__()
        planes, height, columns = variant.sizes.planes
        self.body = nn.Sequential(
            nn.Conv2d(planes, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, 16, 1), nn.ReLU(),
            nn.Flatten(), nn.Linear(16 * height * columns, 256), nn.ReLU(),
        )  # fmt: skip
        self.policy, self.value = nn.Linear(256, variant.num_actions), nn.Linear(256, variant.num_players)

    def forward(self, planes: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return log probabilities of the actions, (B, A), and log shares of the win per relative seat, (B, n)."""
        hidden = self.body(planes.float())
        return self.policy(hidden).masked_fill(mask == 0, -1e9).log_softmax(1), self.value(hidden).log_softmax(1)


def make_search(network: Network, variant: Variant, simulations: int, noise: float, threads: int) -> GumbelSearch:
    """Return a search that evaluates positions with the network; it is an agent, too."""

    @torch.inference_mode()
    def read(planes: Array, mask: Array) -> tuple[Tensor, Tensor]:
        log_policy, log_shares = network(torch.from_numpy(planes), torch.from_numpy(mask))
        return log_policy, log_shares.exp()  # win probabilities, with draws shared

    options = GumbelOptions(simulations, gumbel_scale=noise, playouts=0)
    search = GumbelSearch(observation_evaluate(read, variant), options, threads)
    search.repeats_openings = noise == 0  # without randomness: matches start with a few random plies if needed
    return search


class Window:
    """The last T plies of N games with their targets; the next ply overwrites the oldest."""

    def __init__(self, envs: GameVectorEnv, plies: int) -> None:
        """Allocate the arrays."""
        shape, variant = (plies, envs.num_envs), envs.variant
        self.planes = np.zeros((plies, *envs.observations.shape), np.int8)
        self.mask = np.zeros((plies, *envs.action_mask.shape), np.int8)
        self.policy = np.zeros((*shape, variant.num_actions), np.float32)
        self.seats = np.zeros(shape, np.int64)
        self.outcome = np.full((*shape, variant.num_players), np.nan, np.float32)  # nan until the game has ended
        self.count = 0  # plies so far
        self.first = np.zeros(envs.num_envs, np.int64)  # the first ply of the current game, in each row

    def play(self, envs: GameVectorEnv, search: GumbelSearch, rng: np.random.Generator) -> None:
        """Play a ply in all games by search, and store positions and targets."""
        at = self.count % len(self.seats)
        found = search.run(envs.games, rng)
        # The environment overwrites its arrays in each step; assigning to slices copies them.
        self.planes[at], self.mask[at], self.seats[at] = envs.observations, envs.action_mask, envs.to_move
        self.policy[at] = found.policy[:, : self.policy.shape[2]]
        self.outcome[at] = np.nan
        envs.step(found.actions)
        self.count += 1
        for row in np.flatnonzero(envs.terminated):
            oldest = max(self.first[row], self.count - len(self.seats))
            game = np.arange(oldest, self.count) % len(self.seats)
            self.outcome[game, row] = envs.rewards[row]
            self.first[row] = self.count

    def draw(self, size: int, rng: np.random.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Draw positions of finished games: planes, masks, and targets of the policy and of the seats' shares."""
        known = np.flatnonzero(~np.isnan(self.outcome[..., 0]))
        at = np.unravel_index(rng.choice(known, size), self.seats.shape)
        n = self.outcome.shape[2]
        rewards = np.take_along_axis(self.outcome[at], (np.arange(n) + self.seats[at][:, None]) % n, 1)
        shares = ((n - 1) * rewards + 1) / n  # a reward is 1 for the winner, -1 / (n - 1) for others, 0 for a draw
        columns = (self.planes[at], self.mask[at], self.policy[at], shares)
        planes, mask, policy, share = map(torch.from_numpy, columns)
        return planes, mask, policy, share

    @property
    def num_known(self) -> int:
        """Number of positions whose game has ended."""
        return int((~np.isnan(self.outcome[..., 0])).sum())


def learn(
    network: Network, optimizer: torch.optim.Optimizer, window: Window, steps: int, size: int, rng: np.random.Generator
) -> str:
    """Take gradient steps: cross-entropy of the policy with the search's policy, and of the shares with the outcome.

    Returns:
        The losses of the last step, as text.
    """
    for _ in range(steps):
        planes, mask, policy, shares = window.draw(size, rng)
        log_policy, log_shares = network(planes, mask)
        policy_loss, value_loss = -(policy * log_policy).sum(1).mean(), -(shares * log_shares).sum(1).mean()
        optimizer.zero_grad()
        (policy_loss + value_loss).backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    return f"policy loss {policy_loss.item():.2f}, value loss {value_loss.item():.3f}"


def load_agent(path: str, simulations: int = 16) -> GumbelSearch:
    """Return a search with the network in a file that this program saved; it plays the game it was trained on."""
    saved = torch.load(path, weights_only=True)
    variant = load_variant(saved["game"])
    network = Network(variant, saved["width"])
    network.load_state_dict(saved["weights"])
    return make_search(network, variant, simulations, noise=0.0, threads=1)


def save(network: Network, args: argparse.Namespace) -> None:
    """Write the network and what `load_agent` needs to `args.save`."""
    torch.save({"game": args.game, "width": args.width, "weights": network.state_dict()}, args.save)


def report(when: str, network: Network, variant: Variant, args: argparse.Namespace) -> None:
    """Print the win rate of the search against the opponent, with a 95 % interval."""
    agent = make_search(network, variant, args.simulations, 0.0, args.threads)
    figures = evaluate([agent, args.opponent], num_games=args.eval_games, game=variant, seed=args.seed).agents[0]
    low, high = figures.interval
    text = f"{when}: {figures.share:.1%} [{low:.1%}, {high:.1%}] against {args.opponent} in {figures.games} games"
    print(f"{text}; equal strength: {figures.even:.1%}", flush=True)


def train(network: Network, envs: GameVectorEnv, args: argparse.Namespace) -> None:
    """Play and learn in turns, until the time or the number of iterations is used up."""
    optimizer = torch.optim.Adam(network.parameters(), args.learning_rate)
    search = make_search(network, envs.variant, args.simulations, 1.0, args.threads)
    window, rng = Window(envs, args.window), np.random.default_rng(args.seed)
    steps = max(1, round(args.passes * args.num_envs * args.num_steps / args.minibatch))
    iteration, start, progress, line = 0, time.perf_counter(), 0.0, "too few games have ended to learn"
    while progress < 1:
        optimizer.param_groups[0]["lr"] = args.learning_rate * (1 - progress)
        for _ in range(args.num_steps):
            window.play(envs, search, rng)
        if window.num_known >= args.minibatch:
            line = learn(network, optimizer, window, steps, args.minibatch, rng)
        iteration, seconds = iteration + 1, time.perf_counter() - start
        progress = iteration / args.iterations if args.iterations else seconds / (60 * args.minutes)
        if iteration % 10 == 0 or progress >= 1:
            plies = window.count * envs.num_envs
            speed = f"{iteration} iterations, {plies} plies, {plies / seconds:.0f} plies/s"
            print(f"{seconds:.0f} s: {speed}, {line}", flush=True)


def main() -> None:
    """Train a network, evaluate it before and after, and save it."""
    args = parse_arguments()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    variant = load_variant(args.game)
    envs = GameVectorEnv(args.num_envs, variant)
    envs.reset(seed=args.seed)
    network = Network(variant, args.width)
    save(network, args)  # so that a file that cannot be written is noticed before training
    report("start", network, variant, args)
    train(network, envs, args)
    save(network, args)
    report("end", network, variant, args)
    print(f"saved {args.save}")


if __name__ == "__main__":
    main()

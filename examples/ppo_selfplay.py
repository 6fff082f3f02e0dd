"""Self-play by PPO in one file: a network learns 9tka, Kropki or Go from games against itself and its past selves.

    python examples/ppo_selfplay.py --game ninetka:num_players=3 --opponent maxn --minutes 10 --seed 1
    python examples/ppo_selfplay.py --game kropki:territory=immediate --opponent greedy --minutes 10

The network plays all seats of a batch of games. In a part of the games it plays one seat, and an earlier version of it
plays the others. The opponent of `--opponent` is only used for evaluation. Seats do not alternate strictly, so
advantages are computed over each seat's own decisions. The guide docs/guides/self-play.md explains the loop.

The saved network plays in all commands of this library:

    ninetka evaluate python:examples.ppo_selfplay:load_agent,path=selfplay.pt maxn --game ninetka:num_players=3

With `--updates` the result depends only on the settings, the versions of the packages and the processor; with
`--minutes` also on the speed of the machine.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  # the usual name
from torch import Tensor, nn

from ninetka_agents import make_agent
from ninetka_env.api.observing import observe
from ninetka_env.api.vector import GameVectorEnv
from ninetka_env.core.registry import Variant, load_variant
from ninetka_train.judging.evaluate import evaluate
from ninetka_train.learning.advantages import seat_advantages

Array = np.ndarray[Any, Any]
DEFAULT_OPPONENTS = {"ninetka": "maxn", "kropki": "greedy", "go": "mcts:simulations=50"}
WARM_UP_PLIES = 1000
"""Random plies before learning. They spread the games of the batch over all stages of the game."""
LEAGUE_SIZE = 50
"""Maximum number of past selves; the oldest are dropped."""


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
        description="Self-play by PPO in one file.", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add, count, positive = parser.add_argument, number(1, 1e6, int), number(1e-9, 1e6)
    add("--game", default="ninetka", help="game with its options, such as ninetka:num_players=3")
    add("--opponent", help="agent of the evaluation; by default maxn (9tka), greedy (Kropki) or mcts:simulations=50")
    add("--seed", type=number(0, 2**62, int), default=0, help="seed of weights, games and evaluation")
    add("--minutes", type=positive, default=10.0, help="time limit of playing and learning")
    add("--updates", type=count, help="number of updates, instead of a time limit")
    add("--save", type=Path, default=Path("selfplay.pt"), metavar="FILE", help="file for the network")
    add("--eval-games", type=count, default=200, help="games of each evaluation")
    add("--threads", type=count, default=2, help="threads of torch")
    add("--num-envs", type=count, default=256, help="games played in parallel")
    add("--num-steps", type=count, default=32, help="plies per game and update")
    add("--past-share", type=number(0, 1), default=0.25, help="share of the games against a past self")
    add("--past-every", type=count, default=5, help="updates between two copies for the league")
    add("--epochs", type=count, default=2, help="passes over the decisions of an update")
    add("--minibatch", type=count, default=512, help="decisions per gradient step")
    add("--learning-rate", type=positive, default=1.5e-3, help="first learning rate; it falls linearly to 0")
    add("--gae-lambda", type=number(0, 1), default=0.95, help="lambda of the advantages, 0 to 1")
    add("--clip", type=positive, default=0.2, help="PPO's limit of the ratio: 1 - clip to 1 + clip")
    add("--entropy", type=number(0, 1e6), default=0.01, help="weight of the policy's entropy")
    add("--width", type=count, default=32, help="channels of the network")
    add("--blocks", type=count, default=1, help="residual blocks of the network")
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


class Block(nn.Module):
    """Residual block of two convolutions, between which a square gets the means of its row, its column and the board.

    In 9tka a stone slides along its line, so the squares of a line must know of each other.
    """

    def __init__(self, width: int) -> None:
        """Make a block that returns its input at first."""
        super().__init__()
        self.first, self.second = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.row, self.column, self.board = (nn.Conv2d(width, width, 1) for _ in range(3))
        nn.init.zeros_(self.second.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Transform (B, width, H, W) to the same shape."""
        hidden = F.relu(self.first(x))
        rows, columns = hidden.mean(3, keepdim=True), hidden.mean(2, keepdim=True)
        hidden = hidden + self.row(rows) + self.column(columns) + self.board(rows.mean(2, keepdim=True))
        return F.relu(x + self.second(F.relu(hidden)))


class Network(nn.Module):
    """Policy, and the share of the win that each seat expects, from the planes of the seat to move."""

    def __init__(self, variant: Variant, width: int, blocks: int) -> None:
        """Make a network for the observations and actions of a game."""
        super().__init__()
        (planes, height, columns), self.num_actions = variant.sizes.planes, variant.num_actions
        actions_per_square, others = divmod(self.num_actions, height * columns)
        self.first = nn.Conv2d(planes, width, 3, padding=1)
        self.place = nn.Parameter(torch.zeros(width, height, columns))  # convolutions do not know where a square is
        self.blocks = nn.Sequential(*(Block(width) for _ in range(blocks)))
        self.summary = nn.Sequential(
            nn.Conv2d(width, 8, 1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * height * columns, 128), nn.ReLU()
        )
        self.square_policy = nn.Conv2d(width, actions_per_square, 1)  # channel k: action `square + k * num_squares`
        self.other_policy = nn.Linear(128, max(1, others))  # actions without a square, such as passing
        self.value = nn.Linear(128, variant.num_players)
        nn.init.orthogonal_(self.square_policy.weight, 0.01)

    def forward(self, planes: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return log probabilities of the actions, (B, A), and log shares of the win per relative seat, (B, n)."""
        squares = self.blocks(F.relu(self.first(planes.float()) + self.place))
        summary = self.summary(squares)
        logits = torch.cat([self.square_policy(squares).flatten(1), self.other_policy(summary)], 1)
        logits = logits[:, : self.num_actions].masked_fill(mask == 0, -1e9)
        return logits.log_softmax(1), self.value(summary).log_softmax(1)


class NetworkAgent:
    """Plays the network's most probable action; it can play wherever this library expects an agent."""

    name = "network"
    repeats_openings = True  # so that a match against another network starts with random plies

    def __init__(self, network: Network, variant: Variant) -> None:
        """Make an agent for games of one variant."""
        self.network, self.variant = network, variant

    def act(self, games: Array, rng: np.random.Generator) -> Array:
        """Return an action per game, (N,) int64."""
        with torch.inference_mode():
            return self.network(*map(torch.from_numpy, observe(games, self.variant)))[0].argmax(1).numpy()


def load_agent(path: str) -> NetworkAgent:
    """Return an agent with the network in a file that this program saved; it only plays the game it was trained on."""
    saved = torch.load(path, weights_only=True)
    variant = load_variant(saved["game"])
    network = Network(variant, saved["width"], saved["blocks"])
    network.load_state_dict(saved["weights"])
    return NetworkAgent(network, variant)


def save(network: Network, args: argparse.Namespace) -> None:
    """Write the network and what `load_agent` needs to `args.save`."""
    settings = {"game": args.game, "width": args.width, "blocks": args.blocks}
    torch.save(settings | {"weights": network.state_dict()}, args.save)


class Rollout:
    """T plies of N games."""

    def __init__(self, envs: GameVectorEnv, plies: int) -> None:
        """Allocate the arrays."""
        shape, n = (plies, envs.num_envs), envs.num_players
        self.planes = np.zeros((plies, *envs.observations.shape), np.int8)
        self.mask = np.zeros((plies, *envs.action_mask.shape), np.int8)
        self.seats, self.actions = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self.log_probs, self.values = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        self.rewards, self.terminated = np.zeros((*shape, n), np.float32), np.zeros(shape, np.bool_)
        self.learns = np.zeros(shape, np.bool_)  # the decisions of the network, not those of its past self
        self.last_values = np.zeros((envs.num_envs, n), np.float32)


# The reward is 1 for the winner, -1 / (n - 1) for the others, and 0 if a game is drawn. The network predicts each
# seat's share of the win instead (1 / n if drawn): a probability distribution, for which cross-entropy is a good loss.


def as_rewards(shares: Array) -> Array:
    """Convert expected shares of the win, (.., n), to expected rewards."""
    n = shares.shape[-1]
    return (n * shares - 1) / (n - 1)


def as_shares(rewards: Array) -> Array:
    """Convert estimates of rewards, (.., n), to shares of the win that are positive and sum to 1."""
    n = rewards.shape[-1]
    shares = np.clip(((n - 1) * rewards + 1) / n, 1e-6, None)
    return shares / shares.sum(-1, keepdims=True)


def rolled(rows: Array, first: Array) -> Array:
    """Reorder (.., n) numbers per seat to relative seats, where relative seat 0 is `first`; `-first` reverses it."""
    n = rows.shape[-1]
    return np.take_along_axis(rows, (np.arange(n) + first[..., None]) % n, -1)


@torch.inference_mode()
def sample(network: Network, planes: Array, mask: Array) -> tuple[Array, Array, Array]:
    """Draw actions; return them with their log probabilities and the shares of the win per relative seat."""
    log_policy, log_shares = network(torch.from_numpy(planes), torch.from_numpy(mask))
    actions = log_policy.exp().multinomial(1)
    return actions[:, 0].numpy(), log_policy.gather(1, actions)[:, 0].numpy(), log_shares.exp().numpy()


def play(
    envs: GameVectorEnv, network: Network, past: Network, share: float, rng: np.random.Generator, out: Rollout
) -> None:
    """Play the plies of a rollout. In a share of the games, one seat learns, and the past self plays the others."""
    against_past = rng.random(envs.num_envs) < share
    learning_seats = rng.integers(envs.num_players, size=envs.num_envs)
    for t in range(len(out.seats)):
        # The environment overwrites its arrays in each step; assigning to slices copies them.
        out.planes[t], out.mask[t], out.seats[t] = envs.observations, envs.action_mask, envs.to_move
        out.learns[t] = ~against_past | (out.seats[t] == learning_seats)
        out.actions[t], out.log_probs[t], shares = sample(network, out.planes[t], out.mask[t])
        out.values[t] = as_rewards(shares)[:, 0]  # also where the past self moves: the targets of all seats need them
        theirs = ~out.learns[t]
        if theirs.any():
            out.actions[t, theirs] = sample(past, out.planes[t, theirs], out.mask[t, theirs])[0]
        envs.step(out.actions[t])
        out.rewards[t], out.terminated[t] = envs.rewards, envs.terminated
    shares = sample(network, envs.observations, envs.action_mask)[2]
    out.last_values[:] = rolled(as_rewards(shares), -envs.to_move.astype(np.int64))


def learn(network: Network, optimizer: torch.optim.Optimizer, rollout: Rollout, args: argparse.Namespace) -> str:
    """Take PPO's gradient steps (Schulman et al., 2017, equation 7) on the network's own decisions of a rollout.

    Returns:
        A line about the last gradient step; a falling entropy and value loss show that the network learns.
    """
    advantages, returns = seat_advantages(
        rollout.seats,
        rollout.rewards,
        rollout.terminated,
        rollout.values,
        rollout.last_values,
        gae_lambda=args.gae_lambda,
    )
    shares = as_shares(rolled(returns, rollout.seats)).astype(np.float32)
    columns = (rollout.planes, rollout.mask, rollout.actions, rollout.log_probs, advantages, shares)
    batch = [torch.from_numpy(column[rollout.learns]) for column in columns]
    size, line = len(batch[0]), "no decisions to learn from"
    for _ in range(args.epochs if size else 0):
        for chosen in torch.randperm(size).tensor_split(max(1, size // args.minibatch)):
            planes, mask, action, old_log_prob, advantage, share = (column[chosen] for column in batch)
            log_policy, log_shares = network(planes, mask)
            ratio = (log_policy.gather(1, action[:, None])[:, 0] - old_log_prob).exp()
            advantage = (advantage - advantage.mean()) / (advantage.std(correction=0) + 1e-8)
            clipped = ratio.clamp(1 - args.clip, 1 + args.clip)
            policy_loss = -torch.minimum(ratio * advantage, clipped * advantage).mean()
            value_loss = -(share * log_shares).sum(1).mean()
            entropy = -(log_policy.exp() * log_policy).sum(1).mean()
            optimizer.zero_grad()
            (policy_loss + value_loss - args.entropy * entropy).backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            line = f"entropy {entropy.item():.2f}, value loss {value_loss.item():.3f}"
    return line


def train(network: Network, envs: GameVectorEnv, args: argparse.Namespace) -> None:
    """Play and learn in turns, until the time or the number of updates is used up."""
    optimizer = torch.optim.Adam(network.parameters(), args.learning_rate, eps=1e-5)
    rng, rollout, league = np.random.default_rng(args.seed), Rollout(envs, args.num_steps), [copy.deepcopy(network)]
    uniform = make_agent("random")
    for _ in range(WARM_UP_PLIES):
        envs.step(uniform.act(envs.games, rng))
    update, start, progress = 0, time.perf_counter(), 0.0
    while progress < 1:
        optimizer.param_groups[0]["lr"] = args.learning_rate * (1 - progress)
        play(envs, network, league[rng.integers(len(league))], args.past_share, rng, rollout)
        line = learn(network, optimizer, rollout, args)
        update, seconds = update + 1, time.perf_counter() - start
        if update % args.past_every == 0:
            league = [*league, copy.deepcopy(network)][-LEAGUE_SIZE:]
        progress = update / args.updates if args.updates else seconds / (60 * args.minutes)
        if update % 20 == 0 or progress >= 1:
            plies = update * rollout.seats.size
            speed = f"{update} updates, {plies} plies, {plies / seconds:.0f} plies/s"
            print(f"{seconds:.0f} s: {speed}, {line}", flush=True)


def report(when: str, network: Network, variant: Variant, args: argparse.Namespace) -> None:
    """Print the network's win rate against the opponent, with a 95 % interval."""
    agents = [NetworkAgent(network, variant), args.opponent]
    figures = evaluate(agents, num_games=args.eval_games, game=variant, seed=args.seed).agents[0]
    low, high = figures.interval
    text = f"{when}: {figures.share:.1%} [{low:.1%}, {high:.1%}] against {args.opponent} in {figures.games} games"
    print(f"{text}; equal strength: {figures.even:.1%}", flush=True)


def main() -> None:
    """Train a network, evaluate it before and after, and save it."""
    args = parse_arguments()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    variant = load_variant(args.game)
    envs = GameVectorEnv(args.num_envs, variant)
    envs.reset(seed=args.seed)
    network = Network(variant, args.width, args.blocks)
    save(network, args)  # so that a file that cannot be written is noticed before training
    report("start", network, variant, args)
    train(network, envs, args)
    save(network, args)
    report("end", network, variant, args)
    print(f"saved {args.save}")


if __name__ == "__main__":
    main()

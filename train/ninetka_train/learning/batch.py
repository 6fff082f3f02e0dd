"""What PPO learns from a rollout: the learner's decisions with their targets, computed where the rollout is.

The games have at most A actions, P players and T' final targets. Start reading at `make_batch`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ninetka_env.core.outcome import DRAWN, UNFINISHED
from ninetka_train.learning.advantages import SeatTargets, seat_advantages
from ninetka_train.learning.losses import UNKNOWN_OWNER
from ninetka_train.learning.rollout import Rollout


class Batch(NamedTuple):
    """N decisions to learn from; seats are relative to the mover."""

    inputs: Any
    """The network's inputs."""
    actions: Tensor
    """(N,) int64."""
    log_probs: Tensor
    """(N,) float32 at the time of the rollout."""
    advantages: Tensor
    """(N,) float32."""
    values: Tensor
    """(N, P + 1) float32 shares of the outcomes, summing to 1: win of each relative seat; draw."""
    owners: Tensor
    """(N, T') int64 final owners as relative seats, P for no owner, or `UNKNOWN_OWNER`."""
    scores: Tensor
    """(N,) float32 the mover's final score minus the best other score; nan if unknown."""


def make_batch(rollout: Rollout, decay: float, device: torch.device | str = "cpu") -> Batch:
    """Return the learner's decisions of a rollout with their targets, on `device`.

    `decay` is the lambda of the advantages.
    """
    inputs = type(rollout.arrays)(*map(torch.as_tensor, rollout.arrays))
    rollout = Rollout(inputs, *map(torch.as_tensor, rollout[1:]))
    advantages, returns = own_decision_targets(
        rollout.movers, rollout.num_players, rollout.values, rollout.winners, decay
    )
    movers, players = rollout.movers.flatten().long(), rollout.num_players.long().repeat(len(rollout.movers))
    values = _value_targets(returns.flatten(0, 1), movers, players)
    owners, scores = _final_targets(rollout, movers, players)
    each = rollout.actions.flatten(), rollout.log_probs.flatten(), advantages.flatten(), values, owners, scores
    kept = rollout.is_learner_ply.flatten().nonzero()[:, 0]
    return Batch(
        type(inputs)(*(tensor[kept].to(device) for tensor in inputs)), *(tensor[kept].to(device) for tensor in each)
    )


def own_decision_targets(
    movers: Tensor, num_players: Tensor, values: Tensor, winners: Tensor, decay: float
) -> SeatTargets:
    """Return the advantages of the movers, (T, B), and the value targets of all seats, (T, B, P), as win probabilities.

    See `ninetka_train.learning.advantages.seat_advantages`. The only reward is that of a finished game: 1 for the
    winner, or 1 / n for each seat if it is drawn. Targets of seats that are not in play are 0.

    Args:
        movers: (T, B) int8 seats.
        num_players: (B,) int8 numbers of players.
        values: (T + 1, B, P) float32 per seat; the last values estimate the rest of unfinished games.
        winners: (T, B) int8, as in `Rollout`.
        decay: lambda of the advantages.
    """
    seats = torch.arange(values.shape[2], device=values.device)
    in_play = seats < num_players[:, None]
    drawn = (winners == DRAWN)[..., None]
    shares = (winners[..., None] == seats) + drawn * (in_play.double() / num_players[:, None])
    own_values = values[:-1].gather(2, movers[..., None].long())[..., 0]
    return seat_advantages(movers, shares, winners != UNFINISHED, own_values, values[-1] * in_play, gae_lambda=decay)


def _value_targets(returns: Tensor, movers: Tensor, players: Tensor) -> Tensor:
    """Return the `values` of a `Batch` from win probabilities per seat, (N, P), which may be outside of 0..1."""
    in_play = torch.arange(returns.shape[1], device=returns.device) < players[:, None]
    values = roll_tensor(returns, movers, players).double().clamp(min=0) + 1e-6 * in_play.double()
    values = (values / values.sum(1, keepdim=True)).float()
    return torch.nn.functional.pad(values, (0, 1))  # draws are included as shares of wins


def _final_targets(rollout: Rollout, movers: Tensor, players: Tensor) -> tuple[Tensor, Tensor]:
    """Return the `owners` and `scores` of a `Batch` for T * B positions, unknown if the game did not end."""
    ending = ending_plies(rollout.winners)
    column = torch.arange(ending.shape[1], device=ending.device)
    owners = rollout.owners[ending, column].flatten(0, 1).long()
    scores = rollout.scores[ending, column].flatten(0, 1)
    classes = torch.where(owners < 0, scores.shape[1], (owners - movers[:, None]) % players[:, None])
    unknown = ending.flatten() < 0
    in_play = torch.arange(scores.shape[1], device=scores.device) < players[:, None]
    relative = roll_tensor(scores, movers, players).masked_fill(~in_play, -torch.inf)
    leads = relative[:, 0] - relative[:, 1:].amax(1)
    return classes.masked_fill(unknown[:, None], UNKNOWN_OWNER), leads.masked_fill(unknown, torch.nan)


def ending_plies(winners: Tensor) -> Tensor:
    """Return (T, B) int64: the ply that ended each position's game, or -1 if the game did not end in the rollout."""
    ending, plies = torch.full_like(winners[0], -1, dtype=torch.int64), []
    for ply in range(len(winners) - 1, -1, -1):
        ending = torch.where(winners[ply] != UNFINISHED, ply, ending)
        plies.append(ending)
    return torch.stack(plies[::-1])


def roll_tensor(rows: Tensor, first: Tensor, num_players: Tensor) -> Tensor:
    """Reorder (N, P) numbers as `ninetka_train.learning.rollout.roll_seats` does, which changes arrays in place."""
    seats, players = torch.arange(rows.shape[1], device=rows.device), num_players[:, None].long()
    return rows.gather(1, torch.where(seats < players, (seats + first[:, None]) % players, seats))


def take(batch: Batch, index: Tensor) -> Batch:
    """Return the rows `index` of a batch."""
    inputs = type(batch.inputs)(*(tensor[index] for tensor in batch.inputs))
    return Batch(inputs, *(tensor[index] for tensor in batch[1:]))

"""The mean of several networks, and policies made softer for searches.

Of networks that began from the same weights and learned on by different lessons, the mean of the weights often plays
better than each of them and takes no longer (Wortsman et al., "Model soups", ICML 2022).

A policy that learned to win without search becomes so sure of itself that a search of few simulations hardly looks at
anything else. Divided by a temperature, as Leela Chess Zero's `--policy-softmax-temp` does, its logits leave a search
more to choose from; which action is best stays as it is. Here the weights are divided, so that no search has to know.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch


def mean_network(networks: Sequence[Any]) -> Any:
    """Return a network whose weights are the means of those of one or more others, of one game and one shape.

    One that is named several times counts as often.

    Raises:
        ValueError: if there is none, or they differ in game or shape.
    """
    if not networks:
        raise ValueError("expected at least one network")
    first = networks[0]
    for other in networks[1:]:
        if (other.game, other.config) != (first.game, first.config):
            raise ValueError(
                f"expected networks of one game and shape: {first.game} with {first.config}, and {other.game} with "
                f"{other.config}"
            )
    weights = [network.state_dict() for network in networks]
    mean = copy.deepcopy(first)
    mean.load_state_dict({name: torch.stack([one[name] for one in weights]).mean(0) for name in weights[0]})
    return mean


def soften_policy(network: Any, temperature: float) -> None:
    """Divide a network's policy logits by a temperature, in its own weights.

    Raises:
        ValueError: unless the temperature is from 0.01 to 100.
    """
    if not 0.01 <= temperature <= 100:
        raise ValueError(f"policy temperature {temperature!r}: expected a number from 0.01 to 100")
    with torch.no_grad():
        for layer in network.policy_layers:
            for weights in getattr(network, layer).parameters():
                weights /= temperature

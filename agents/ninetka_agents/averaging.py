"""Average the weights of several networks, and soften a network's policy for use in a search.

If networks started from the same weights and were trained on different data, the mean of their weights often plays
better than each of them, at the same cost (Wortsman et al., "Model soups", ICML 2022).

A policy that was trained to win without search becomes so peaked that a search of few simulations considers hardly any
action but the most probable one. Dividing the logits by a temperature, like Leela Chess Zero's `--policy-softmax-temp`,
flattens the policy and does not change which action is best. `soften_policy` divides the weights of the policy layers,
so searches need no option for the temperature.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch


def mean_network(networks: Sequence[Any]) -> Any:
    """Return a network whose weights are the means of the weights of one or more networks.

    A network that occurs k times has k times the weight in the mean.

    Raises:
        ValueError: if there is no network, or if the networks differ in game or shape.
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
    """Divide a network's policy logits by a temperature, by scaling its weights in place.

    Raises:
        ValueError: unless the temperature is from 0.01 to 100.
    """
    if not 0.01 <= temperature <= 100:
        raise ValueError(f"policy temperature {temperature!r}: expected a number from 0.01 to 100")
    with torch.no_grad():
        for layer in network.policy_layers:
            for weights in getattr(network, layer).parameters():
                weights /= temperature

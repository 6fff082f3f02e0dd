"""The mean of several networks.

Of networks that began from the same weights and learned on by different lessons, the mean of the weights often plays
better than each of them and takes no longer (Wortsman et al., "Model soups", ICML 2022).
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

"""Version 0 of the environment. Its version changes with any change of rules, actions, masks, planes or rewards.

History:
    v0: first version.
"""

from __future__ import annotations

from typing import Any

from pettingzoo.utils import wrappers

from ninetka_env.aec import NinetkaAEC as raw_env
from ninetka_env.vector import NinetkaVectorEnv as vector_env

__all__ = ["env", "raw_env", "vector_env"]


def env(**options: Any) -> wrappers.OrderEnforcingWrapper[str, Any, int]:
    """Make the environment with PettingZoo's usual wrappers; `options` are those of `raw_env`.

    An illegal action ends the game with reward -1 for whoever played it, an action outside 0..121 fails an assertion,
    and methods called in the wrong order are reported.
    """
    wrapped = wrappers.TerminateIllegalWrapper(raw_env(**options), illegal_reward=-1)
    return wrappers.OrderEnforcingWrapper(wrappers.AssertOutOfBoundsWrapper(wrapped))

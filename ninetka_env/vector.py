"""Batched self-play: many games stepped at once by compiled code, on arrays that the environment owns and reuses."""

from __future__ import annotations

import os
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from ninetka_env._jit import jit
from ninetka_env.chance import Streams, make_streams, place_neutrals_at_random
from ninetka_env.game import Game, Options, describe_illegal
from ninetka_env.geometry import NUM_ACTIONS, NUM_SQUARES
from ninetka_env.observation import NUM_PLANES, SHAPE, write_fast_planes, write_slow_planes
from ninetka_env.rewards import REWARDS, write_rewards
from ninetka_env.rules import (
    GAME,
    NEUTRAL,
    Records,
    is_legal,
    is_over,
    play,
    start,
    winner_of,
    write_legal_mask,
    write_scores,
)

_SMALLEST_SHARE = 256
"""Games per thread below which a second thread costs more than it brings (measured by `ninetka bench`)."""

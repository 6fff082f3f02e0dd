"""Environments of Kropki, version 0: PettingZoo (`env`, `raw_env`) and batches for self-play (`vector_env`).

The classes are in `ninetka_env.api.aec` and `ninetka_env.api.vector`, the options in
`ninetka_env.games.kropki.definition`, the rules in `ninetka_env.games.kropki.rules`.

Any change of rules, actions, masks, observation planes or rewards requires a new version.

History:
    v0: first version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from ninetka_env.api.aec import GameAEC, Observation, wrapped
from ninetka_env.api.vector import CudaDevice, GameVectorEnv, make_vector_env
from ninetka_env.core.options import takes_options
from ninetka_env.games.kropki.definition import KROPKI, OPTIONS, KropkiOptions
from ninetka_env.games.kropki.game import Game

if TYPE_CHECKING:
    from ninetka_env.gpu.vector import DeviceVectorEnv

__all__ = ["Game", "env", "raw_env", "vector_env"]


@takes_options(OPTIONS)
def env(
    width: int = 10,
    height: int = 10,
    *,
    reward: str = "win",
    render_mode: str | None = None,
    **options: Unpack[KropkiOptions],
) -> OrderEnforcingWrapper[str, Observation, int]:
    """Make the PettingZoo environment with standard wrappers; the parameters are the same as in `raw_env`.

    An illegal action ends the game with reward -1 for the agent that played it. An action outside the action space
    raises `AssertionError`. Methods that are called in the wrong order raise an error.
    """
    return wrapped(raw_env(width, height, reward=reward, render_mode=render_mode, **options))


@takes_options(OPTIONS)
def raw_env(
    width: int = 10,
    height: int = 10,
    *,
    reward: str = "win",
    render_mode: str | None = None,
    **options: Unpack[KropkiOptions],
) -> GameAEC:
    """Make the PettingZoo environment without wrappers; see `ninetka_env.api.aec.GameAEC`.

    Args:
        width: columns of the board, 3..39.
        height: rows of the board, 3..32.
        reward: `"win"`: +1 and -1, or 0 for both if drawn; `"score"`: (own score - other score) / number of nodes.
        render_mode: None, `"human"`, `"rgb_array"` or `"ansi"`.
        **options: see `ninetka_env.games.kropki.definition.KropkiOptions`.

    Raises:
        ValueError: if an option is wrong; the message gives its name and the allowed values.
    """
    return GameAEC(KROPKI.variant(width=width, height=height, **options), reward, render_mode)


@overload
def vector_env(
    num_envs: int,
    width: int = 10,
    height: int = 10,
    *,
    reward: str = "win",
    num_threads: int | None = None,
    copy: bool = False,
    device: Literal["cpu"] = "cpu",
    validate: bool = False,
    **options: Unpack[KropkiOptions],
) -> GameVectorEnv: ...


@overload
def vector_env(
    num_envs: int,
    width: int = 10,
    height: int = 10,
    *,
    reward: str = "win",
    device: CudaDevice,
    validate: bool = False,
    **options: Unpack[KropkiOptions],
) -> DeviceVectorEnv: ...


@takes_options(OPTIONS)
def vector_env(
    num_envs: int,
    width: int = 10,
    height: int = 10,
    *,
    reward: str = "win",
    num_threads: int | None = None,
    copy: bool = False,
    device: str = "cpu",
    validate: bool = False,
    **options: Unpack[KropkiOptions],
) -> Any:
    """Make an environment of N games for self-play; see `ninetka_env.api.vector.GameVectorEnv`.

    On a GPU, it is a `ninetka_env.gpu.vector.DeviceVectorEnv`.

    Args:
        num_envs: N, the number of games, at least 1.
        width: columns of the board, 3..39.
        height: rows of the board, 3..32.
        reward: `"win"`: +1 and -1, or 0 for both if drawn; `"score"`: (own score - other score) / number of nodes.
        num_threads: maximum number of threads that step the games; None for one per core.
        copy: whether `reset` and `step` give new arrays, instead of arrays that the next step overwrites.
        device: `"cpu"`, or a CUDA device such as `"cuda"`; then the arrays are tensors of PyTorch on this device.
        validate: whether a step on a GPU waits for the device and raises an error for an illegal action.
        **options: see `ninetka_env.games.kropki.definition.KropkiOptions`.

    Raises:
        ValueError: if an option is wrong; the message gives its name and the allowed values.
        ImportError: if PyTorch is not installed, which games on a GPU need.
        RuntimeError: if there is no such GPU, or numba-cuda is not installed.
    """
    variant = KROPKI.variant(width=width, height=height, **options)
    return make_vector_env(num_envs, variant, reward, num_threads, copy, device, validate)

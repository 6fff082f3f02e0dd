"""Play recorded games with the kernels for GPUs in numba's simulator, and compare everything with the record.

`test_gpu_games.py` runs this program in a separate process, because the simulator needs environment variables.
"""

from __future__ import annotations

import json
import sys

import numpy as np

from ninetka_agents.plugins import network_of
from ninetka_env.core.registry import load_variant
from ninetka_env.gpu.vector import DeviceVectorEnv

ARRAYS = ("observations", "action_mask", "to_move", "rewards", "terminated", "final_scores", "final_winner")


def main(path: str) -> None:
    """Play the games of a file that `test_gpu_games.record` wrote."""
    with np.load(path) as file:
        record = dict(file)
    about = json.loads(str(record["about"]))
    variant = load_variant(about["spec"])
    env = DeviceVectorEnv(len(record["states"][0]), variant, about["reward"])
    env.reset(seed=about["seed"])
    network = network_of(variant.definition.name).Network()
    for step, states in enumerate(record["states"]):
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(env, name).numpy(), record[name][step], f"{name} at step {step}")
        if step % about["inputs_every"] == 0:
            for name, tensor in network.encode_on_device(env)._asdict().items():
                expected = record[f"inputs.{name}"][step // about["inputs_every"]]
                assert tensor.numpy().dtype == expected.dtype, name
                np.testing.assert_array_equal(tensor.numpy(), expected, f"{name} at step {step}")
        assert env.states().tobytes() == states.tobytes(), f"states at step {step}"
        actions = env.sample_legal()
        np.testing.assert_array_equal(actions.numpy(), record["actions"][step], f"actions at step {step}")
        if step + 1 < len(record["states"]):
            env.step(actions)
    env.check()


main(sys.argv[1])

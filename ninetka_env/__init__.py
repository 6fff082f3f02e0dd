"""The board game 9tka as a reinforcement-learning environment.

Three ways in:

- `from ninetka_env import ninetka_v0`, then `ninetka_v0.env(num_players=3)`: PettingZoo AEC;
- `ninetka_v0.vector_env(1024, num_players=3)`: batched self-play;
- `gymnasium.make("ninetka_env:ninetka_env/Ninetka-v0", num_players=3)`: Gymnasium, one seat.
"""

import gymnasium
import pettingzoo

gymnasium.register(
    id="ninetka_env/Ninetka-v0",
    entry_point="ninetka_env.api.one_seat:NinetkaOneSeat",
    vector_entry_point="ninetka_env.api.one_seat:NinetkaOneSeatVector",
)
if hasattr(pettingzoo, "register"):  # PettingZoo 1.27 and later
    pettingzoo.register("aec", id="ninetka/ninetka-v0", entry_point="ninetka_env.ninetka_v0:env")

"""Board games as reinforcement-learning environments: 9tka, 9 x 9 Go and Kropki.

Each game has three interfaces:

- `from ninetka_env import ninetka_v0`, then `ninetka_v0.env(num_players=3)`: PettingZoo AEC;
- `ninetka_v0.vector_env(1024, num_players=3)`: a batch of games for self-play;
- `gymnasium.make("ninetka_env:ninetka_env/Ninetka-v0", num_players=3)`: Gymnasium, the learner plays one seat.
"""

import gymnasium
import pettingzoo

__version__ = "0.1.0"
"""The version of the distribution `ninetka-env` with all its packages."""

_IDS = {"ninetka": "ninetka_env/Ninetka-v0", "go": "ninetka_env/Go-v0", "kropki": "ninetka_env/Kropki-v0"}
"""The environment id of each game, the same in Gymnasium and PettingZoo."""

for _game, _id in _IDS.items():
    gymnasium.register(
        id=_id,
        entry_point="ninetka_agents.one_seat:one_seat",
        vector_entry_point="ninetka_agents.one_seat:one_seat_vector",
        kwargs={"game": _game},
    )
    if hasattr(pettingzoo, "register"):  # PettingZoo 1.27 and later
        pettingzoo.register("aec", id=_id, entry_point=f"ninetka_env.{_game}_v0:env")

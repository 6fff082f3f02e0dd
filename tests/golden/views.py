"""The package's interfaces to a game, as views for checking playthroughs; see `golden.playthrough`."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
from golden.playthrough import Facts, View, to_facts

from ninetka_env.core.outcome import REWARDS, UNFINISHED
from ninetka_env.core.registry import Variant

GOLDEN_FOLDER = Path(__file__).parent
"""Folder of the playthroughs; each game has a subfolder."""


def public_module(variant: Variant) -> Any:
    """Return the public module of the variant's game, such as `ninetka_env.ninetka_v0`."""
    return importlib.import_module(f"ninetka_env.{variant.definition.version}")


def make_header(variant: Variant, seed: int) -> dict[str, Any]:
    """Return the header of a playthrough of the variant."""
    options = ",".join(f"{name}={value}" for name, value in variant.options.items())
    game = variant.game_class.start(variant, seed)
    random_actions = {"drawn": " ".join(map(game.action_name, game.drawn_actions()))} if variant.sizes.num_drawn else {}
    shape = " x ".join(map(str, variant.sizes.planes))
    return {
        "game": f"{variant.definition.name}:{options}", "version": variant.definition.version, "seed": seed,
        "actions": variant.num_actions, "planes": shape, **random_actions,
    }  # fmt: skip


def views_of(variant: Variant, seed: int) -> list[View]:
    """Return a view for every interface of the package; all play the same game of the variant."""
    environments = [kind(variant, reward, seed) for kind in (AecView, VectorView) for reward in REWARDS]
    return [GameView(variant.game_class.start(variant, seed)), *environments]


class GameView(View):
    """A `Game`; it has no planes."""

    name = "Game"

    def __init__(self, game: Any) -> None:
        self.game = game

    def facts(self) -> Facts:
        game, over = self.game, self.game.is_over
        none = [0] * game.num_players
        return to_facts(
            ply=game.ply,
            to_move=game.to_move,
            passed=game.passed,
            stage=game.definition().stages[game.stage],
            legal=game.legal_actions(),
            mask=game.legal_mask(),
            scores=game.scores(),
            winner=game.winner(),
            over=[over] * game.num_players,
            **{reward: game.returns(reward) if over else none for reward in REWARDS},
        )

    def play(self, action: int) -> None:
        self.game.play(action)

    def position(self) -> list[str] | None:
        return [line.rstrip() for line in str(self.game).split("\n")]

    def action_name(self, action: int) -> str | None:
        name = self.game.action_name(action)
        assert self.game.action_index(name) == action
        return str(name)


class AecView(View):
    """The PettingZoo environment `raw_env`."""

    def __init__(self, variant: Variant, reward: str, seed: int) -> None:
        self.name = f"raw_env(reward={reward!r})"
        self.reward = reward
        self.env = public_module(variant).raw_env(**variant.options, reward=reward)
        self.env.reset(seed=seed)

    def facts(self) -> Facts:
        env, agents = self.env, self.env.possible_agents
        seen = [env.observe(agent) for agent in agents]
        masks = [one["action_mask"] for one in seen]
        mover = agents.index(env.agent_selection)
        assert not any(mask.any() for seat, mask in enumerate(masks) if seat != mover)
        assert env.state().tolist() == seen[0]["observation"].tolist()
        assert [env.truncations[agent] for agent in agents] == [False] * len(agents)
        return to_facts(
            to_move=mover,
            legal=np.flatnonzero(masks[mover]),
            mask=masks[mover],
            planes=[one["observation"] for one in seen],
            over=[env.terminations[agent] for agent in agents],
            **{self.reward: [env.rewards[agent] for agent in agents]},
        )

    def play(self, action: int) -> None:
        self.env.step(action)

    def position(self) -> list[str] | None:
        return GameView(self.env.game).position()


class VectorView(View):
    """The second of three games of a `vector_env`; the other two always play their first legal action."""

    def __init__(self, variant: Variant, reward: str, seed: int) -> None:
        self.name = f"vector_env(3, reward={reward!r})"
        self.reward, self.variant = reward, variant
        self.env = public_module(variant).vector_env(3, **variant.options, reward=reward)
        self.env.reset(seed=seed - 1)  # game i has the stream of seed + i

    def facts(self) -> Facts:
        env, terminated = self.env, bool(self.env.terminated[1])
        ends = {"over": [terminated] * self.variant.num_players, self.reward: env.rewards[1]}
        if terminated:  # the next game has started, so only the results of the finished game are available
            return to_facts(scores=env.final_scores[1], winner=env.final_winner[1], **ends)
        assert env.final_winner[1] == UNFINISHED
        assert not env.final_scores[1].any()
        mover = int(env.to_move[1])
        views = [env.observations[1] if seat == mover else None for seat in range(self.variant.num_players)]
        state_facts = GameView(self.variant.game_class(env.games[1:2])).facts()
        del state_facts["passed"]  # not part of a state
        shown = to_facts(to_move=mover, mask=env.action_mask[1], legal=np.flatnonzero(env.action_mask[1]), planes=views)
        return state_facts | shown | to_facts(**ends)

    def play(self, action: int) -> None:
        actions = self.env.action_mask.argmax(axis=1)
        actions[1] = action
        self.env.step(actions)

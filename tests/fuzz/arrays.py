"""Fuzz state arrays given to agents, `observe` and `Game`: views, copies and files of states, and invalid arrays."""

from __future__ import annotations

import functools
import io
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from fuzz.inputs import REFUSED, Try, random_game, random_variant
from fuzz.trials import Findings, run_trial
from fuzz.values import unexpected_value

from ninetka_agents.agent import Agent, make_agent
from ninetka_env.api.observing import observe
from ninetka_env.core.batch import as_states
from ninetka_env.core.game import Game
from ninetka_env.core.registry import Variant, definition_of, get_definition
from ninetka_env.core.verbs import StateArray

ANY_GAME = (
    "random",
    "mcts:simulations=4",
    "mcts:simulations=4,rave",
    "mcts:simulations=4,reuse",
    "mcts:simulations=4,rave,local,playouts=heavy",
    "mcts:seconds=0.001",
)
"""Fast agents of every game."""
GAME_AGENTS = {
    "ninetka": (
        *("maxn:depth=1", "paranoid:nodes=9", "brs:seconds=0.001", "solver:nodes=50,simulations=4"),
        *("mcts:simulations=4,exact=9", "phases", "net"),
    ),
    "go": ("net",),
    "kropki": ("greedy", "exact:free=3", "net"),
}
"""Fast agents of a single game."""

agent_of = functools.cache(make_agent)


def same_states_in_another_form(games: StateArray, rng: random.Random) -> StateArray:
    """Return the same states in another form of array, such as a view or a copy; functions must accept all forms."""
    strided = np.zeros((len(games), 2), games.dtype)
    strided[:, 0] = games
    shifted = np.frombuffer(b"x" + games.tobytes(), games.dtype, offset=1)
    frozen = games.copy()
    frozen.flags.writeable = False
    file = io.BytesIO()
    np.save(file, games)
    file.seek(0)
    swapped = games.astype(games.dtype.newbyteorder())
    forms = [
        games,
        swapped,
        strided[:, 0],
        games[::-1].copy()[::-1],
        shifted,
        frozen,
        np.load(file),
        games.view(np.recarray),
    ]
    return rng.choice([*forms, np.ma.masked_array(games)])


def invalid_states(games: StateArray, others: list[StateArray], over: StateArray, rng: random.Random) -> Any:
    """Return a value that must be refused where states of unfinished games are expected.

    It is not a state array, or has another dtype or shape than `games`, or contains finished or all-zero states.
    """
    wrong = [
        *(games[0], games[:, None], games.reshape(1, 1, -1), games.view(np.uint8), games.tobytes(), games.tolist()),
        *(list(games), games.astype(object), np.array(games[0])),
        *(
            np.concatenate([games, over]),
            over,
            np.zeros_like(games),
            games[list(games.dtype.names or ())[:2]],
            *others,
            unexpected_value(rng),
        ),
    ]
    return wrong[rng.randrange(len(wrong))]


def array_shares(findings: Findings, games: list[str], rng: random.Random) -> Iterator[tuple[float, list[Try]]]:
    """Yield the trials of each game's state arrays, as (share, trials).

    `fuzz_inputs` spends this share of all its inputs on the trials.
    """
    variants = {name: get_definition(name).variant() for name in games}
    unfinished = {name: unfinished_states(variant, rng) for name, variant in variants.items()}
    for name, variant in variants.items():
        others = [*(records for other, records in unfinished.items() if other != name)]
        others.append(unfinished_states(random_variant(name, rng), rng))
        over = random_game(variant, rng).records
        agents = [*ANY_GAME, *GAME_AGENTS.get(name, ())]
        yield 0.02 / len(games), arrays(findings, variant, unfinished[name], others, over, agents)


def unfinished_states(variant: Variant, rng: random.Random) -> StateArray:
    """Return (N,) states of unfinished games."""
    games = [random_game(variant, rng, plies) for plies in (0, 3, 12, 30, 50)]
    return np.concatenate([game.records for game in games if not game.is_over])


def arrays(
    findings: Findings,
    variant: Variant,
    games: StateArray,
    others: list[StateArray],
    over: StateArray,
    agents: list[str],
) -> list[Try]:
    """Return trials of arrays for agents, `observe` and `Game`.

    Args:
        findings: where findings are added.
        variant: the variant of the games.
        games: (N,) states of unfinished games.
        others: states of other games and of other variants.
        over: (M,) states of finished games.
        agents: specs of the agents.
    """
    name = variant.definition.name

    def acting(rng: random.Random) -> None:
        spec = rng.choice(agents)
        agent = agent_of(spec, name)
        given = same_states_in_another_form(games[: rng.randrange(len(games) + 1)], rng)
        target = f"{name}: {spec.partition(':')[0]}.act"
        if not run_trial(findings, target, lambda: check_acts(agent, given), (), (spec, type(given), given.flags)):
            findings.add(target, "did not accept states of its game", (spec, type(given), given.dtype))
        wrong = invalid_states(games, others, over, rng)
        run_trial(findings, target, lambda: check_acts(agent, wrong), REFUSED, (spec, type(wrong), wrong))

    def observing(rng: random.Random) -> None:
        given = same_states_in_another_form(games, rng)
        run_trial(findings, f"{name}: observe", lambda: check_observed(given, games, variant), (), given.flags)
        wrong = invalid_states(games, others, over, rng)
        run_trial(findings, f"{name}: observe", lambda: observe(wrong, variant), REFUSED, (type(wrong), wrong))
        seats = unexpected_value(rng)
        run_trial(findings, f"{name}: observe", lambda: observe(games, variant, seats), REFUSED, (type(seats), seats))

    def wrapping(rng: random.Random) -> None:
        given = same_states_in_another_form(games[:1], rng)
        run_trial(findings, f"{name}: Game", lambda: check_wrapped(variant, given), (), given.flags)
        wrong = rng.choice([invalid_states(games[:1], others, over, rng), games[:0], games])
        run_trial(findings, f"{name}: Game", lambda: check_wrapped(variant, wrong), REFUSED, (type(wrong), wrong))

    return [acting, acting, observing, wrapping]


def check_acts(agent: Agent, games: Any) -> None:
    """Let an agent act; its actions must be legal, and the games must not change."""
    before = games.tobytes() if isinstance(games, np.ndarray) else None
    actions = agent.act(games, np.random.default_rng(0))
    assert before == (games.tobytes() if isinstance(games, np.ndarray) else None), "changed the games"
    assert actions.shape == (len(games),), f"actions of shape {actions.shape}"
    assert actions.dtype == np.int64, f"actions of dtype {actions.dtype}"
    for index, action in enumerate(actions.tolist()):
        game = game_at(games, index)
        assert not game.is_over, "acted in a game that is over"
        assert game.legal_mask()[action], f"illegal action {action}"


def game_at(games: StateArray, index: int) -> Game:
    """Return a copy of the game at index `index`."""
    states = as_states(games[index : index + 1]).copy()
    made: Game = definition_of(states.dtype).game_class(states)
    return made


def check_observed(given: StateArray, games: StateArray, variant: Variant) -> None:
    """Check that `given`, another form of the array `games`, has the same observations as `games`."""
    for one, other in zip(observe(given, variant), observe(games, variant), strict=True):
        assert (one == other).all(), "returns other observations"


def check_wrapped(variant: Variant, records: Any) -> None:
    """Make a `Game` from a state array, call its methods, and play."""
    game: Game = variant.game_class(records)
    assert game.legal_mask().shape == (game.num_actions,)
    assert len(game.scores()) == game.num_players
    assert str(game)
    assert repr(game)
    assert game.returns().sum() == 0
    twin = game.copy()
    if not game.is_over:
        twin.play(int(game.legal_actions()[0]))
        assert twin != game

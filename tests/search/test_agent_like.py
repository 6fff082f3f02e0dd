"""Test agents that derive from `Agent`, and objects that only have a name and a method `act`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from ninetka_agents import Agent, make_agent
from ninetka_agents.agent import SeatAgent, as_agent, check_agent_game
from ninetka_agents.one_seat import one_seat
from ninetka_env.core.game import Game
from ninetka_env.core.registry import load_variant
from ninetka_train.judging.arena import DEFAULT_BATCH, SEAT_AGENT_BATCH, make_match, play_games
from ninetka_train.judging.evaluate import evaluate
from ninetka_train.judging.schedule import DEFAULT_OPENING_PLIES

RANDOM = make_agent("random")


class Plain:
    """Has only the required members of an agent: `name` and `act`."""

    name = "plain"

    def act(self, games: Any, rng: np.random.Generator) -> Any:
        return RANDOM.act(games, rng)


@dataclass
class RecordingSeatAgent:
    """Plays a game at random and records the actions that it observes."""

    game: Game
    seen: list[int] = field(default_factory=list)
    is_closed: bool = False

    def act(self, rng: np.random.Generator) -> int:
        return int(RANDOM.act(self.game.records, rng)[0])

    def observe(self, action: int) -> None:
        self.game.play(action)
        self.seen.append(action)

    def close(self) -> None:
        self.is_closed = True


class PlainWithSeatAgents(Plain):
    """Also starts a seat agent for each game."""

    def __init__(self) -> None:
        self.seat_agents: list[RecordingSeatAgent] = []

    def act(self, games: Any, rng: np.random.Generator) -> Any:
        raise AssertionError("its seat agents act instead")

    def start(self, game: Game) -> SeatAgent:
        self.seat_agents.append(RecordingSeatAgent(game.copy()))
        return self.seat_agents[-1]


class Derived(Agent):
    """Derives from `Agent`."""

    name = "derived"

    def act(self, games: Any, rng: np.random.Generator) -> Any:
        return RANDOM.act(games, rng)


class DerivedWithSeatAgents(PlainWithSeatAgents, Agent):
    """Derives from `Agent` and starts seat agents."""

    has_seat_agents = True


KINDS = (Plain, Derived, PlainWithSeatAgents, DerivedWithSeatAgents)


def test_as_agent_returns_an_agent_unchanged():
    agent = Derived()
    assert as_agent(agent) is agent
    assert (agent.game, agent.repeats_openings, agent.has_seat_agents) == ("", False, False)
    assert agent.start(load_variant("ninetka").game_class.new()) is None
    with pytest.raises(TypeError, match="abstract"):
        Agent()  # type: ignore[abstract]


def test_wrapper_shares_the_name_of_the_object():
    plain = Plain()
    agent = as_agent(plain)
    plain.name = "renamed"
    assert agent.name == "renamed"
    agent.name = "again"
    assert plain.name == "again"
    assert (agent.game, agent.repeats_openings, agent.has_seat_agents) == ("", False, False)
    assert agent.start(load_variant("ninetka").game_class.new()) is None


def test_wrapper_passes_on_optional_attributes():
    odd: Any = PlainWithSeatAgents()
    odd.repeats_openings, odd.game = True, "go"
    agent = as_agent(odd)
    assert (agent.game, agent.repeats_openings, agent.has_seat_agents) == ("go", True, True)
    game = load_variant("ninetka").game_class.new()
    assert agent.start(game) is odd.seat_agents[0]
    check_agent_game(odd, "go")
    with pytest.raises(ValueError, match="agent 'plain' was made for go, not kropki"):
        check_agent_game(odd, "kropki")
    odd.game = "ninetka"
    assert make_match([odd, odd]).settings.opening_plies == DEFAULT_OPENING_PLIES
    assert make_match([odd, "random"]).settings.opening_plies == 0


class Nameless:
    def act(self, games: Any, rng: np.random.Generator) -> Any:
        return RANDOM.act(games, rng)


class Policy:
    """Like a module of torch or a model of Stable-Baselines3: it has other methods."""

    def __call__(self, planes: Any) -> Any:
        return planes

    def predict(self, observation: Any) -> Any:
        return 0, None

    def __repr__(self) -> str:
        return "Policy()"


def choose(games: Any, rng: np.random.Generator) -> Any:
    return RANDOM.act(games, rng)


NO_AGENTS = {
    Policy: r"<class '.*Policy'> is .*: create an instance, Policy\(\.\.\.\)$",
    Plain: r"<class '.*Plain'> is .*: create an instance, Plain\(\.\.\.\)$",
    Policy(): r"Policy\(\) is .*: it has no method act$",
    choose: r"<function choose at .*> is .*: it has no method act$",
    None: "None is .*: it has no method act$",
    3: "3 is .*: it has no method act$",
    Nameless(): "Nameless object at .*> is .*: it has no text as its name$",
}
SENTENCE = r"agent: .* is neither an agent's spec nor an agent, an object with a name and a method act\(games, rng\)"


@pytest.mark.parametrize("given", NO_AGENTS, ids=lambda one: type(one).__name__)
def test_what_is_no_agent_is_described(given):
    calls = [as_agent, lambda one: evaluate([one, "random"]), lambda one: make_match(["random", one])]
    for call in (*calls, lambda one: play_games([one])):
        with pytest.raises(ValueError, match=SENTENCE) as caught:
            call(given)
        caught.match(NO_AGENTS[given])
    if not isinstance(given, Nameless):  # an opponent needs no name
        for call in (lambda one: check_agent_game(one, "go"), lambda one: one_seat(opponents=[one])):
            with pytest.raises(ValueError, match=SENTENCE.replace("agent:", "opponents:", 1)):
                call(given)


def test_an_opponent_without_a_name_is_named_by_its_class():
    opponent: Any = Nameless()
    one_seat(opponents=opponent).reset(seed=0)
    opponent.game = "go"
    with pytest.raises(ValueError, match="agent 'Nameless' was made for go, not ninetka"):
        one_seat(opponents=opponent)


@pytest.mark.parametrize("given", ["random", Plain(), 3, None], ids=lambda one: type(one).__name__)
def test_agents_are_given_as_a_list(given):
    with pytest.raises(
        ValueError, match=r"agents=.*: expected a list of agents or specs, such as \['random', 'maxn'\]"
    ):
        evaluate(given)


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_agents_play_matches(kind):
    agent, has_seat_agents = kind(), issubclass(kind, PlainWithSeatAgents)
    assert make_match([agent, "random"]).settings.batch == (SEAT_AGENT_BATCH if has_seat_agents else DEFAULT_BATCH)
    results = play_games([agent, RANDOM], 2, 4, seed=3)
    expected = play_games([RANDOM, RANDOM], 2, 4, seed=3)
    assert (results.actions == expected.actions).all()
    assert results.settings.agents == (agent.name, "random")
    if has_seat_agents:
        assert len(agent.seat_agents) == 1 + 4
        assert all(one.is_closed for one in agent.seat_agents)
        lengths = (results.actions >= 0).sum(axis=1).tolist()
        assert [len(one.seen) for one in agent.seat_agents[1:]] == lengths
    figures = evaluate([agent, "random"], num_players=2, num_games=2, seed=1)
    assert [one.name for one in figures.agents] == [agent.name, "random"]


@pytest.mark.parametrize("kind", [Plain, Derived])
def test_all_kinds_of_agents_are_opponents(kind):
    env = one_seat(opponents=kind(), seat=0)
    observation, info = env.reset(seed=1)
    other = one_seat(opponents="random", seat=0)
    expected, _ = other.reset(seed=1)
    for _ in range(5):
        action = int(np.flatnonzero(info["action_mask"])[0])
        observation, _, _, _, info = env.step(action)
        expected, *_ = other.step(action)
        assert (observation == expected).all()

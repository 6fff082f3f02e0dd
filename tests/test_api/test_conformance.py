"""Tests of the conformance kit: correct games pass, and the intended check fails for each broken game."""
# ruff: noqa: N805 (the classes group functions that are not methods)

import dataclasses
import re
from types import SimpleNamespace

import numpy as np
import pytest
from toy import tictactoe as toy

from ninetka_agents import conformance as full
from ninetka_agents.search.uct import search
from ninetka_env.api.conformance import CHECKS, ConformanceError, check
from ninetka_env.core.jit import jit
from ninetka_env.core.options import Choice
from ninetka_env.core.random_streams import draw_below
from ninetka_env.core.registry import Limits, register
from ninetka_env.core.verbs import VERB_ARITY


@pytest.mark.parametrize("name", CHECKS)
def test_tictactoe_passes(name):
    check("tictactoe", games=3, only=[name])


NINETKA = [
    "ninetka",
    "ninetka:num_players=2,neutral_placement=random,auto_pass=False",
    "ninetka:num_players=3,turn_order=continue",
    "ninetka:num_players=3,neutral_placement=random,auto_pass=False",
    "ninetka:num_players=4,turn_order=continue,auto_pass=False",
    "ninetka:num_players=4,neutral_placement=random",
]


@pytest.mark.parametrize("spec", NINETKA)
def test_ninetka_passes(spec):
    check(spec, games=1)


@pytest.mark.slow
@pytest.mark.parametrize("spec", [*NINETKA, pytest.param("tictactoe", marks=pytest.mark.exhaustive)])
def test_searches_of_correct_games_pass(spec):
    full.check(spec, games=2, only=["search"])


# Broken games. Each class describes what differs from tic-tac-toe: functions, the class `Game`, or fields in `changes`.


class MaskLacksASquare:
    check, message = "masks", r"action 8 \(c3\): the mask has 0, is_legal returns True"

    @jit
    def write_legal_mask(game, mask):
        for square in range(8):
            mask[square] = toy.is_legal(game, square)
        mask[8] = 0


class MaskOfTheWrongSeat:
    check, message = "masks", "the mask has 0, is_legal returns True"

    @jit
    def write_legal_mask(game, mask):
        for square in range(9):
            mask[square] = game.to_move == 0 and toy.is_legal(game, square)


class MaskIsNotCleared:
    check, message = "masks", "the mask has 7, is_legal returns True|False"

    @jit
    def write_legal_mask(game, mask):
        for square in range(9):
            if toy.is_legal(game, square):
                mask[square] = 1


class LegalOutOfRange:
    check, message = "masks", "is_legal allows action 9, but there are 9 actions"

    @jit
    def is_legal(game, action):
        return action == 9 or toy.is_legal(game, action)


class IsLegalChangesTheState:
    check, message = "illegal", "illegal action . changes the game, in dummy"

    @jit
    def is_legal(game, action):
        game.dummy = 1
        return toy.is_legal(game, action)


class IllegalActionIsRemembered:
    check, message = "illegal", "after illegal action"

    class Game(toy.Game):
        __slots__ = ()

        def play(self, action):
            self.last_action = 5
            super().play(action)


class IllegalActionIsNotNamed:
    check, message = "illegal", "the error does not name it: no"

    class Game(toy.Game):
        __slots__ = ()

        def describe_illegal(self, action):
            return "no"


class ObservingChangesTheState:
    check, message = "observations", "observing changes the game, in dummy"

    @jit
    def write_observation(game, viewer, planes):
        game.dummy = viewer
        toy.write_observation(game, viewer, planes)


class PlaneIsNotWritten:
    check, message = "observations", "keeps old contents of the array; the first plane that differs is 2"

    @jit
    def write_observation(game, viewer, planes):
        for square in range(9):
            planes[square] = game.board[square] == viewer + 1
            planes[9 + square] = game.board[square] == 2 - viewer


class PlaneOfSeats:
    check, message = "observations", r"seat 0 observes \[2\]: expected 0 and 1"

    @jit
    def write_observation(game, viewer, planes):
        toy.write_observation(game, viewer, planes)
        for square in range(9):
            planes[square] = game.board[square]


class WritesBehindThePlanes:
    check, message = "observations", "the elements after the planes"
    changes = SimpleNamespace(sizes={"planes": (2, 3, 3)})  # `write_observation` writes three


class SlowPlaneChanges:
    check, message = (
        "slow planes",
        "slow and fast planes differ from the observation; the first plane that differs is 1",
    )

    @jit
    def write_slow_planes(game, viewer, planes):
        toy.write_observation(game, viewer, planes)

    @jit
    def write_fast_planes(game, viewer, planes):
        for square in range(9):
            planes[square] = game.board[square] == viewer + 1


@jit
def write_observation_bits(game, viewer, words):
    words[0] = 511 << 18
    for square in range(9):
        words[0] |= np.uint32(int(game.board[square] == viewer + 1) << square)
        words[0] |= np.uint32(int(game.board[square] == 2 - viewer) << 9 + square)


class UnusedBitIsSet:
    check, message = "bits", "bit of the observation of seat 0, element 27 of 27: found 1$"

    @jit
    def write_observation_bits(game, viewer, words):
        write_observation_bits(game, viewer, words)
        words[0] |= np.uint32(1 << 27)

    @jit
    def write_legal_bits(game, words):
        words[0] = 0


class MaskOfBitsIsEmpty:
    check, message = "bits", "bit of the mask, element 0 of 9: found 0$"

    write_observation_bits = write_observation_bits

    @jit
    def write_legal_bits(game, words):
        words[0] = 0


class DrawIsPaidAsAWin:
    check, message = "returns", r"the game is drawn, but returns\('score'\) = \[1.0, -1.0\] have a single best seat"

    @jit
    def write_score_rewards(game, rewards):
        winner = toy.winner_of(game)
        rewards[0] = -1.0 if winner == 1 else 1.0
        rewards[1] = -rewards[0]


class RewardsDoNotSumToZero:
    check, message = "returns", r"returns\('score'\) = \[1.0, 0.0\] do not sum to zero"

    @jit
    def write_score_rewards(game, rewards):
        rewards[:] = 0
        rewards[0] = 1


class LoserHasTheScore:
    check, message = "returns", r"seat . wins, but scores\(\) = "

    @jit
    def write_scores(game, scores):
        scores[0] = toy.winner_of(game) == 1
        scores[1] = toy.winner_of(game) == 0


class PickleLosesTheEvent:
    check, message = "copies", "pickle: event: found None, expected Event"

    class Game(toy.Game):
        __slots__ = ()

        def __getstate__(self):
            return (*super().__getstate__()[:3], None)


class CopiesShareTheirState:
    check, message = "copies", "copy: playing in the copy changes the game, in board, to_move, plies"

    class Game(toy.Game):
        __slots__ = ()

        def copy(self):
            return type(self)(self.records)


class Endless:
    check, message = "length", "ply 9: the game is not over after 9 actions"

    @jit
    def is_over(game):
        return False

    @jit
    def is_legal(game, action):
        return 0 <= action < 9

    @jit
    def write_legal_mask(game, mask):
        mask[:] = 1


class LongerThanMaxPlies:
    check, message = "length", "ply 4: the game is not over after 4 actions"
    changes = SimpleNamespace(sizes={"max_plies": 4})


class PliesJump:
    check, message = "length", "ply 1: ply 2 follows ply 0"

    class Game(toy.Game):
        __slots__ = ()

        @property
        def ply(self):
            return 2 * super().ply


class StartLeavesAField:
    """The states of this broken game have an additional field, which `start` does not write."""

    check, message = "start", "start keeps old contents of the state, in startleavesafield, dummy"
    own_dtype = True


class StartIsNotDeterministic:
    check, message = "seeds", "two games started from the same seed differ, in dummy"

    @jit
    def start(game, options, streams, index):
        toy.start(game, options, streams, index)
        game.dummy = int(100 * np.random.random())  # noqa: NPY002 (a separate source of random numbers is the defect)


class StartAdvancesAnotherStream:
    check, message = "seeds", "start advances the stream of another game"

    @jit
    def start(game, options, streams, index):
        toy.start(game, options, streams, index)
        game.dummy = draw_below(streams, index, 1)
        if len(streams) > 1:
            draw_below(streams, 1, 1)


class TextLosesTheTurn:
    check, message = "text", r"ply 1: from_text\(str\(game\)\) differs from the game, in to_move"

    class Game(toy.Game):
        __slots__ = ()

        @classmethod
        def from_text(cls, text):
            found = super().from_text(text)
            found.records["to_move"] = 0
            return found


class TwoActionsHaveOneName:
    check, message = "names", "action 1 is called 'a': expected one word that is unique"

    class Game(toy.Game):
        __slots__ = ()

        def action_name(self, action):
            return super().action_name(action)[:1].replace("b", "a")

        def action_index(self, name):
            return 0


class NumDrawnIsWrong:
    check, message = "records", "number of actions drawn before the first turn: found 0, expected 3"
    changes = SimpleNamespace(sizes={"num_drawn": 3})


class ChoiceIsAnotherAction:
    check, message = "choices", "the actions of the choices: found"

    @jit
    def choice_action(game, choice):
        return (choice + 1) % 9


class ChoicePlaysAnotherAction:
    check, message = "choices", "choice 0 and its action 0 differ, in board"

    @jit
    def play_choice(game, choice):
        return toy.play(game, 8 - choice if game.board[8 - choice] == 0 else choice)


class ForcedIsNotForced:
    check, message = "forced", r"the forced action, compared with the legal actions: found \[.\], expected \[., .\]"

    @jit
    def forced_action(game):
        if game.plies == 7:
            for square in range(9):
                if toy.is_legal(game, square):
                    return square
        return -1


class PreparingChangesTheTurn:
    check, message = "forced", "to_move of a game prepared for search, where no action is forced: found 1, expected 0"

    @jit
    def prepare_root(game):
        game.to_move = 1


class RandomIsBiased:
    check, message = "random", "of .* random actions"

    @jit
    def random_action(game, streams, index):
        action = draw_below(streams, index, 10) - 1
        while not toy.is_legal(game, action):
            action = (action + 1) % 9
        return action


class PlayoutStopsEarly:
    check, message = "playout", "the game is not over after a playout"

    @jit
    def playout(game, streams, index):
        return


class NoSymmetry:
    check, message = "symmetries", "image"
    changes = SimpleNamespace(symmetries=lambda options: np.array([range(9), [1, 0, *range(2, 9)]]))


class NoPermutation:
    check, message = "symmetries", "sorted actions of each symmetry"
    changes = SimpleNamespace(symmetries=lambda options: np.array([range(9), [0] * 9]))


class TargetIsNotWritten:
    check, message = "targets", "targets written to an array with other contents"
    changes = SimpleNamespace(targets=2)

    @jit
    def write_targets(game, targets):
        targets[0] = -1


class StageOutOfRange:
    check, message = "sizes", r"stage 1: expected one of 0\.\.0"

    @jit
    def stage(game):
        return 1


class OptionIsNotReadBack:
    check, message = "options", "size, written and parsed: found 1, expected '1'"
    changes = SimpleNamespace(options=(Choice("size", 1, "of the board", (1, "1")),))
    own_dtype = True


class EventDoesNotEndTheGame:
    check, message = "events", "is_over, number of legal actions: found"

    class Game(toy.Game):
        __slots__ = ()

        @property
        def is_over(self):
            return self.event is None and super().is_over


class GameKnowsAnotherWinner:
    check, message = "batch", "final winner of game . of a batch"

    class Game(toy.Game):
        __slots__ = ()

        def winner(self):
            return 1 - super().winner() if super().winner() >= 0 else 0


class EnvironmentShowsSeats(PlaneOfSeats):
    check, message = "aec", "the observation of seat 0 is not in its space"


class LearnerIsPaidAnothersReward:
    check, message = "one seat", "the learner's reward: found"

    class Game(toy.Game):
        __slots__ = ()

        def returns(self, reward="win"):
            return super().returns(reward)[::-1] - 3


class RenderedTextIsEmpty:
    check, message = "pettingzoo", r"render\(\) in mode 'ansi' returns ''"

    class Game(toy.Game):
        __slots__ = ()

        def __str__(self):
            return ""


class EnvironmentForgetsItsGame:
    check, message = "running copies", "of a running environment: its game differs"

    class Game(toy.Game):
        __slots__ = ()

        def __setstate__(self, state):
            super().__setstate__((np.zeros_like(state[0]), *state[1:]))


class IllegalStepIsTaken:
    check, message = "illegal steps", "illegal action . is played"

    class Game(toy.Game):
        __slots__ = ()

        def play(self, action):
            if 0 <= action < 9:
                super().play(int(self.legal_actions()[0]))
            else:
                super().play(action)


class CopySharesMemory:
    check, message = "positions", "position: the game is over"

    class Game(toy.Game):
        __slots__ = ()

        def copy(self):
            return type(self)(self.records)


BROKEN_GAMES = [one for one in list(globals().values()) if isinstance(one, type) and hasattr(one, "message")]


def variant_of(broken_game):
    """Return the variant of a broken game; the game gets its own dtype if it has its own compiled functions."""
    own = {name: getattr(broken_game, name) for name in VERB_ARITY if hasattr(broken_game, name)}
    changes = vars(getattr(broken_game, "changes", SimpleNamespace())).copy()
    sizes, targets = changes.pop("sizes", {}), changes.pop("targets", 0)
    name, dtype, game = "tictactoe", toy.TICTACTOE, getattr(broken_game, "Game", toy.Game)
    if own or hasattr(broken_game, "own_dtype"):
        name = broken_game.__name__.lower()
        dtype = np.dtype((np.record, np.dtype([(name, np.int8), ("dummy", np.int8), *toy.FIELDS])))
        game = type("Game", (game,), {"name": name, "__slots__": ()})
    globals()[f"{broken_game.__name__}Game"] = game
    sizes_of_variant = toy.DEFINITION.sizes({})._replace(dtype=dtype, **sizes)
    definition = dataclasses.replace(
        toy.DEFINITION,
        name=name,
        sizes=lambda options: sizes_of_variant,
        dtypes={dtype: Limits(2, 9, 9, targets)},
        compiled=tuple({**toy.DEFINITION.functions, **own}.values()),
        class_path=f"{__name__}:{broken_game.__name__}Game",
        **changes,
    )
    return (register(definition) if name != "tictactoe" else definition).variant()


@pytest.mark.usefixtures("toy_registry")
@pytest.mark.parametrize("broken_game", BROKEN_GAMES, ids=lambda one: one.__name__)
def test_the_intended_check_finds_the_defect(broken_game):
    variant = variant_of(broken_game)
    with pytest.raises(ConformanceError, match=rf"^{broken_game.check}: {variant}, seed \d+, ply \d+: ") as caught:
        check(variant, games=4, only=[broken_game.check])
    assert re.search(broken_game.message, str(caught.value))
    assert len(str(caught.value).splitlines()) <= 2


def test_every_check_refuses_something():
    assert {broken_game.check for broken_game in BROKEN_GAMES} == set(CHECKS)


@pytest.mark.exhaustive
def test_a_search_that_plays_badly_is_refused(monkeypatch):
    def worst(game, simulations, rng):
        found = search(game, simulations, rng)
        return found._replace(visits=np.where(found.visits > 0, found.visits.max() + 1 - found.visits, 0))

    monkeypatch.setattr(full, "search", worst)
    with pytest.raises(
        ConformanceError, match=r"^search: tictactoe, seed 0, ply 3: the tree search plays .* best are a1, a3"
    ):
        full.check("tictactoe", only=["search"])


# The kit itself


def test_the_full_kit_has_all_checks():
    assert [*CHECKS, "search"] == list(full.CHECKS)


def test_unknown_checks_and_games_are_refused():
    with pytest.raises(ValueError, match="check 'colour': expected some of options, sizes, "):
        check("tictactoe", only=["masks", "colour"])
    with pytest.raises(ValueError, match="unknown game 'tictactow'"):
        check("tictactow")
    with pytest.raises(ValueError, match="unknown option 'size'"):
        check("ninetka", size=3)


def test_options_may_be_keyword_arguments():
    check("ninetka", num_players=3, games=1, only=["sizes"])

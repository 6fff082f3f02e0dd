"""Checks of text and copies: names of actions, text of positions, game records, copies, pickles.

The format of game records is in `ninetka_env.api.records`, the text of a position in `text.py` of each game.
"""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from ninetka_env.api.aec import GameAEC, wrapped
from ninetka_env.api.conformance.case import Case
from ninetka_env.api.record_files import read_records
from ninetka_env.api.records import PASSED, GameRecord, format_record
from ninetka_env.api.vector import GameVectorEnv
from ninetka_env.core.game import EVENTS, Event, Game

COPIERS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),
    "copy.deepcopy": copy.deepcopy,
}
INVALID_NAMES = ("", "?", "no such action", "\N{SUPERSCRIPT TWO}")


def check_names(case: Case) -> None:
    """Check that action names are unique single words, and that `action_index` reads them and rejects other words."""
    game, seen = case.start(), set()
    for action in range(case.variant.num_actions):
        name = game.action_name(action)
        if len(name.split()) != 1 or name.strip() != name or name == PASSED or name in seen:
            case.fail(f"action {action} is called {name!r}: expected one word that is unique")
        seen.add(name)
        case.check_equal(game.action_index(name), action, f"the action called {name!r}")
    for word in INVALID_NAMES:
        try:
            game.action_index(word)
        except ValueError:
            continue
        case.fail(f"action_index({word!r}) does not raise ValueError")


def check_text(case: Case) -> None:
    """Check that `from_text` reads the output of `str` and raises `ValueError` for other text."""
    for game in case.positions():
        text = str(game)
        again = case.variant.game_class.from_text(text)
        if again != game:  # `==` of a class may ignore fields that the text does not contain
            case.check_same_states(again.records, game.records, "from_text(str(game)) differs from the game")
            case.fail("from_text(str(game)) does not equal the game")
        case.check_equal(str(again), text, "text of from_text(str(game))")
        if not repr(game):
            case.fail("repr(game) is empty")
    for text in ("", "no such game"):
        try:
            case.variant.game_class.from_text(text)
        except ValueError:
            continue
        case.fail(f"from_text({text!r}) does not raise ValueError")


# Game records


def check_records(case: Case) -> None:
    """Check that reading a written game record gives an equal record, also with random draws and events."""
    for seed in case.seeds():
        start, actions = case.start(), _play(case, np.random.default_rng(seed))
        drawn = start.drawn_actions()
        case.check_equal(len(drawn), case.variant.sizes.num_drawn, "number of actions drawn before the first turn")
        case.check_same_states(
            start.start_from(case.variant, drawn).records, start.records, "start_from gives another start"
        )
        _check_record(case, GameRecord.of(actions, case.variant, drawn=drawn, tags={"seed": str(seed)}))
        for kind in EVENTS:
            event, part = Event(kind, seed % case.variant.num_players), actions[: len(actions) // 2]
            _check_record(case, GameRecord.of(part, case.variant, drawn=drawn, event=event))


def _play(case: Case, rng: np.random.Generator) -> list[int]:
    """Play a random game and return its actions."""
    actions = []
    for game in case.play(lambda legal: int(rng.choice(legal))):
        if game.last_action is not None:
            actions.append(game.last_action)
    return actions


def _check_record(case: Case, record: GameRecord) -> None:
    text = format_record(record)
    found = list(read_records(io.StringIO(f"{text}\n{text}")))
    case.check_equal(len(found), 2, "number of records in a text of two")
    for name in ("variant", "actions", "drawn", "event", "winner", "scores", "tags"):
        case.check_equal(getattr(found[1], name), getattr(record, name), f"{name} of the record that was read")
    case.check_equal(found[1].final() == record.final(), True, "whether the final positions are equal")


# Copies


def check_copies(case: Case) -> None:
    """Check that copies and pickles of games are equal to the original and independent of it."""
    copiers: dict[str, Callable[[Any], Any]] = {**COPIERS, "copy": lambda game: game.copy()}
    for game in case.positions():
        ended = game.copy()
        if not game.is_over:
            ended.resign()
        for how, copier in copiers.items():
            for one in (game, ended):
                _check_copy(case, one, copier(one), how)


def _check_copy(case: Case, game: Game, twin: Game, how: str) -> None:
    case.check_equal(type(twin), type(game), f"{how}: class")
    case.check_same_states(twin.records, game.records, f"{how}: the copy differs")
    for name in ("event", "last_action", "passed"):
        case.check_equal(getattr(twin, name), getattr(game, name), f"{how}: {name}")
    case.check_equal((twin == game, hash(twin)), (True, hash(game)), f"{how}: equal, hash")
    if not game.is_over:
        before = game.records.copy()
        twin.play(int(case.legal_actions(twin)[0]))
        case.check_same_states(game.records, before, f"{how}: playing in the copy changes the game")


def check_running_copies(case: Case) -> None:
    """Check that copies and pickles of running environments continue like the original."""
    for how, copier in COPIERS.items():
        for make in (GameAEC, lambda variant: wrapped(GameAEC(variant))):
            env = make(case.variant)
            env.reset(seed=case.seed)
            _play_half(case, env)
            twin = copier(env)
            while env.agents:
                _compare(case, env, twin, how)
                action = None if env.unwrapped.game.is_over else int(env.unwrapped.game.legal_actions()[0])
                env.step(action)
                twin.step(action)
        _check_running_batch(case, copier, how)


def _play_half(case: Case, env: Any) -> None:
    """Play about half a game."""
    game, plies = env.unwrapped.game, len(_play(case, np.random.default_rng(case.seed))) // 2
    case.ply = 0
    while not game.is_over and case.ply < plies:
        env.step(int(game.legal_actions()[-1]))
        case.ply += 1


def _compare(case: Case, env: Any, twin: Any, how: str) -> None:
    one, other = env.unwrapped.game, twin.unwrapped.game
    case.check_same_states(other.records, one.records, f"{how} of a running environment: its game differs")
    for name in ("agents", "agent_selection", "rewards", "terminations"):
        case.check_equal(getattr(twin, name), getattr(env, name), f"{how} of a running environment: {name}")


def _check_running_batch(case: Case, copier: Callable[[Any], Any], how: str) -> None:
    batch = GameVectorEnv(2, case.variant, num_threads=1)
    batch.reset(seed=case.seed)
    twin = copier(batch)
    for _ in range(case.variant.sizes.max_plies):
        actions = batch.action_mask.argmax(axis=1)
        batch.step(actions)
        twin.step(actions)
        for name in ("games", "observations", "action_mask", "to_move", "rewards", "terminated", "final_winner"):
            case.check_equal(getattr(twin, name), getattr(batch, name), f"{how} of a running batch: {name}")

"""Tests of the registry of games: specs, options, refused definitions, and a game from outside the package."""

from __future__ import annotations

import copy
import importlib
import inspect
import io
import os
import pickle
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import get_args, get_type_hints

import gymnasium
import numba
import numpy as np
import pettingzoo
import pytest
import toy_game as toy
from ninetka.positions import ALL_OPTIONS
from pettingzoo.test import api_test

from ninetka_agents import make_agent
from ninetka_env import go_v0, kropki_v0, ninetka_v0
from ninetka_env.api.aec import GameAEC
from ninetka_env.api.one_seat import OneSeatEnv
from ninetka_env.api.record_files import read_records, replay_text
from ninetka_env.api.records import GameRecord, format_record
from ninetka_env.api.rendering import render_ansi, render_rgb
from ninetka_env.core.outcome import DRAWN
from ninetka_env.core.registry import (
    Variant,
    definition_of,
    get_definition,
    known_games,
    limits_of,
    load_variant,
    register,
)
from ninetka_env.core.verbs import is_over, writes_bits
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.rules import STATE_DTYPE

pytestmark = pytest.mark.usefixtures("toy_registry")


# Games by name


@pytest.mark.parametrize(
    ("spec", "changed"),
    [
        ("ninetka", {}),
        ("ninetka:", {}),
        ("ninetka:num_players=2", {}),
        ("ninetka:num_players=3", {"num_players": 3}),
        ("ninetka:turn_order=continue,num_players=4", {"num_players": 4, "turn_order": "continue"}),
        ("ninetka:neutral_placement=random,", {"neutral_placement": "random"}),
        ("ninetka:auto_pass=False", {"auto_pass": False}),
        ("ninetka:auto_pass=false", {"auto_pass": False}),
        ("ninetka:auto_pass=true", {}),
    ],
)
def test_a_spec_names_a_game_and_its_options(spec, changed):
    defaults = {"num_players": 2, "neutral_placement": "players", "turn_order": "restart", "auto_pass": True}
    variant = load_variant(spec)
    assert variant.options == defaults | changed
    assert variant == get_definition("ninetka").variant(**changed)
    assert variant == load_variant("ninetka", **changed)
    assert (variant.num_players, variant.num_actions, variant.dtype) == (
        variant.options["num_players"],
        122,
        STATE_DTYPE,
    )


def test_the_default_game_is_9tka():
    assert load_variant() == load_variant("ninetka")
    assert load_variant().definition.title == "9tka"


def test_keyword_options_override_those_of_the_spec():
    assert (
        load_variant("ninetka:num_players=3,auto_pass=false", num_players=4).spec
        == "ninetka:num_players=4,auto_pass=False"
    )


def test_load_variant_accepts_a_variant():
    variant = load_variant("ninetka:num_players=3")
    assert load_variant(variant) is variant
    assert load_variant(variant, auto_pass=False) == load_variant("ninetka:num_players=3,auto_pass=False")
    assert variant.replace_options(num_players=2) == load_variant()


@pytest.mark.parametrize("chosen", ALL_OPTIONS, ids=str)
def test_a_variant_survives_its_spec_its_codes_and_pickle(chosen):
    variant = load_variant("ninetka", **chosen._asdict())
    assert dict(variant.options) == chosen._asdict()
    copies = [
        load_variant(variant.spec),
        load_variant(str(variant)),
        variant.definition.variant_from_codes(variant.codes),
        copy.deepcopy(variant),
        *(pickle.loads(pickle.dumps(variant, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)),
    ]
    for twin in copies:
        assert type(twin) is Variant
        assert (twin, hash(twin), twin.spec, twin.codes) == (variant, hash(variant), variant.spec, variant.codes)
        assert twin.definition is variant.definition
        assert (twin.options, twin.sizes) == (variant.options, variant.sizes)


def test_different_options_are_different_variants():
    variants = {load_variant("ninetka", **chosen._asdict()) for chosen in ALL_OPTIONS}
    assert len(variants) == len({variant.spec for variant in variants}) == len(ALL_OPTIONS)
    assert load_variant() != "ninetka"


def test_the_options_of_a_variant_cannot_be_changed():
    with pytest.raises(TypeError):
        load_variant().options["num_players"] = 3


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", r"unknown game '': known are .*ninetka"),
        ("chess", r"unknown game 'chess': known are .*ninetka"),
        ("ninetke", r"unknown game 'ninetke': known are .*ninetka.*\(did you mean 'ninetka'\?\)"),
        ("Ninetkaa", r"unknown game 'Ninetkaa'.*did you mean 'ninetka'"),
        ("KROPKY", r"unknown game 'KROPKY'.*did you mean 'kropki'"),
        ("ninetka9", r"unknown game 'ninetka9': known are [^(]*$"),
        ("8tka", r"unknown game '8tka': known are .*ninetka"),
        ("x" * 1000, r"unknown game 'x{79} \.\.\.: known are"),
        ("ninetka:players=3", r"unknown option 'players', there are num_players, neutral_placement, turn_order, "
                              r"auto_pass \(did you mean 'num_players'\?\)"),
        ("ninetka:=3", r"ninetka: unknown option '', there are num_players"),
        ("ninetka:reward=win", r"ninetka: unknown option 'reward', there are num_players"),
        ("ninetka:3", r"ninetka: expected option=value, found '3'"),
        ("ninetka:num_players=2,continue", r"ninetka: expected option=value, found 'continue'"),
        ("ninetka:num_players=2,num_players=3", r"ninetka: option 'num_players' is given twice"),
        ("ninetka:num_players=2,num_players=2", r"ninetka: option 'num_players' is given twice"),
        ("ninetka:num_players=5", r"num_players='5': expected one of 2, 3, 4"),
        ("ninetka:num_players=", r"num_players='': expected one of 2, 3, 4"),
        ("ninetka:turn_order=Restart", r"turn_order='Restart': expected one of 'restart', 'continue'"),
        ("ninetka:auto_pass=1", r"auto_pass='1': expected one of False, True"),
        (None, r"game=None: expected text, such as 'ninetka'"),
        (3, r"game=3: expected text"),
    ],
)  # fmt: skip
def test_a_wrong_spec_is_named_with_what_is_known(spec, message):
    with pytest.raises(ValueError, match=message):
        load_variant(spec)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_players": 5}, r"num_players=5: expected one of 2, 3, 4"),
        ({"num_players": "2"}, r"num_players='2': expected one of 2, 3, 4"),
        ({"auto_pass": 1}, r"auto_pass=1: expected one of False, True"),
        ({"komi": 6.5}, r"ninetka: unknown option 'komi', there are num_players"),
        ({"turn_orders": "restart"}, r"unknown option 'turn_orders'.*did you mean 'turn_order'"),
    ],
)
def test_a_wrong_option_is_named_with_the_allowed_values(options, message):
    for choose in (get_definition("ninetka").variant, lambda **options: load_variant("ninetka", **options)):
        with pytest.raises(ValueError, match=message):
            choose(**options)


def test_lookups_in_the_registry():
    assert "ninetka" in known_games()
    assert known_games() == sorted(known_games())
    definition = get_definition("ninetka")
    assert definition_of(STATE_DTYPE) is definition
    assert limits_of(STATE_DTYPE) == definition.dtypes[STATE_DTYPE]
    assert definition.game_class is Game
    assert pickle.loads(pickle.dumps(definition)) is definition
    with pytest.raises(ValueError, match=r"no game has the dtype .*: known games are .*ninetka"):
        definition_of(np.dtype([("x", np.int8)]))


def test_an_environments_id_is_the_same_in_both_registries():
    def named(registry):
        return {name for name in registry if name.startswith("ninetka_env/")}

    assert "ninetka_env/Ninetka-v0" in named(gymnasium.registry)
    if hasattr(pettingzoo, "aec_registry"):  # PettingZoo 1.27 and later
        assert named(pettingzoo.aec_registry) == named(gymnasium.registry)
        made = [make("ninetka_env/Ninetka-v0") for make in (gymnasium.make, partial(pettingzoo.make, "aec"))]
        assert [type(env.unwrapped) for env in made] == [OneSeatEnv, GameAEC]


@pytest.mark.parametrize("name", ["ninetka", "go", "kropki"])
def test_functions_take_the_options_of_their_game(name):
    definition, public = get_definition(name), importlib.import_module(f"ninetka_env.{name}_v0")
    expected = {one.name: one.default for one in definition.options}
    for function, before in ((public.env, 0), (public.raw_env, 0), (public.vector_env, 1), (public.Game.new, 0)):
        shown = list(inspect.signature(function).parameters.values())[before : before + len(expected)]
        assert {one.name: one.default for one in shown} == expected
        assert all(one.name in function.__doc__ for one in shown)
        written = inspect.signature(inspect.unwrap(getattr(function, "__func__", function))).parameters
        typed = get_args(get_type_hints(function)["options"])[0].__annotations__
        assert expected.keys() == typed.keys() | (expected.keys() & written.keys())
        assert all(written[key].default == expected[key] for key in expected.keys() & written.keys())
        with pytest.raises(TypeError, match=rf"{function.__name__}\(\) got an unexpected keyword argument 'colour'"):
            function(colour="red")


def test_options_may_be_given_by_position():
    assert go_v0.vector_env(1, 6.5, "positional").variant.options["ko"] == "positional"
    assert kropki_v0.raw_env(12, 11, "immediate").observation_space("player_0")["observation"].shape == (14, 11, 12)
    assert Game.new(3).num_players == 3
    with pytest.raises(TypeError, match=r"Game.new\(\) takes at most 2 positional arguments but 3 were given"):
        Game.new(3, "random")
    with pytest.raises(TypeError, match=r"Game.new\(\) got multiple values for argument 'num_players'"):
        Game.new(3, num_players=2)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'num_envs'"):
        ninetka_v0.vector_env(num_players=3)


# Registering games


def test_a_registered_game_is_known():
    assert "toy" not in known_games()
    definition = register(toy.definition())
    assert "toy" in known_games()
    assert get_definition("toy") is definition
    assert definition_of(toy.TOY) is definition
    assert register(definition) is definition  # registering again is allowed


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        ("toy", {"num_players": 2, "stones": 12, "last": "wins"}),
        ("toy:stones=70", {"num_players": 2, "stones": 70, "last": "wins"}),
        ("toy:last=loses,stones=1,num_players=3", {"num_players": 3, "stones": 1, "last": "loses"}),
    ],
)
def test_options_may_be_whole_numbers(spec, options):
    register(toy.definition())
    variant = load_variant(spec)
    assert variant.options == options
    assert variant.codes == (options["num_players"] - 2, options["stones"], int(options["last"] == "loses"))
    assert load_variant(variant.spec) == pickle.loads(pickle.dumps(variant)) == variant


@pytest.mark.parametrize("stones", ["0", "71", "1.5", "many", "", "-1", "1e1"])
def test_a_number_out_of_bounds_is_named(stones):
    register(toy.definition())
    with pytest.raises(ValueError, match=r"stones=.*expected an integer (of at least 1 and at most 70|1\.\.70)"):
        load_variant(f"toy:stones={stones}")


def test_variants_of_different_games_are_different():
    register(toy.definition())
    assert load_variant("toy") != load_variant("ninetka")
    assert hash(load_variant("toy")) != hash(load_variant("ninetka"))


def assert_refused(definition, message):
    """Check that `register` raises with this message and that the game stays unknown."""
    before = known_games()
    with pytest.raises(ValueError, match=message):
        register(definition)
    assert known_games() == before
    if definition.name == "toy":
        with pytest.raises(ValueError, match="unknown game 'toy'"):
            get_definition("toy")


def test_another_game_of_the_same_name_is_refused():
    assert_refused(toy.definition(name="ninetka"), "game 'ninetka': another game of that name is registered already")
    register(toy.definition())
    with pytest.raises(ValueError, match="game 'toy': another game of that name is registered already"):
        register(toy.definition())


def test_the_dtype_of_another_game_is_refused():
    limits = toy.definition().dtypes[toy.TOY]
    assert_refused(
        toy.definition(dtypes={STATE_DTYPE: limits}), "game 'toy': its dtype is the dtype of 'ninetka'; add a field"
    )
    register(toy.definition())
    assert_refused(toy.definition(name="nim"), "game 'nim': its dtype is the dtype of 'toy'")
    assert definition_of(toy.TOY).name == "toy"


@pytest.mark.parametrize("lacking", ["num_players", "to_move"])
def test_dtypes_lacking_a_field_are_refused(lacking):
    dtype = np.dtype([(name, np.int8) for name in ("heap", "num_players", "to_move") if name != lacking])
    limits = toy.definition().dtypes[toy.TOY]
    assert_refused(toy.definition(dtypes={dtype: limits}), f"game 'toy': its dtype lacks {lacking}$")


def winer_of(game):
    return 0


def stage(game, viewer):
    return 0


def plays(game, action):
    return 0


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (winer_of, r"game 'toy': 'winer_of' is no verb \(did you mean 'winner_of'\?\)"),
        (plays, r"game 'toy': 'plays' is no verb \(did you mean 'play"),
        (assert_refused, r"game 'toy': 'assert_refused' is no verb"),
        (stage, r"game 'toy': stage takes 1 arguments, this one 2"),
    ],
)
def test_functions_that_are_no_verbs_are_refused(function, message):
    assert_refused(toy.definition(compiled=(*toy.COMPILED, function)), message)


def write_legal_bits(game, words):
    words[0] = 0


def test_a_game_that_writes_only_some_bits_is_refused():
    message = r"game 'toy': write_observation_bits and write_legal_bits: expected both of them or none$"
    assert_refused(toy.definition(compiled=(*toy.COMPILED, write_legal_bits)), message)


@pytest.mark.usefixtures("toy_registry")
def test_a_game_need_not_write_bits():
    register(toy.definition())
    assert [writes_bits(dtype) for dtype in (toy.TOY, load_variant("go").dtype)] == [False, True]


@pytest.mark.parametrize("missing", toy.COMPILED, ids=lambda function: function.__name__)
def test_missing_verbs_are_named(missing):
    rest = tuple(function for function in toy.COMPILED if function is not missing)
    assert_refused(toy.definition(compiled=rest), f"game 'toy': the compiled functions lack {missing.__name__}$")


def test_all_missing_verbs_are_named_at_once():
    names = ", ".join(function.__name__ for function in toy.COMPILED)
    assert_refused(toy.definition(compiled=()), f"game 'toy': the compiled functions lack {names}$")


def test_states_of_an_unregistered_game_are_refused():
    unregistered = np.dtype((np.record, [("unknown_heap", np.int8), ("num_players", np.int8), ("to_move", np.int8)]))
    with pytest.raises(ValueError, match=r"no game has the dtype .*: known games are"):
        toy.ToyGame(np.zeros(1, unregistered))
    with pytest.raises(TypeError, match="no registered game has the dtype"):
        is_over(np.zeros(1, unregistered)[0])


# A game from outside the package


def start_toy(spec="toy", **options):
    register(toy.definition())
    return toy.ToyGame.start(load_variant(spec, **options), 0)


def test_the_toy_game_plays():
    game = start_toy("toy:stones=5,num_players=3")
    assert (game.num_players, game.num_actions, game.to_move, game.ply, game.stage) == (3, 4, 0, 0, 0)
    assert game.winner() == DRAWN
    for action, legal in ((3, [1, 2, 3]), (1, [1, 2]), (1, [1])):
        assert game.legal_actions().tolist() == legal
        game.play(action)
    assert (game.is_over, game.winner(), game.ply) == (True, 2, 3)
    assert game.scores().tolist() == [0, 0, 1]
    assert game.returns("score").tolist() == game.returns("win").tolist() == [-0.5, -0.5, 1]
    with pytest.raises(ValueError, match="action 1 is illegal: the game is over"):
        game.play(1)


def test_options_reach_the_rules():
    game = start_toy("toy:stones=2,last=loses")
    game.play(2)
    assert game.winner() == 1


def test_illegal_actions_are_named():
    game = start_toy("toy:stones=2")
    for action in (0, 3, 4, -1, 2**40):
        with pytest.raises(ValueError, match=f"action {action} is illegal for seat 0: legal are 1, 2$"):
            game.play(action)


def test_the_toy_game_passes_pettingzoos_api_test():
    register(toy.definition())
    for options in ({}, {"num_players": 3, "last": "loses"}):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Observation", UserWarning)  # PettingZoo warns of dict observations
            warnings.filterwarnings("ignore", "unknown option 'options' of reset", UserWarning)  # the kit passes it
            api_test(GameAEC(load_variant("toy", **options)), num_cycles=50)


def test_agents_for_all_games_play_the_toy_game():
    games = np.repeat(start_toy().records, 300)
    actions = make_agent("random", "toy").act(games, np.random.default_rng(0))
    assert set(actions.tolist()) == {1, 2, 3}
    with pytest.raises(ValueError, match=r"agent 'maxn' plays ninetka, not toy: known are mcts, random"):
        make_agent("maxn", "toy")
    with pytest.raises(ValueError, match=r"unknown agent 'randm': known are mcts, random.*did you mean 'random'"):
        make_agent("randm", "toy:stones=3")


def test_game_records_of_the_toy_game_are_read_back():
    register(toy.definition())
    record = GameRecord.of((3, 1, 1), "toy:stones=5,num_players=3", tags={"first": "random"})
    text = format_record(record)
    assert text.splitlines() == [
        "game record, format 2",
        "game: toy",
        "players: 3",
        "stones: 5",
        "last: wins",
        "first: random",
        "moves: 3 1 1",
        "result: first 0, second 0, third 1; third wins",
    ]
    assert list(read_records(io.StringIO(text))) == [record]
    for old, new, line, message in (
        ("stones: 5", "stones: 71", 4, r"stones: '71': expected an integer 1\.\.70"),
        ("stones: 5\n", "", 6, r"lacks 'stones: an integer 1\.\.70'"),
        ("3 1 1", "3 1", 7, r"phase MOVES is cut off: expected one more of 1$"),
        ("3 1 1", "3 4", 7, r"action 4 is illegal for seat 1: legal are 1, 2$"),
        ("3 1 1", "3 1 one", 7, "no action 'one': expected a number"),
        ("third wins", "drawn", 8, "expected the result"),
    ):
        with pytest.raises(ValueError, match=f"<text>, line {line}: .*{message}"):
            list(read_records(io.StringIO(text.replace(old, new))))


def test_a_game_without_a_renderer_is_shown_as_text():
    game = start_toy()
    assert render_ansi(game) == str(game) == "<Game of Toy: ply 0, seat 0 to move>"
    with pytest.raises(ValueError, match=r"Toy has no pictures: use render_mode='ansi'"):
        render_rgb(game)
    record = GameRecord.of([3] * 4, "toy")
    assert len(list(replay_text(record))) == 1 + 5


PROGRAM = """
import toy_game as toy
from ninetka_env.core.registry import load_variant, register
register(toy.definition())
game = toy.ToyGame.start(load_variant("toy"), 0)
game.play(1)
print(game.records["heap_of_toy"][0])
"""


@pytest.mark.slow
@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_code_compiled_from_older_sources_is_not_run(tmp_path):
    source = Path(toy.__file__).read_text(encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    heaps = []
    for taken in ("action", "action", "2 * action"):
        (tmp_path / "toy_game.py").write_text(
            source.replace("heap_of_toy -= action", f"heap_of_toy -= {taken}"), encoding="utf-8"
        )
        command = [sys.executable, "-c", PROGRAM]
        environment = os.environ | cache | {"PYTHONPATH": path}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        heaps.append(int(done.stdout))
    assert heaps == [11, 11, 10]

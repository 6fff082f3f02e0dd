"""Fuzz inputs to the package: actions, boards, texts, game records, options, specs, configurations, checkpoints."""

from __future__ import annotations

import copy
import hashlib
import inspect
import io
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fuzz.trials import Findings, run_trial
from fuzz.values import damaged, random_word, unexpected_value
from safetensors.torch import load, save

from ninetka_agents.agent import make_agent
from ninetka_agents.checkpoint import load_checkpoint, save_checkpoint
from ninetka_agents.one_seat import one_seat, one_seat_vector
from ninetka_agents.plugins import agents_of, games_with_networks, network_of
from ninetka_agents.plugins import import_object as load_class
from ninetka_env.api.aec import GameAEC
from ninetka_env.api.record_files import read_records, write_records
from ninetka_env.api.records import GameRecord, format_record
from ninetka_env.api.vector import GameVectorEnv
from ninetka_env.core.game import Game
from ninetka_env.core.registry import Variant, get_definition, load_variant
from ninetka_train.learning.config import TrainConfig, check_config, config_class, load_config
from ninetka_train.learning.config_errors import known_keys

Try = Callable[[random.Random], None]
"""A trial: runs one random input and adds its problems to the findings."""
REFUSED = (ValueError, TypeError)


def random_variant(name: str, rng: random.Random) -> Variant:
    """Draw a variant of a game; most options keep their defaults."""
    definition = get_definition(name)
    while True:
        try:
            chosen = {one.name: rng.choice(_values(one)) for one in definition.options if rng.random() < 0.3}
            return definition.variant(**chosen)
        except ValueError:  # a combination that is not allowed
            continue


def _values(option: Any) -> list[Any]:
    return list(getattr(option, "values", ())) or [option.default, getattr(option, "minimum", option.default)]


def random_game(variant: Variant, rng: random.Random, plies: int | None = None) -> Game:
    """Play `plies` random actions, by default to the end of the game."""
    game: Game = variant.game_class.start(variant, rng.randrange(2**32))
    for _ in range(plies if plies is not None else 10**6):
        if game.is_over:
            break
        game.play(int(rng.choice(game.legal_actions())))
    return game


# Actions


def actions(findings: Findings, name: str, rng: random.Random) -> list[Try]:
    """Return trials of actions in `Game` and all environments: illegal actions must raise and change nothing."""
    variant = random_variant(name, rng)
    games = [random_game(variant, rng, plies) for plies in (0, 5, 20, 40, 60)]
    aec = GameAEC(variant)
    vector = GameVectorEnv(3, variant)
    alone, many = one_seat(variant, opponents="random"), one_seat_vector(3, variant, opponents="random")

    def on_game(rng: random.Random) -> None:
        game, action = rng.choice(games).copy(), _action(rng, variant)
        _played(findings, f"{name}: Game.play", game.play, action, lambda: game.records, game.legal_mask())

    def on_aec(rng: random.Random) -> None:
        if not aec.agents or any(aec.terminations.values()):
            aec.reset(seed=rng.randrange(2**32))
        mask = aec.game.legal_mask()
        _played(findings, f"{name}: raw_env.step", aec.step, _action(rng, variant), lambda: aec.game.records, mask)

    def on_vector(rng: random.Random) -> None:
        _played_many(findings, f"{name}: vector_env.step", vector.step, rng, lambda: vector.games, vector.action_mask)

    def on_alone(rng: random.Random) -> None:
        if alone._batch.terminated[0]:
            alone.reset()
        mask = alone._batch.masks[0].copy()
        _played(findings, f"{name}: one seat", alone.step, _action(rng, variant), lambda: alone._batch.games, mask)

    def on_many(rng: random.Random) -> None:
        batch = many._batch
        _played_many(findings, f"{name}: one seat, vector", many.step, rng, lambda: batch.games, batch.masks)

    aec.reset(seed=0)
    alone.reset(seed=0)
    many.reset(seed=0)
    return [on_game] * 4 + [on_aec] * 2 + [on_vector] * 2 + [on_alone, on_many]


def _action(rng: random.Random, variant: Variant) -> Any:
    return rng.randrange(-3, variant.num_actions + 3) if rng.random() < 0.5 else unexpected_value(rng)


def _played(
    findings: Findings, target: str, play: Callable[[Any], Any], action: Any, records: Callable[[], Any], mask: Any
) -> None:
    before, mask = records().tobytes(), mask.copy()
    if run_trial(findings, target, lambda: play(action), REFUSED, action):
        if isinstance(action, bool) or not mask[int(action)]:
            findings.add(target, "accepted an illegal action", action)
    elif records().tobytes() != before:
        findings.add(target, "refused, but changed the game", action)


def _played_many(
    findings: Findings, target: str, step: Callable[[Any], Any], rng: random.Random, records: Any, masks: Any
) -> None:
    legal = masks.argmax(axis=1).tolist()
    spoilt = [*legal[:2], unexpected_value(rng)]
    given = rng.choice(
        [unexpected_value(rng), spoilt, legal[:2], np.array(legal), np.array(legal, float), np.array(legal)[:, None]]
    )
    before, masks = records().tobytes(), masks.copy()
    if run_trial(findings, target, lambda: step(given), REFUSED, given):
        if not all(mask[int(action)] for mask, action in zip(masks, np.asarray(given), strict=True)):
            findings.add(target, "accepted an illegal action", given)
    elif records().tobytes() != before:
        findings.add(target, "refused, but changed a game", given)


# Positions and games as text


def boards(findings: Findings, name: str, rng: random.Random) -> list[Try]:
    """Return trials of `from_board`; no trials for a game without it."""
    variant = random_variant(name, rng)
    games = [random_game(variant, rng, plies) for plies in (0, 5, 20, 40, None)]
    if not hasattr(variant.game_class, "from_board"):
        return []
    bound = inspect.signature(variant.game_class.from_board).parameters
    options = {key: value for key, value in variant.options.items() if key in bound}

    def once(rng: random.Random) -> None:
        game = rng.choice(games)
        board: Any = np.array(game.board)
        for _ in range(rng.randrange(4)):
            board.flat[rng.randrange(board.size)] = (
                rng.choice(board.ravel()) if rng.random() < 0.8 else rng.randrange(-128, 128)
            )
        board = rng.choice([board, board, board, board.tolist(), board.astype(float), board[1:], unexpected_value(rng)])
        seat = game.to_move if rng.random() < 0.7 else unexpected_value(rng)
        chosen = options | (
            {rng.choice(list(options)): unexpected_value(rng)} if options and rng.random() < 0.2 else {}
        )

        def call() -> None:
            found = variant.game_class.from_board(board, seat, **chosen)
            assert found.is_over or found.legal_mask().any(), "a position without a legal action"

        run_trial(findings, f"{name}: from_board", call, REFUSED, (board, seat, chosen))

    return [once]


def texts(findings: Findings, name: str, rng: random.Random) -> list[Try]:
    """Return trials of `from_text`; a position that was read must survive `str` and `from_text`."""
    variant = random_variant(name, rng)
    if variant.game_class.from_text.__func__ is Game.from_text.__func__:  # type: ignore[attr-defined]
        return []
    known = [str(random_game(random_variant(name, rng), rng, plies)) for plies in (0, 5, 20, 40, None)]

    def once(rng: random.Random) -> None:
        text = random_word(rng) if rng.random() < 0.02 else damaged(rng.choice(known), rng, known)

        def call() -> None:
            game = variant.game_class.from_text(text)
            assert variant.game_class.from_text(str(game)) == game, "reads its own text as another position"

        run_trial(findings, f"{name}: from_text", call, (ValueError,), text)

    return [once]


def records(findings: Findings, name: str, rng: random.Random) -> list[Try]:
    """Return trials of game records as text, and of game records with wrong fields."""
    known = []
    for _ in range(4):
        variant = random_variant(name, rng)
        start: Game = variant.game_class.start(variant, 1)
        game, played = start.copy(), []
        while not game.is_over:
            played.append(int(rng.choice(game.legal_actions())))
            game.play(played[-1])
        drawn = start.drawn_actions() if variant.sizes.num_drawn else ()
        known.append(GameRecord.of(played, variant, drawn=drawn, tags={"seed": "1"}))
    written = [format_record(record) for record in known]

    def reading(rng: random.Random) -> None:
        text = damaged(rng.choice(written), rng, written)

        def call() -> None:
            for record in read_records(io.StringIO(text)):
                format_record(record)

        run_trial(findings, f"{name}: read_records", call, (ValueError,), text)

    def making(rng: random.Random) -> None:
        record = rng.choice(known)
        played = list(record.actions)
        played[rng.randrange(len(played))] = rng.randrange(-5, 2 * record.variant.num_actions)
        tags = {random_word(rng): random_word(rng)}

        def call() -> None:
            write_records(io.StringIO(), [GameRecord.of(played, record.variant, drawn=record.drawn)])

        run_trial(findings, f"{name}: GameRecord.of", call, (ValueError,), played)
        made = (
            copy.replace(record, tags=tags)
            if hasattr(copy, "replace")
            else record.__class__(**{**vars(record), "tags": tags})
        )
        run_trial(findings, f"{name}: write_records", lambda: write_records(io.StringIO(), [made]), (ValueError,), tags)

    return [reading] * 4 + [making]


# Options and specs


def options(findings: Findings, name: str, rng: random.Random) -> list[Try]:
    """Return trials of options of a game, given by name and in its spec."""
    definition = get_definition(name)

    def once(rng: random.Random) -> None:
        one = rng.choice(definition.options)
        chosen = {rng.choice([one.name, one.name, random_word(rng)]): rng.choice([one.default, unexpected_value(rng)])}
        run_trial(findings, f"{name}: options", lambda: definition.variant(**chosen), (ValueError,), chosen)
        spec = rng.choice(
            [random_variant(name, rng).spec, f"{name}:{one.name}={random_word(rng)}", f"{name}:{random_word(rng)}"]
        )
        spec = damaged(spec, rng) if rng.random() < 0.5 else spec
        run_trial(findings, "load_variant", lambda: load_variant(spec), (ValueError,), spec)
        made = unexpected_value(rng)
        default_variant, count = definition.variant(), rng.choice([made, 10**18, 2])
        run_trial(
            findings,
            f"{name}: vector_env",
            lambda: GameVectorEnv(count, default_variant, num_threads=made),
            (ValueError,),
            (count, made),
        )
        run_trial(findings, f"{name}: seed", lambda: GameAEC(default_variant).reset(seed=made), (ValueError,), made)

    return [once]


def specs(findings: Findings, name: str, rng: random.Random) -> list[Try]:
    """Return trials of specs of agents."""
    known = agents_of(name)
    keys = {
        agent: [key for key in inspect.signature(load_class(place)).parameters if key != "game"]
        for agent, place in known.items()
    }

    def once(rng: random.Random) -> None:
        agent = rng.choice(list(known))
        pairs = [
            f"{key}={rng.choice([random_word(rng), '2'])}"
            for key in rng.sample(keys[agent], min(len(keys[agent]), rng.randrange(3)))
        ]
        spec: Any = f"{agent}:{','.join(pairs)}" if rng.random() < 0.7 else f"{agent}:{random_word(rng)}"
        if rng.random() < 0.1:
            spec = rng.choice([unexpected_value(rng), f"{agent}:" + 1990 * "a", f"{agent}:" * 500, "[" * 1500])
        elif rng.random() < 0.4:
            spec = damaged(spec, rng, list(known))
        run_trial(findings, f"{name}: make_agent", lambda: make_agent(spec, name), (ValueError,), spec)

    return [once]


# Files of training


def configs(findings: Findings, folder: Path, rng: random.Random) -> list[Try]:
    """Return trials of configurations: files, overrides, plain values, and names."""
    keys, path = known_keys(config_class("ninetka")), folder / "config.yaml"
    tags = (
        "!!timestamp ",
        "!!int ",
        "!!float ",
        "!!binary ",
        "!!set ",
        "!!python/name:os.system ",
        "&a ",
        "*a",
        "? ",
        "- ",
        "<<: ",
    )

    def pair(rng: random.Random) -> str:
        *parents, key = rng.choice([*keys, random_word(rng)]).split(".")
        value = rng.choice(["", *tags]) + rng.choice([random_word(rng), "3", "[2, 3]", "{a: 1}", "x"])
        return "".join(f"{parent}: {{" for parent in parents) + f"{key}: {value}" + "}" * len(parents)

    def reading(rng: random.Random) -> None:
        text = "\n".join(pair(rng) for _ in range(rng.randrange(1, 4)))
        text = rng.choice([text, damaged(text, rng), text * 50, "[" * rng.choice((5, 1200)), "a: " * 900, "{a: " * 900])
        data = text.encode(errors="surrogatepass")
        path.write_bytes(rng.choice([data, data, data, text.encode("utf-16", "surrogatepass"), rng.randbytes(20)]))
        run_trial(findings, "load_config", lambda: load_config(path), (ValueError,), path.read_bytes())

    def overriding(rng: random.Random) -> None:
        key = rng.choice([*keys, random_word(rng)])
        text = rng.choice([f"{key}={rng.choice(['', *tags])}{random_word(rng)}", random_word(rng), key])
        run_trial(findings, "load_config, override", lambda: load_config(None, [text]), (ValueError,), text)

    def checking(rng: random.Random) -> None:
        *parents, key = rng.choice(keys).split(".")
        values: Any = {key: unexpected_value(rng)}
        for parent in parents:
            values = {parent: values}
        run_trial(findings, "check_config", lambda: check_config(values), (ValueError,), values)

    def naming(rng: random.Random) -> None:
        name = random_word(rng)
        run_trial(findings, "load_config, path", lambda: load_config(name), (ValueError,), name)
        run_trial(findings, "name of a run", lambda: _check_name(name), (ValueError,), name)

    return [reading] * 3 + [overriding, checking, naming]


def _check_name(name: str) -> None:
    config: TrainConfig = check_config({"name": name})
    folder = Path("/runs") / config.name
    assert folder.parent == Path("/runs"), "the folder of the run is not in /runs"
    assert 0 < len(config.name.encode()) <= 255, "not a valid name of a folder"


def checkpoints(findings: Findings, folder: Path, rng: random.Random) -> list[Try]:
    """Return trials of checkpoints that are damaged, or that have a correct hash but wrong contents."""
    made = [_small_checkpoint(folder / name, name) for name in games_with_networks()]

    def once(rng: random.Random) -> None:
        path, about, blob = rng.choice(made)
        text = json.dumps(about)
        kind = rng.randrange(5)
        if kind == 0:
            text = damaged(text, rng)
        elif kind == 1:
            cut = rng.randrange(len(blob))
            blob = rng.choice([blob[:cut], blob[:cut] + rng.randbytes(3) + blob[cut + 3 :]])
            text = json.dumps(about | {"sha256": hashlib.sha256(blob).hexdigest()})
        elif kind == 2:
            blob = _other_tensors(blob, rng)
            text = json.dumps(about | {"sha256": hashlib.sha256(blob).hexdigest()})
        elif kind == 3:
            text = json.dumps(about | {rng.choice(list(about)): _plain(rng)})
        else:
            shape = about["network"]
            text = json.dumps(about | {"network": shape | {rng.choice([*shape, "x"]): _plain(rng)}})
        path.with_suffix(".json").write_bytes(text.encode(errors="surrogatepass"))
        path.write_bytes(blob)
        run_trial(findings, "load_checkpoint", lambda: load_checkpoint(path), (ValueError,), text)

    def naming(rng: random.Random) -> None:
        name = random_word(rng) * rng.choice((1, 1, 300))
        run_trial(findings, "load_checkpoint, path", lambda: load_checkpoint(name), (ValueError,), name)

    return [once] * 8 + [naming]


def _small_checkpoint(path: Path, game: str) -> tuple[Path, dict[str, Any], bytes]:
    module = network_of(game)
    small = {key: value for key, value in (("width", 8), ("blocks", 1)) if hasattr(module.NetworkConfig(), key)}
    saved = save_checkpoint(path, module.Network(module.NetworkConfig(**small)))
    return saved, json.loads(saved.with_suffix(".json").read_text(encoding="utf-8")), saved.read_bytes()


def _plain(rng: random.Random) -> Any:
    return rng.choice(
        [
            None,
            True,
            0,
            -1,
            1,
            2,
            1000000,
            10**18,
            10**30,
            1.5,
            1e308,
            "",
            "x" * 9999,
            [],
            [[1]],
            {},
            {"a": 1},
            random_word(rng),
        ]
    )


def _other_tensors(blob: bytes, rng: random.Random) -> bytes:
    tensors = load(blob)
    name = rng.choice(list(tensors))
    old = tensors.pop(name)
    kinds = [
        old[None],
        old.flatten(),
        old.double(),
        old.half(),
        old.bool(),
        old * float("nan"),
        torch.zeros(0),
        torch.zeros(3, 3),
    ]
    for new in rng.choice([[], kinds]):
        tensors[rng.choice([name, name, random_word(rng).encode("ascii", "replace").decode() or "x"])] = (
            new.clone().contiguous()
        )
        if rng.random() < 0.5:
            break
    return save(tensors)


def input_shares(
    findings: Findings, games: list[str], folder: Path, rng: random.Random
) -> Iterator[tuple[float, list[Try]]]:
    """Yield a pair for each kind of input: its share of all inputs, and its trials."""
    each = 1 / len(games)
    for name in games:
        for share, kind in (
            (0.5, actions),
            (0.12, boards),
            (0.12, texts),
            (0.05, records),
            (0.08, options),
            (0.05, specs),
        ):
            yield share * each, kind(findings, name, rng)
    yield 0.05, configs(findings, folder, rng)
    yield 0.03, checkpoints(findings, folder, rng)

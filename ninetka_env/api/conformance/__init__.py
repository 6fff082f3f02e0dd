"""Conformance checks for games: each check tests one part of the contract of a game and can be run separately.

    check("tictactoe")  # returns, or raises ConformanceError
    check("go:komi=6.5", games=1, only=["masks", "text"])

The contract is documented in `ninetka_env.core.verbs`, `ninetka_env.core.registry` and `ninetka_env.core.game`. The
checks play random games and test single games, environments, batches, text and game records. Authors of a game should
run them with several values of every option. `ninetka_agents.conformance` runs these checks and the checks of search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ninetka_env.api.conformance import environments, rules, searchable, serialization
from ninetka_env.api.conformance.case import Case, Check, ConformanceError
from ninetka_env.core.registry import Variant, load_variant

__all__ = ["CHECKS", "Case", "Check", "ConformanceError", "check", "run_checks"]

CHECKS: Mapping[str, Check] = MappingProxyType(
    {
        "options": rules.check_options,
        "sizes": rules.check_sizes,
        "start": rules.check_start,
        "length": rules.check_length,
        "seeds": rules.check_seeds,
        "masks": rules.check_masks,
        "illegal": rules.check_illegal,
        "returns": rules.check_returns,
        "targets": rules.check_targets,
        "events": rules.check_events,
        "symmetries": rules.check_symmetries,
        "choices": searchable.check_choices,
        "forced": searchable.check_forced,
        "random": searchable.check_random,
        "playout": searchable.check_playout,
        "observations": environments.check_observations,
        "slow planes": environments.check_slow_planes,
        "bits": environments.check_bits,
        "aec": environments.check_aec,
        "batch": environments.check_batch,
        "illegal steps": environments.check_illegal_steps,
        "positions": environments.check_positions,
        "one seat": environments.check_one_seat,
        "pettingzoo": environments.check_pettingzoo,
        "names": serialization.check_names,
        "text": serialization.check_text,
        "records": serialization.check_records,
        "copies": serialization.check_copies,
        "running copies": serialization.check_running_copies,
    }
)
"""Every check by name, in the order in which `check` runs them."""


def check(
    game: str | Variant, *, games: int = 2, seed: int = 0, only: Iterable[str] | None = None, **options: object
) -> None:
    """Check that a game satisfies the contract.

    Args:
        game: its spec, such as `"ninetka:num_players=3"`, or a variant.
        games: number of random games that each check plays.
        seed: seed of the first game; game i has seed `seed` + i.
        only: the names of the checks to run; None for all of `CHECKS`.
        options: options of the game.

    Raises:
        ConformanceError: at the first failure; the message gives the check, the game, the seed and the ply.
        ValueError: if the game, an option or a check is unknown.
    """
    run_checks(CHECKS, load_variant(game, **options), games, seed, only)


def run_checks(
    checks: Mapping[str, Check], variant: Variant, games: int, seed: int, only: Iterable[str] | None = None
) -> None:
    """Run the checks in `checks` by name; `games`, `seed`, `only` and the errors are as in `check`."""
    names = list(checks) if only is None else list(only)
    if unknown := [name for name in names if name not in checks]:
        raise ValueError(f"check {unknown[0]!r}: expected some of {', '.join(checks)}")
    for name in names:
        case = Case(variant, games, seed)
        try:
            checks[name](case)
        except Exception as error:  # a game may raise anything; the message must say where
            what = str(error) if isinstance(error, ConformanceError) else f"{type(error).__name__}: {error}"
            raise ConformanceError(f"{name}: {variant}, seed {case.seed}, ply {case.ply}: {what}") from error

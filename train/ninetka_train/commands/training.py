"""The commands `train`, `report`, `average` and `export`: train networks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from ninetka_train.cluster.command import ClusterOption, cluster_player, round_summary
from ninetka_train.commands.completion import complete_config, complete_network
from ninetka_train.exit_handling import (
    StoppedBySignal,
    check_address_space,
    error_text,
    exit_on_error,
    fail,
    fail_on_import_error,
    integer_option,
    is_out_of_memory,
    stopped_by_signals,
)

WIDE = 120
"""Width in columns from which the bar shows four numbers instead of two."""


class _TrainingDisplay:
    """Training progress: a bar in a terminal, lines elsewhere. Only the first process prints anything."""

    def __init__(self, is_first_process: bool, by_round: bool) -> None:
        """Create the display; `by_round` says whether to print a line for each round that a cluster has played."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(None), TimeElapsedColumn(), TimeRemainingColumn())
        console = Console(stderr=True)
        self.bar = Progress(
            *columns,
            console=console,
            transient=True,
            expand=True,
            disable=not (is_first_process and console.is_terminal),
        )
        self._task = self.bar.add_task("", total=1.0)
        self._is_first_process, self._by_round, self._percent = is_first_process, by_round, -1

    def bar_context(self) -> AbstractContextManager[object]:
        """Return a context manager that shows the bar, if there is one."""
        # versions of rich before 14.3 print an empty line after a disabled bar
        return nullcontext() if self.bar.disable else self.bar

    def show(self, share: float, numbers: dict[str, float]) -> None:
        """Show the finished share of the training, 0..1, whose games were learned, and the first of `numbers`."""
        console = self.bar.console
        count = 2 if console.is_terminal and console.width < WIDE else 4
        text = "  ".join(f"{key} {value:.3g}" for key, value in list(numbers.items())[:count])
        if "own_games" in numbers:  # AlphaZero
            text = f"{'own games' if numbers['own_games'] else 'games of the teacher'}  {text}"
        self.bar.update(self._task, completed=share, description=text)
        # a resumed run may report a round that was played without a cluster; it has no "workers"
        if self._by_round and "workers" in numbers:
            self.print(round_summary(share, numbers))
        elif not console.is_terminal and int(100 * share) > self._percent:
            self._percent = int(100 * share)
            self.print(f"{share:4.0%}: {text}")

    def print(self, line: str) -> None:
        """Print a line above the bar."""
        if self._is_first_process:
            self.bar.console.print(line, markup=False, highlight=False, soft_wrap=True)


@stopped_by_signals()
def train(
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            metavar="NAME|FILE",
            help="Configuration, such as quick; `ninetka configs` lists them.",
            autocompletion=complete_config,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, such as ppo.epochs=2; repeatable."),
    ] = None,
    runs: Annotated[Path, typer.Option("--runs", metavar="FOLDER", help="Folder that holds all runs.")] = Path("runs"),
    games: Annotated[
        int, integer_option("--games", "-g", help="Games per opponent in the final benchmark; 0: no measurements.")
    ] = 200,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run from its newest checkpoint; start it if there is none.")
    ] = False,
    cluster: ClusterOption = None,
) -> None:
    """Train a network by self-play and measure its strength.

    `ninetka train --config quick --set seed=1 --set name=second` trains the configuration quick with another seed, in
    the folder runs/second. Without a configuration, PPO with default settings learns 9tka in runs/run.

    The run's folder is named by the setting `name`. It gets checkpoints, logs, the games and figures of the final
    benchmark, and report.html. `ninetka report FOLDER` shows the results at any time, and the trained agent is
    net:FOLDER, as in `ninetka evaluate net:runs/second random`.

    After Ctrl-C or an error, the same command with --resume continues the run. docs/guides/training.md describes the
    settings.
    """
    check_address_space()
    try:
        from ninetka_train.learning import processes
        from ninetka_train.learning.config import load_config
        from ninetka_train.reporting.run_data import whose_games
        from ninetka_train.run import run
    except ImportError as error:
        fail_on_import_error("training needs", error)

    first = processes.rank() == 0
    display = _TrainingDisplay(first, by_round=bool(cluster))
    try:
        chosen = load_config(config, settings or ())
        device = processes.choose_device(chosen)
        with (
            display.bar_context(),
            processes.process_group(device),
            cluster_player(cluster if first else None) as player,
        ):
            folder = runs / chosen.name
            what = f"{folder}: learning {chosen.definition.title} by {whose_games(chosen.model_dump(mode='json'))}"
            run(chosen, folder, games, resume, display.show, player, on_start=lambda: display.print(what))
            display.print(f"{folder}: finished; its agent spec is net:{folder}")
    except ValueError as error:
        fail(error)
    except OSError as error:
        begun = (runs / chosen.name / "config.yaml").exists()
        advice = "; earlier checkpoints are intact: continue with --resume" if begun else ""
        fail(f"{error_text(error)}{advice}", code=1)
    except StoppedBySignal as stopped:
        fail(f"stopped by {stopped.name}: continue with --resume", code=stopped.status)
    except KeyboardInterrupt:
        fail("stopped: continue with --resume", code=130)
    except BaseException as error:  # a panic in a Rust library derives from BaseException
        if not is_out_of_memory(error):
            raise
        fail("training does not fit into memory: choose smaller settings", code=1)


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder of a run, such as runs/quick; it may still be training.")
    ],
) -> None:
    """Print the results of a training run; write report.html and pictures.

    The pictures of all plots are report.png and, on a dark page, report-dark.png.
    """
    with exit_on_error("reports"):
        from ninetka_train.reporting.run_report import print_run, write_report

        write_report(folder)
        print_run(folder)


def average(
    checkpoints: Annotated[
        list[str],
        typer.Argument(
            metavar="CHECKPOINT",
            help="Networks, such as gen-6 runs/a; one that is named twice counts twice.",
            autocompletion=complete_network,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="CHECKPOINT", help="Output checkpoint, such as runs/mean.")],
    policy_temperature: Annotated[
        float,
        typer.Option(
            "--policy-temperature",
            metavar="T",
            help="Divide policy logits by T, 0.01 to 100: above 1, searches rely on the policy less.",
        ),
    ] = 1.0,
) -> None:
    """Average the weights of networks that were trained from the same weights."""
    with exit_on_error("averages"):
        from ninetka_agents.averaging import mean_network, soften_policy
        from ninetka_agents.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
        from ninetka_agents.network_files import find_checkpoint

        inputs = [find_checkpoint(checkpoint) for checkpoint in checkpoints]
        mean = mean_network([load_checkpoint(checkpoint)[0] for checkpoint in inputs])
        path = _new_network_path(out, inputs)
        other = _network_named(out, mean.game)
        soften_policy(mean, policy_temperature)
        notes = {"mean_of": checkpoints, "policy_temperature": policy_temperature}
        save_checkpoint(out, mean, Checkpoint(mean.config, notes=notes))
    typer.echo(f"wrote {path} and {path.with_suffix('.json').name}")
    if other not in (None, path):
        typer.echo(f"note: net:{out} is also a name of {other}: write net:{path} for the new network", err=True)


def _new_network_path(out: Path, inputs: Sequence[Path]) -> Path:
    """Return the path of the weights of a new network; raise an error if writing it would destroy another file."""
    from ninetka_agents.network_files import checkpoint_path
    from ninetka_train.commands.output_files import check_name, check_outputs

    check_name("--out", out)
    if out.name.startswith("net:"):
        raise ValueError(f"--out {out}: expected a path, without `net:`")
    weights = checkpoint_path(out)
    description = weights.with_suffix(".json")
    weights.parent.mkdir(parents=True, exist_ok=True)
    read = [*inputs, *(path.with_suffix(".json") for path in inputs)]
    check_outputs([("--out", weights), ("--out", description)], read, writes_network=True)
    if description.exists() and not weights.exists():
        raise ValueError(f"--out {out}: {description} is not the description of a network: choose another name")
    return weights


def _network_named(name: Path, game: str) -> Path | None:
    """Return the file of the network that `net:NAME` means; None if there is none."""
    from ninetka_agents.network_files import find_checkpoint

    try:
        return find_checkpoint(name, game)
    except ValueError:
        return None


def export(
    checkpoint: Annotated[
        str,
        typer.Argument(
            metavar="CHECKPOINT",
            help="Trained network, such as runs/quick, kropki/gen-2 or, for the shipped one of a game, net:kropki.",
            autocompletion=complete_network,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Output file, such as net.onnx.")],
) -> None:
    """Write a trained network into an ONNX file."""
    with exit_on_error("exports", "train,onnx"):
        from ninetka_agents.export import export_checkpoint
        from ninetka_train.commands.output_files import check_outputs

        check_outputs([("--out", out)])
        export_checkpoint(checkpoint, out)
    typer.echo(f"wrote {out}")
    if out.suffix.lower() != ".onnx":
        typer.echo("note: most programs expect that the name of an ONNX file ends in .onnx", err=True)

"""Test runs that are stopped by signals, resumed, made longer, or started twice: nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from learning.test_run import PPO, SMALL, logged_values, train
from requirements import needs_posix

from ninetka_train import exit_handling
from ninetka_train import run as module
from ninetka_train.learning import alphazero, ppo, resume
from ninetka_train.learning.config import load_config
from ninetka_train.learning.lock import LOCK_FILE, locked
from ninetka_train.learning.logger import Journal
from ninetka_train.learning.processes import set_torch_threads, single_threaded_pool

pytestmark = pytest.mark.slow

NO_GAMES = ("--games", "0")
RESUMED = (*NO_GAMES, "--resume")
ALPHAZERO = ("name=run", "threads=1", *SMALL["alphazero"], "alphazero.rounds=4", "checkpoint_every=20")
"""Settings of a run with four rounds and one kept checkpoint at the end."""


def weights(folder):
    (newest,) = folder.glob("step-*.safetensors")
    return newest.read_bytes()


def stop_after(monkeypatch, step, number):
    """Send this process a signal when a run has logged round or move number `step`."""
    log = Journal.log

    def stopped(journal, done, total, numbers):
        line = log(journal, done, total, numbers)
        if done == step:
            monkeypatch.undo()
            os.kill(os.getpid(), number)
        return line

    monkeypatch.setattr(Journal, "log", stopped)


@needs_posix
@pytest.mark.parametrize(("name", "status"), [("SIGTERM", 143), ("SIGUSR1", 75), ("SIGINT", 130)])
def test_a_signal_ends_a_run_with_a_checkpoint_of_the_last_whole_round(tmp_path, monkeypatch, name, status):
    handlers = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    whole = train(tmp_path / "whole", *ALPHAZERO, options=NO_GAMES)
    assert whole.exit_code == 0, whole.output
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background may ignore it
    try:
        stop_after(monkeypatch, 2, getattr(signal, name))
        stopped = train(tmp_path / "broken", *ALPHAZERO, options=NO_GAMES)
    finally:
        signal.signal(signal.SIGINT, handlers[1])
    assert signal.getsignal(signal.SIGTERM) == handlers[0]
    assert stopped.exit_code == status
    by = "" if name == "SIGINT" else f" by {name}"
    assert stopped.output.splitlines()[-1] == f"error: stopped{by}: continue with --resume"
    folder = tmp_path / "broken" / "run"
    assert [path.name for path in folder.glob("*.safetensors")] == ["resume-000000000002.safetensors"]
    assert not list(folder.rglob(".*"))
    resumed = train(tmp_path / "broken", *ALPHAZERO, options=RESUMED)
    assert resumed.exit_code == 0, resumed.output
    assert weights(folder) == weights(tmp_path / "whole" / "run")
    assert logged_values(folder, "log.jsonl") == logged_values(tmp_path / "whole" / "run", "log.jsonl")
    assert not list(folder.glob("resume-*"))


@needs_posix
def test_the_process_ends_at_once_with_the_status_of_the_signal(tmp_path):
    """Tasks are running, and by default Python waits for them when it exits."""
    settings = ("name=run", "alphazero.rounds=2", "alphazero.playouts=60000", "alphazero.games=64")
    command = [sys.executable, "-m", "ninetka_train", "train", "-c", "quick", "--runs", str(tmp_path), *NO_GAMES]
    command += [argument for setting in settings for argument in ("--set", setting)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "learning 9tka" in line:
            break
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(5)  # the process is still playing its first round
    process.terminate()
    assert process.communicate(timeout=20)[1].splitlines()[-1] == "error: stopped by SIGTERM: continue with --resume"
    assert process.returncode == 143


def test_a_run_that_is_stopped_while_it_is_measured_loses_no_round(tmp_path, monkeypatch):
    measure, learn, learned = module._measure, ppo.learn, []

    def stopped(state, config, journal, player):
        if state.progress == 1 / 2:
            raise KeyboardInterrupt
        measure(state, config, journal, player)

    def counted(learner, batch):
        learned.append(learner.rollouts)
        return learn(learner, batch)

    monkeypatch.setattr(module, "_measure", stopped)
    monkeypatch.setattr(ppo, "learn", counted)
    settings = (*PPO, "checkpoint_every=20", "curve_games=2")
    assert train(tmp_path, *settings).exit_code == 130
    monkeypatch.setattr(module, "_measure", lambda *_: None)
    assert train(tmp_path, *settings, options=("--games", "1", "--resume")).exit_code == 0
    assert learned == list(range(6))
    assert [line["step"] for line in logged_values(tmp_path / "ppo", "log.jsonl")] == [64 * n for n in range(1, 7)]


@pytest.mark.parametrize("settings", [ALPHAZERO, PPO], ids=["alphazero", "ppo"])
def test_kept_checkpoints_do_not_depend_on_the_clock(tmp_path, settings):
    kept = []
    for minutes in ("1.0e-9", "1.0e+9"):
        done = train(tmp_path, *settings, f"name=m{minutes}", f"checkpoint_minutes={minutes}", options=NO_GAMES)
        assert done.exit_code == 0, done.output
        kept.append({path.name: path.read_bytes() for path in (tmp_path / f"m{minutes}").glob("*.safetensors")})
    assert kept[0] == kept[1]


@pytest.mark.parametrize(("keep", "kept"), [(1, [4]), (2, [3, 4]), (3, [2, 3, 4]), (0, [1, 2, 3, 4])])
def test_the_newest_checkpoints_are_kept(tmp_path, keep, kept):
    settings = (*ALPHAZERO, "checkpoint_every=1", f"keep_checkpoints={keep}")
    assert train(tmp_path, *settings, options=NO_GAMES).exit_code == 0
    for ending in ("safetensors", "json"):
        names = sorted(path.name for path in (tmp_path / "run").glob(f"step-*.{ending}"))
        assert names == [f"step-{step:012}.{ending}" for step in kept]


def test_a_resumed_run_keeps_its_own_settings_where_none_are_given(tmp_path):
    settings = ("name=run", "threads=1", *SMALL["alphazero"], "checkpoint_every=1")
    kept = ("keep_checkpoints=0", "checkpoint_minutes=7")
    assert train(tmp_path, *settings, *kept, "alphazero.rounds=3", options=NO_GAMES).exit_code == 0
    with pytest.warns(UserWarning, match="alphazero.rounds=4"):
        assert train(tmp_path, *settings, "alphazero.rounds=4", options=RESUMED).exit_code == 0
    assert len(list((tmp_path / "run").glob("step-*.safetensors"))) == 4
    config = load_config(tmp_path / "run" / "config.yaml")
    assert (config.keep_checkpoints, config.checkpoint_minutes) == (0, 7)
    with pytest.warns(UserWarning, match=r"alphazero\.rounds=5|keep_checkpoints=2") as warned:
        done = train(tmp_path, *settings, "alphazero.rounds=5", "keep_checkpoints=2", options=RESUMED)
    assert done.exit_code == 0
    assert str(warned[-1].message).endswith("run: keep_checkpoints=2: the next checkpoint removes the 3 oldest")
    assert [path.stem[-1] for path in sorted((tmp_path / "run").glob("step-*.safetensors"))] == ["4", "5"]


def test_a_checkpoint_to_resume_from_is_written_by_the_clock(tmp_path, monkeypatch):
    names = []
    write = alphazero.CheckpointWriter.write

    def noted(writer, scheduled):
        write(writer, scheduled)
        names.append(sorted(path.name for path in (tmp_path / "run").glob("*.safetensors")))

    monkeypatch.setattr(alphazero.CheckpointWriter, "write", noted)
    assert train(tmp_path, *ALPHAZERO, "checkpoint_minutes=1.0e-9", options=NO_GAMES).exit_code == 0
    assert names == [[f"resume-{n:012}.safetensors"] for n in (1, 2, 3)] + [["step-000000000004.safetensors"]]


def test_resume_starts_a_run_where_there_is_none(tmp_path):
    done = train(tmp_path, *ALPHAZERO, options=RESUMED)
    assert done.exit_code == 0, done.output
    assert len(logged_values(tmp_path / "run", "log.jsonl")) == 4
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("", encoding="utf-8")
    refused = train(tmp_path, *ALPHAZERO, "name=other", options=RESUMED)
    assert refused.exit_code == 2
    assert "other exists: " in refused.output
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    ("settings", "length", "longer", "schedule"),
    [
        (ALPHAZERO, "alphazero.rounds=4", "alphazero.rounds=6", "learning_rate falls"),
        (PPO, "ppo.moves=384", "ppo.moves=640", "learning_rate and entropy fall"),
    ],
)
def test_a_run_can_be_made_longer(tmp_path, settings, length, longer, schedule):
    assert train(tmp_path, *settings, options=NO_GAMES).exit_code == 0
    (folder,) = tmp_path.iterdir()
    (folder / "evaluation.json").write_text("[]", encoding="utf-8")
    key, was = length.split("=")
    with pytest.warns(UserWarning, match=f"{longer} .was {was}.: {schedule} until the new end"):
        done = train(tmp_path, *settings, longer, options=RESUMED)
    assert done.exit_code == 0, done.output
    assert not (folder / "evaluation.json").exists()
    lines = logged_values(folder, "log.jsonl")
    total = int(longer.split("=")[1])
    assert [line["progress"] for line in lines] == [round(min(1, line["step"] / total), 6) for line in lines]
    assert lines[-1]["step"] == total
    rates = [line["learning_rate"] for line in lines]
    assert rates[3] < rates[-2] or key == "ppo.moves"
    assert load_config(folder / "config.yaml", [longer]) == load_config(folder / "config.yaml")
    shorter = train(tmp_path, *settings, options=RESUMED)  # shorter than the finished part
    assert shorter.exit_code == 2
    assert f"{longer} (now {was})" in shorter.output


@needs_posix
def test_a_length_that_was_set_too_high_can_be_lowered(tmp_path, monkeypatch):
    stop_after(monkeypatch, 2, signal.SIGTERM)
    assert train(tmp_path, *ALPHAZERO, "alphazero.rounds=4000", options=NO_GAMES).exit_code == 143
    refused = train(tmp_path, *ALPHAZERO, "alphazero.rounds=2", options=RESUMED)
    assert refused.exit_code == 2
    assert "alphazero.rounds above 2, which is already done" in refused.output
    with pytest.warns(UserWarning, match="alphazero.rounds=3 .was 4000.: learning_rate falls until the new end"):
        assert train(tmp_path, *ALPHAZERO, "alphazero.rounds=3", options=RESUMED).exit_code == 0
    assert [line["progress"] for line in logged_values(tmp_path / "run", "log.jsonl")] == [0.333333, 0.666667, 1.0]


@needs_posix
@pytest.mark.parametrize("signals", [("SIGTERM", "SIGUSR1"), ("SIGINT", "SIGINT"), ("SIGTERM", "SIGINT", "SIGTERM")])
@pytest.mark.parametrize("while_saving", [False, True])
def test_signals_that_are_repeated_lose_nothing(tmp_path, monkeypatch, capfd, signals, while_saving):
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    first, *others = [getattr(signal, name) for name in signals]
    save = resume._HeldState.save

    def interrupted(state, folder, kind):
        for number in others:
            os.kill(os.getpid(), number)
        return save(state, folder, kind)

    try:
        stop_after(monkeypatch, 2, first)
        if while_saving:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(exit_handling, "REPEATED_SIGNAL_S", 0.0)
                patch.setattr(resume._HeldState, "save", interrupted)
                stopped = train(tmp_path, *ALPHAZERO, options=NO_GAMES)
        else:
            kill = os.kill
            monkeypatch.setattr(os, "kill", lambda _, number: [kill(os.getpid(), one) for one in (number, *others)])
            stopped = train(tmp_path, *ALPHAZERO, options=NO_GAMES)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert stopped.exit_code in (143, 130, 75)
    assert "Traceback" not in stopped.output + capfd.readouterr().err
    assert [path.name for path in (tmp_path / "run").glob("*.safetensors")] == ["resume-000000000002.safetensors"]


@needs_posix
def test_a_checkpoint_that_cannot_be_written_when_a_run_is_stopped_is_reported(tmp_path, monkeypatch):
    def full(state, folder, kind):
        raise OSError(28, "No space left on device", str(folder / kind))

    stop_after(monkeypatch, 2, signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resume._HeldState, "save", full)
        with pytest.warns(
            UserWarning, match="resume: No space left on device; what was learned since the last checkpoint"
        ):
            assert train(tmp_path, *ALPHAZERO, options=NO_GAMES).exit_code == 143


@needs_posix
def test_an_incomplete_first_checkpoint_starts_the_run_anew(tmp_path, monkeypatch):
    stop_after(monkeypatch, 2, signal.SIGTERM)
    assert train(tmp_path, *ALPHAZERO, options=NO_GAMES).exit_code == 143
    (tmp_path / "run" / "resume-000000000002.json").unlink()
    with pytest.warns(UserWarning, match="resume-000000000002.json.*it was never finished: starting a new run"):
        assert train(tmp_path, *ALPHAZERO, options=RESUMED).exit_code == 0
    assert [line["step"] for line in logged_values(tmp_path / "run", "log.jsonl")] == [1, 2, 3, 4]


@needs_posix
@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{}", "step is missing"),
        ('{"progress": 0.5, "seconds": 1.0}', "step is missing"),
        ('{"step": null, "seconds": 1}', "step=None: expected a number"),
        ("\xff\xfe", "expected a JSON object"),
    ],
)
def test_a_damaged_log_is_named(tmp_path, monkeypatch, line, problem):
    stop_after(monkeypatch, 2, signal.SIGTERM)
    assert train(tmp_path, *ALPHAZERO, options=NO_GAMES).exit_code == 143
    path = tmp_path / "run" / "log.jsonl"
    path.write_bytes(line.encode("latin-1") + b"\n" + path.read_bytes())
    done = train(tmp_path, *ALPHAZERO, options=RESUMED)
    assert done.exit_code == 2
    assert f"{path}, line 1: {problem}" in done.output


@pytest.mark.parametrize("game", ["ninetka", "go:size=5", "kropki:width=5,height=5"])
def test_a_round_without_positions_learns_from_earlier_rounds(tmp_path, game):
    few = ("games=1", "task_games=1", "playouts=8", "share=0.0001", "value_share=0.0", "playout_rounds=1", "rounds=3")
    few += ("steps=1", "minibatch=8", "microbatch=8", *(["exact_nodes=0"] if game == "ninetka" else []))
    settings = ("algorithm=alphazero", "name=run", f"game='{game}'", "threads=1", *(f"alphazero.{one}" for one in few))
    (tmp_path / "mine.yaml").write_text("seed: 1\n", encoding="utf-8")
    done = train(tmp_path, *settings, options=NO_GAMES, config=tmp_path / "mine.yaml")
    assert done.exit_code == 0, done.output
    assert len({line["positions"] for line in logged_values(tmp_path / "run", "log.jsonl")}) == 1


def test_a_run_leaves_the_number_of_torch_threads_as_it_was(tmp_path):
    before = torch.get_num_threads()
    assert train(tmp_path, *ALPHAZERO, "threads=7", options=NO_GAMES).exit_code == 0
    assert torch.get_num_threads() == before


@needs_posix
def test_a_run_may_be_resumed_on_other_numbers_of_threads(tmp_path, monkeypatch):
    stop_after(monkeypatch, 2, signal.SIGTERM)
    assert train(tmp_path, *ALPHAZERO, options=NO_GAMES).exit_code == 143
    with pytest.warns(UserWarning, match="resuming with threads=2 .was 1.: weights will differ by rounding"):
        done = train(tmp_path, *ALPHAZERO, "threads=2", "checkpoint_every=3", options=RESUMED)
    assert done.exit_code == 0, done.output
    assert [path.name for path in sorted((tmp_path / "run").glob("*.safetensors"))] == [
        "step-000000000003.safetensors", "step-000000000004.safetensors",
    ]  # fmt: skip


def test_a_second_process_is_refused_by_name(tmp_path):
    assert train(tmp_path, *ALPHAZERO, options=NO_GAMES).exit_code == 0
    folder = tmp_path / "run"
    held = "import sys, time; from pathlib import Path; from ninetka_train.learning.lock import locked\n"
    held += f"with locked(Path({str(folder)!r})): print('held', flush=True); time.sleep(60)"
    owner = subprocess.Popen([sys.executable, "-c", held], stdout=subprocess.PIPE, text=True)
    assert owner.stdout.readline() == "held\n"
    refused = train(tmp_path, *ALPHAZERO, options=RESUMED)
    owner.kill()
    owner.communicate()
    assert refused.exit_code == 2
    assert f"{folder}: process {owner.pid} on " in refused.output
    assert "is training there: wait until it has ended, or stop it" in refused.output
    assert (folder / LOCK_FILE).exists()  # the killed process left the file, but no longer locks it
    assert train(tmp_path, *ALPHAZERO, options=RESUMED).exit_code == 0
    assert not (folder / LOCK_FILE).exists()


@needs_posix
def test_a_file_system_without_locks_gives_a_warning(tmp_path, monkeypatch):
    with pytest.warns(UserWarning, match="cannot be locked: No such file"), locked(tmp_path / "missing"):
        pass

    def none(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", none)
    for _ in range(2):
        with (
            pytest.warns(UserWarning, match="cannot be locked: No locks available; only one process"),
            locked(tmp_path),
        ):
            pass


@needs_posix
def test_the_lock_of_another_user_is_respected_and_no_link_is_followed(tmp_path, monkeypatch):
    with locked(tmp_path):
        open_file = os.open

        def others(path, flags, *mode):
            if flags & os.O_RDWR:
                raise PermissionError(13, "Permission denied")
            return open_file(path, flags, *mode)

        monkeypatch.setattr(os, "open", others)
        with pytest.raises(ValueError, match=f"process {os.getpid()} on .* is training there"), locked(tmp_path):
            pass
        monkeypatch.undo()
    (tmp_path / "mine").write_text("mine", encoding="utf-8")
    (tmp_path / LOCK_FILE).symlink_to(tmp_path / "mine")
    with pytest.warns(UserWarning, match="cannot be locked"), locked(tmp_path):
        pass
    assert (tmp_path / "mine").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("algorithm", ["ppo", "alphazero"])
@pytest.mark.parametrize("rate", ["1.0e+18", "1.0e+30"])
def test_a_network_that_diverges_in_its_first_step_is_not_kept(tmp_path, algorithm, rate):
    """With the smaller rate, the weights stay finite, but the network's outputs do not."""
    one_step = ("alphazero.steps=1", "alphazero.warm_up=1", "ppo.minibatch=64", "ppo.microbatch=64")
    settings = (f"algorithm={algorithm}", "name=run", "threads=1", *SMALL[algorithm], *one_step)
    done = train(tmp_path, *settings, f"{algorithm}.learning_rate={rate}", options=NO_GAMES)
    assert done.exit_code == 2, done.output
    assert "not finite any more: lower learning_rate" in done.output
    assert not list((tmp_path / "run").glob("*.safetensors"))


def test_tasks_change_no_other_thread_s_number_of_torch_threads():
    before = torch.get_num_threads()
    set_torch_threads(3)
    try:
        single_threaded_pool.cache_clear()
        pool = single_threaded_pool(4)
        both = threading.Barrier(4)

        def task(_):
            both.wait()
            return torch.get_num_threads(), torch.ones(400, 400) @ torch.ones(400, 400)

        assert [one for one, _ in pool.map(task, range(4))] == [1] * 4
        assert torch.get_num_threads() == 3
        with ThreadPoolExecutor(1) as other:
            assert other.submit(torch.get_num_threads).result() == 3
    finally:
        set_torch_threads(before)


@pytest.mark.parametrize("algorithm", ["ppo", "alphazero"])
def test_the_learner_computes_with_its_own_number_of_threads(tmp_path, monkeypatch, algorithm):
    """Agents and tasks that are created during learning do not change the learner's number of torch threads."""
    learning, seen = {"ppo": ppo, "alphazero": alphazero}[algorithm], []
    losses = learning.losses

    def noted(*arguments):
        seen.append(torch.get_num_threads())
        return losses(*arguments)

    monkeypatch.setattr(learning, "losses", noted)
    before = torch.get_num_threads()
    more = ("ppo.moves=192", "ppo.league_share=0.5", "ppo.league_agents=['net:gen-7,threads=1']")
    small = (*SMALL[algorithm], "alphazero.rounds=3", "curve_games=2")
    settings = (f"algorithm={algorithm}", "name=run", "threads=3", *small, *more)
    try:
        assert train(tmp_path, *settings, options=NO_GAMES).exit_code == 0
    finally:
        set_torch_threads(before)
    assert seen
    assert set(seen) == {3}


def test_ppo_s_minibatches_are_of_about_one_size(monkeypatch):
    """If the last minibatch had only a few moves, its step would be as large as that of a full minibatch."""
    config = load_config(None, [*PPO, "ppo.league_share=0.5", "ppo.league_every=1", "ppo.games=9", "ppo.plies=9"])
    learner = ppo.new_learner(config)
    sizes, losses = [], ppo.losses

    def noted(outputs, batch, *others):
        sizes.append(len(batch.actions))
        return losses(outputs, batch, *others)

    monkeypatch.setattr(ppo, "losses", noted)
    ppo.grow_league(learner)
    ppo.draw_opponents(learner)
    batch = ppo.make_batch(ppo.play(learner), 0.9)
    ppo.learn(learner, batch)
    assert sum(sizes) == len(batch.actions) * config.ppo.epochs
    assert len(sizes) == -(-len(batch.actions) // 32) * config.ppo.epochs
    assert np.ptp(sizes) <= 1


def test_the_log_has_the_schedules(tmp_path):
    assert train(tmp_path, *PPO, options=NO_GAMES).exit_code == 0
    rates = [line["learning_rate"] for line in logged_values(tmp_path / "ppo", "log.jsonl")]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == 1e-3

"""Tests that commands print one line if memory runs out, whatever exception a library raises."""

from __future__ import annotations

import errno
import sys

import pytest
import typer
from typer.testing import CliRunner

from ninetka_train.commands.group import CommandGroup
from ninetka_train.exit_handling import check_address_space, exit_on_error, is_out_of_memory


class PanicException(BaseException):
    """The exception that Rust libraries raise."""


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes."),
        RuntimeError("could not create a primitive"),
        RuntimeError("could not create a memory object"),
        RuntimeError("could not execute a primitive"),
        RuntimeError("std::bad_alloc"),
        RuntimeError("can't start new thread"),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        PanicException("PyObject pointer is null"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        ImportError("libtorch_cpu.so: cannot allocate memory in static TLS block"),
    ],
    ids=str,
)
def test_out_of_memory_errors_are_recognised(error):
    assert is_out_of_memory(error)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("could not create a descriptor for a convolution forward propagation primitive"),
        RuntimeError("shape mismatch"),
        ValueError("out of memory"),
        OSError(errno.ENOENT, "No such file"),
        ImportError("No module named 'torch'"),
    ],
    ids=str,
)
def test_other_errors_are_not_out_of_memory(error):
    assert not is_out_of_memory(error)


def outcome(error):
    """Run a command that raises an error; return its exit status and output."""
    app = typer.Typer(cls=CommandGroup)

    @app.command()
    def work():
        raise error

    app.command("other")(lambda: None)
    done = CliRunner().invoke(app, ["work"])
    return done.exit_code, done.output


def test_command_without_memory_ends_with_one_line():
    assert outcome(MemoryError()) == (1, "error: the command does not fit into memory\n")
    assert outcome(PanicException("PyObject pointer is null")) == (1, "error: the command does not fit into memory\n")
    assert outcome(RuntimeError("std::bad_alloc")) == (1, "error: the command does not fit into memory\n")


def test_import_without_memory_is_not_reported_as_missing(capsys):
    for error, status, message in (
        (ImportError("x.so: failed to map segment from shared object"), 1, "pictures need more memory: x.so: failed"),
        (ImportError("No module named 'x'", name="x"), 2, """pictures need x: pip install -e ".[train]" (in a clone"""),
    ):
        with pytest.raises(typer.Exit) as end, exit_on_error("pictures"):
            raise error
        assert end.value.exit_code == status
        assert f"error: {message}" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_training_is_refused_if_ulimit_is_too_low(monkeypatch, capsys):
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda _: (1500000 << 10, resource.RLIM_INFINITY))
    with pytest.raises(typer.Exit) as end:
        check_address_space()
    assert end.value.exit_code == 1
    expected = "error: training does not fit into memory: `ulimit -v` allows 1464 MiB, expected at least 2048\n"
    assert capsys.readouterr().err == expected
    for enough in (resource.RLIM_INFINITY, 4 << 30):
        monkeypatch.setattr(resource, "getrlimit", lambda _, enough=enough: (enough, enough))
        check_address_space()

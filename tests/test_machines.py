"""Tests of differences between machines: cores, processors, versions of Python and torch, terminals, file systems.

Each test patches what differs on another machine.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import io
import mimetypes
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import llvmlite.binding as llvm
import numba
import pytest
from llvmlite import ir

from ninetka_agents.agent import check_threads
from ninetka_agents.go.gtp import process
from ninetka_env import ninetka_v0
from ninetka_env.core import files, threads
from ninetka_train import cli, machine
from ninetka_train.reporting.boards import print_boards

ROOT = Path(__file__).parent.parent

# Cores


def control_groups(root: Path, listed: str, limits: dict[str, str]) -> Path:
    """Write files like those of Linux's control groups below `root`; return `root`.

    Args:
        root: replaces the root of the file system.
        listed: text of `/proc/self/cgroup`, which lists the groups of this process.
        limits: texts of files by path below `/sys/fs/cgroup`.
    """
    limits = {f"sys/fs/cgroup/{name}": text for name, text in limits.items()} | {"proc/self/cgroup": listed}
    for name, text in limits.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


V1 = "5:cpuset:/\n4:cpu,cpuacct:/jobs/7\n1:name=systemd:/\n"


@pytest.mark.parametrize(
    ("listed", "limits", "expected"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),  # a container
        ("0::/\n", {"cpu.max": "max 100000\n"}, float("inf")),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "50000 100000\n", "cpu.max": "9 1\n"}, 0.5),
        ("0::/docker/1f\n", {"cpu.max": "200000 100000\n"}, 2.0),  # the host's path, which the container does not see
        ("0::/../..\n", {"cpu.max": "200000 100000\n"}, 2.0),
        (V1, {"cpu,cpuacct/jobs/7/cpu.cfs_quota_us": "30000", "cpu,cpuacct/jobs/7/cpu.cfs_period_us": "10000"}, 3.0),
        (V1, {"cpu,cpuacct/jobs/7/cpu.cfs_quota_us": "-1", "cpu,cpuacct/jobs/7/cpu.cfs_period_us": "9"}, float("inf")),
        (V1.replace("cpu,cpuacct", "cpuacct,cpu"), {"cpu/cpu.cfs_quota_us": "5", "cpu/cpu.cfs_period_us": "1"}, 5.0),
        (V1, {"cpu,cpuacct/cpu.cfs_quota_us": "40", "cpu,cpuacct/cpu.cfs_period_us": "10"}, 4.0),
        ("0::/\n", {"cpu.max": "nonsense"}, float("inf")),
        ("0::/\n", {"cpu.max": "1 0"}, float("inf")),
        ("nonsense\n", {}, float("inf")),
    ],
)
def test_the_quota_is_the_lowest_of_all_groups(tmp_path, listed, limits, expected):
    assert threads._quota(control_groups(tmp_path, listed, limits)) == expected


def test_control_groups_may_have_any_name(tmp_path):
    root = control_groups(tmp_path, "", {"cpu.max": "50 100"})
    (root / "proc/self/cgroup").write_bytes(b"0::/caf\xe9\n")
    assert threads._quota(root) == 0.5


def test_without_control_groups_there_is_no_quota(tmp_path):
    assert threads._quota(tmp_path) == float("inf")


@pytest.mark.parametrize(("quota", "expected"), [(float("inf"), 64), (0.2, 1), (1.5, 2), (100.0, 64)])
def test_cores_are_those_of_the_quota(monkeypatch, quota, expected):
    monkeypatch.setattr(threads, "_affinity_cores", lambda: 64)
    monkeypatch.setattr(threads, "_quota", lambda root: quota)
    assert threads.available_cores() == expected


def test_the_default_number_of_threads_follows_the_quota(monkeypatch):
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 64)
    monkeypatch.setattr(threads, "available_cores", lambda: 3)
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    env = ninetka_v0.vector_env(4096)
    assert (threads.default_num_threads(), check_threads(0), check_threads(9), env._num_helpers + 1) == (3, 3, 3, 3)
    env.close()
    monkeypatch.setenv("NUMBA_NUM_THREADS", "64")
    assert check_threads(9) == 9


def test_a_network_keeps_to_the_quota(monkeypatch):
    torch = pytest.importorskip("torch")
    from ninetka_agents import make_agent, net_agent

    calls = []
    monkeypatch.setattr(torch, "get_num_threads", lambda: 64)
    monkeypatch.setattr(torch, "set_num_threads", calls.append)
    monkeypatch.setattr(net_agent, "available_cores", lambda: 2)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    make_agent("net")
    monkeypatch.setenv("OMP_NUM_THREADS", "64")
    make_agent("net")
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    make_agent("net")
    assert calls == [2]


# Processors


RASPBERRY_PI_4 = "".join(
    f"processor\t: {core}\nBogoMIPS\t: 108.00\nCPU implementer\t: 0x41\nCPU architecture: 8\n"
    "CPU variant\t: 0x0\nCPU part\t: 0xd08\nCPU revision\t: 3\n\n"
    for core in range(4)
)
BIG_AND_LITTLE = RASPBERRY_PI_4 + RASPBERRY_PI_4.replace("0xd08", "0xd03")


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        ("processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD EPYC 9354P\nflags\t\t: fpu\n", "AMD EPYC 9354P"),
        (RASPBERRY_PI_4, "CPU implementer 0x41, CPU part 0xd08, CPU variant 0x0, CPU revision 3"),
        (BIG_AND_LITTLE, "CPU implementer 0x41, CPU part 0xd03 0xd08, CPU variant 0x0, CPU revision 3"),
        ("", ""),
    ],
)
def test_processors_are_distinguished(cpuinfo, expected):
    assert machine._processor_from_cpuinfo(cpuinfo) == expected


@pytest.mark.parametrize(
    ("machine_name", "triple", "instruction"),
    [
        ("x86_64", "x86_64-unknown-linux-gnu", "pause"),
        ("amd64", "x86_64-pc-windows-msvc", "pause"),
        ("aarch64", "aarch64-unknown-linux-gnu", "isb"),
        ("arm64", "arm64-apple-darwin", "isb"),
        ("riscv64", "x86_64-unknown-linux-gnu", ""),
    ],
)
def test_helpers_that_wait_pause_on_every_processor(machine_name, triple, instruction):
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), []), "wait")
    builder = ir.IRBuilder(function.append_basic_block())
    threads._add_pause(builder, machine_name)
    builder.ret_void()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple).create_target_machine()
    words = target.emit_assembly(llvm.parse_assembly(str(module))).split()
    assert {"pause", "isb"} & set(words) == ({instruction} if instruction else set())


def test_a_processor_has_a_name():
    machine.processor_name.cache_clear()
    assert machine.processor_name().strip()


@pytest.mark.parametrize(("capability", "expected"), [((7, 5), False), ((8, 0), True), ((9, 0), True)])
def test_gpus_multiply_in_bfloat16_from_ampere_on(monkeypatch, capability, expected):
    torch = pytest.importorskip("torch")
    from ninetka_agents.net_agent import has_bf16

    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert has_bf16(torch.device("cuda")) is expected


def test_without_torchs_private_function_a_processor_has_no_bf16(monkeypatch):
    torch = pytest.importorskip("torch")
    from ninetka_agents.net_agent import has_bf16

    monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported", raising=False)
    assert has_bf16(torch.device("cpu")) is False


# Pythons


def test_sgf_is_read_without_a_warning_where_sgfmill_was_not_compiled(tmp_path):
    place = Path(find_spec("sgfmill").origin).parent
    shutil.copytree(place, tmp_path / "sgfmill", ignore=shutil.ignore_patterns("__pycache__"))
    variables = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-W", "error::SyntaxWarning", "-W", "error:invalid escape sequence", "-c"]
    code = "import ninetka_env.core.sgf, sgfmill; print(sgfmill.__file__)"
    done = subprocess.run([*command, code], env=os.environ | variables, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == (str(tmp_path / "sgfmill" / "__init__.py"), "")


# Terminals


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of Windows are queried differently")
@pytest.mark.parametrize(
    ("variables", "colours"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "38;2;"),
        ({"TERM": "xterm-256color"}, "38;5;"),
        ({"TERM": "xterm"}, "\x1b[97m"),  # the nearest of 16: bright white
        ({"TERM": "dumb"}, ""),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"}, ""),
    ],
)
def test_boards_are_shown_in_the_colours_that_the_terminal_has(monkeypatch, capsys, variables, colours):
    for name in ("TERM", "COLORTERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**variables, "FORCE_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    requested = []

    def draw(color):
        requested.append(color)
        board = f"{'B' * 200}  end"  # wider than the terminal, but it must not be wrapped
        return [f"\x1b[48;2;30;30;30m\x1b[38;2;250;250;250m{board}\x1b[0m" if color else board] * 2

    print_boards(draw)
    shown = capsys.readouterr().out
    assert requested == [bool(colours)]
    assert ("\x1b" in shown) == bool(colours)
    assert colours in shown
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown) == f"{'B' * 200}  end\n\n" * 2


@pytest.mark.parametrize(
    ("platform", "terminal", "variable", "expected"),
    [
        ("win32", False, None, "utf-8"),
        ("win32", True, None, "cp1252"),
        ("win32", False, "cp1252", "cp1252"),
        ("linux", False, None, "cp1252"),
    ],
)
def test_files_and_pipes_get_utf_8_on_windows(monkeypatch, platform, terminal, variable, expected):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr(stream, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(cli, "sys", SimpleNamespace(platform=platform))
    monkeypatch.delenv("PYTHONIOENCODING", raising=False)
    if variable:
        monkeypatch.setenv("PYTHONIOENCODING", variable)
    assert cli._encoding_of(stream) == expected


# Paths, pipes and file systems


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (r"C:\gnugo\gnugo.exe --mode gtp", [r"C:\gnugo\gnugo.exe", "--mode", "gtp"]),
        (r'"C:\Program Files\gnugo.exe" --mode gtp', [r"C:\Program Files\gnugo.exe", "--mode", "gtp"]),
        ("C:/gnugo/gnugo.exe", ["C:/gnugo/gnugo.exe"]),
        ("", []),
    ],
)
def test_command_lines_of_windows_keep_their_backslashes(command, words):
    assert process._words(command, is_windows=True) == words


def test_a_closed_pipe_is_recognised_by_errno(monkeypatch):
    monkeypatch.setattr(files, "sys", SimpleNamespace(platform="linux"))
    assert files.is_closed_pipe(OSError(errno.EPIPE, "broken pipe"))
    assert not files.is_closed_pipe(OSError(errno.EINVAL, "invalid argument"))
    monkeypatch.setattr(files, "sys", SimpleNamespace(platform="win32"))
    assert files.is_closed_pipe(OSError(errno.EINVAL, "invalid argument"))
    assert not files.is_closed_pipe(OSError(errno.EINVAL, "invalid argument", "a?b.txt"))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not synchronise folders")
@pytest.mark.parametrize("number", [errno.EINVAL, errno.EACCES, errno.EIO])
def test_files_are_replaced_where_folders_cannot_be_synchronised(monkeypatch, tmp_path, number):
    synchronise = os.fsync

    def refuse_folders(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        synchronise(descriptor)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    with pytest.raises(OSError, match="cannot write: Input") if number == errno.EIO else nullcontext():
        files.replace_file(tmp_path / "file", [b"whole"])
    assert (tmp_path / "file").read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


@pytest.mark.parametrize("platform", ["linux", "win32"])
def test_an_engine_is_killed_with_its_child_processes(monkeypatch, platform):
    ended = []
    engine = process.EngineProcess.__new__(process.EngineProcess)
    engine._process = SimpleNamespace(pid=7, kill=lambda: ended.append("kill"))
    monkeypatch.setattr(process, "sys", SimpleNamespace(platform=platform))
    monkeypatch.setattr(process.subprocess, "run", lambda command, **options: ended.append(" ".join(command)))
    monkeypatch.setattr(process.signal, "SIGKILL", 9, raising=False)
    monkeypatch.setattr(process.os, "killpg", lambda group, number: ended.append(f"group {group}"), raising=False)
    engine._kill()
    assert ended == (["taskkill /F /T /PID 7", "kill"] if platform == "win32" else ["group 7"])


# The web server


def test_static_files_have_their_mime_types_on_every_system(monkeypatch):
    fastapi = pytest.importorskip("fastapi")
    from ninetka_web.server import server

    wrong_type = ("text/plain", None)  # some programs set this type for `.js` in Windows' registry
    monkeypatch.setattr(mimetypes, "guess_type", lambda *_, **__: wrong_type)
    app = fastapi.FastAPI()
    server._add_static_routes(app)

    async def get(path):
        sent = []

        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": [], "root_path": ""}
        await app(scope, receive, send)
        return sent[0]["status"], dict(sent[0]["headers"])[b"content-type"].decode().partition(";")[0]

    folder = ROOT / "ninetka_web" / "static"
    parts = [path.relative_to(folder).as_posix() for path in folder.rglob("*.*") if path.name != "index.html"]
    expected = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    found = {part: asyncio.run(get(f"/static/{part}")) for part in parts}
    assert found == {part: (200, expected[part.rpartition(".")[2]]) for part in parts}


def test_connections_to_browsers_set_tcp_nodelay():
    uvicorn = pytest.importorskip("uvicorn")
    from uvicorn.server import ServerState

    from ninetka_web.server.connections import HttpProtocol

    options = []

    class Watched(HttpProtocol):
        def connection_made(self, transport):
            super().connection_made(transport)
            accepted = transport.get_extra_info("socket")
            options.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    async def connect():
        config = uvicorn.Config(lambda: None, log_level="critical")
        config.load()
        listener = socket.create_server(("127.0.0.1", 0))  # `proto` is 0, so asyncio does not set TCP_NODELAY
        make = functools.partial(Watched, config=config, server_state=ServerState(), app_state={})
        server = await asyncio.get_running_loop().create_server(make, sock=listener)
        _, writer = await asyncio.open_connection(*listener.getsockname())
        while not options:
            await asyncio.sleep(0.01)
        writer.close()
        server.close()

    asyncio.run(asyncio.wait_for(connect(), 30))
    assert options[0] != 0


@pytest.mark.parametrize(("platform", "option"), [("linux", "SO_REUSEADDR"), ("win32", "SO_EXCLUSIVEADDRUSE")])
def test_a_taken_port_is_refused(monkeypatch, platform, option):
    pytest.importorskip("uvicorn")
    from ninetka_web.server import server

    calls = []
    monkeypatch.setattr(socket, "SO_EXCLUSIVEADDRUSE", -5, raising=False)
    monkeypatch.setattr(server, "sys", SimpleNamespace(platform=platform))
    server._set_exclusive_bind(SimpleNamespace(setsockopt=lambda *numbers: calls.append(numbers)))
    assert calls == [(socket.SOL_SOCKET, getattr(socket, option), 1)]

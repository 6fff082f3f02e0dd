"""Tests of the guides to trainers: code blocks compile, ninetka has the names that they use, and SB3's blocks run.

`make docs-trainers` runs all guides, each in its own environment.
"""

from __future__ import annotations

import ast
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest

import ninetka_env  # noqa: F401  registers the environment ids

GUIDES = Path(__file__).resolve().parent.parent / "docs" / "trainers"
PAGES = sorted(path.stem for path in GUIDES.glob("*.md") if path.stem != "index")
PAGES_WITHOUT_TORCH = ["jax"]
programs_of = runpy.run_path(str(GUIDES / "run.py"))["for_each_game"]


def text_of(page: str) -> str:
    return (GUIDES / f"{page}.md").read_text("utf-8")


def blocks_of(page: str, language: str = "python") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text_of(page), re.S | re.M)


@pytest.mark.parametrize("page", PAGES)
def test_blocks_compile_and_names_of_ninetka_exist(page: str) -> None:
    assert blocks_of(page)
    for program in [program for block in blocks_of(page) for program in programs_of(block)]:
        compile(program, page, "exec")
        nodes, ours = list(ast.walk(ast.parse(program))), {}
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.module.startswith("ninetka"):
                exec(ast.unparse(node), ours)
        for node in nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ours:
                assert hasattr(ours[node.value.id], node.attr), ast.unparse(node)
        names = re.findall(r"ninetka_env:(ninetka_env/[\w-]+)", program)
        assert ours or names
        assert all(name in gymnasium.registry for name in names)


@pytest.mark.parametrize("page", PAGES)
def test_the_programs_of_a_page_use_one_game_each(page: str) -> None:
    words = [re.compile("ninetka_v0|Ninetka-v0"), re.compile("go_v0|Go-v0"), re.compile("kropki_v0|Kropki-v0")]
    for block in blocks_of(page):
        found = [[bool(word.search(program)) for word in words] for program in programs_of(block)]
        assert found == [[True, False, False], [False, True, False], [False, False, True]]


@pytest.mark.parametrize("page", PAGES)
def test_page_states_test_date_and_pinned_versions(page: str) -> None:
    tried = r"^Tried (\d{4}-\d\d-\d\d) on 9tka, Go and Kropki with (.*)\.$"
    ((day, versions),) = re.findall(tried, text_of(page), re.M)
    tested_versions = dict(one.split(" ") for one in versions.split(", "))
    (installs,) = blocks_of(page, "sh")
    pins = re.findall(r"([\w-]+)(?:\[\w+\])?==([\w.]+)", installs)
    assert page in PAGES_WITHOUT_TORCH or ("torch", tested_versions["torch"]) in pins
    assert all(tested_versions[name] == version for name, version in pins)
    (row,) = [line for line in text_of("index").splitlines() if f"]({page}.md)" in line]
    assert day in row
    assert tested_versions["Python"] in row
    assert any(f"| {name} {version} |" in row for name, version in pins)


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", range(len(blocks_of("sb3"))))
def test_sb3s_blocks_run(number: int, tmp_path: Path) -> None:
    """Each block runs with one game, and all three games are used."""
    pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed")
    command = [sys.executable, "-c", programs_of(blocks_of("sb3")[number])[number % 3]]
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}  # torch's threads spin and slow down other tests
    done = subprocess.run(command, cwd=tmp_path, env=one_thread, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr

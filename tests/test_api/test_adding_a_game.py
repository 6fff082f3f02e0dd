"""The page that teaches how to add a game: its code runs as it stands there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-game.md"


def test_the_code_of_the_page_runs(tmp_path):
    """In a process of its own: the toy game of the tests has the same name."""
    text = PAGE.read_text(encoding="utf-8")
    game, use = (re.findall(r"```python\n(.*?)```", part, re.DOTALL) for part in text.split("## Play it"))
    assert (len(game), len(use)) == (5, 2)
    assert use[-1].endswith('check("tictactoe")\n')
    (tmp_path / "tictactoe.py").write_text("\n".join(game), encoding="utf-8")
    (tmp_path / "use.py").write_text("\n".join(use), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "use.py"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0
    shares = [float(share) for share in done.stdout.strip("[]\n").split()]
    assert sum(shares) == pytest.approx(1)
    assert shares[0] > shares[1]


def test_the_page_names_what_exists():
    text = PAGE.read_text(encoding="utf-8")
    for path in re.findall(r"`((?:ninetka_env|agents)/[\w/]+(?:\.py)?/?)`", text.replace("NAME/", "ninetka/")):
        assert (PAGE.parents[1] / path).exists(), path

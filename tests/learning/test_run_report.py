"""Test the report of a run, which needs only the files in the run's folder."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("torch")

import yaml
from rich.console import Console
from typer.testing import CliRunner

from ninetka_agents import make_agent
from ninetka_agents.plugins import plugins_of
from ninetka_env.api.record_files import write_records
from ninetka_train.cli import app
from ninetka_train.judging.arena import play_games
from ninetka_train.judging.evaluate import summarise
from ninetka_train.judging.ratings import wilson_interval
from ninetka_train.judging.report import evaluation_dict
from ninetka_train.judging.saved_games import game_records
from ninetka_train.reporting import run_data
from ninetka_train.reporting.page import write_page
from ninetka_train.reporting.run_data import RunData, WinShare, read_run, report_tables, summary
from ninetka_train.reporting.run_report import print_run, write_report


class NamedAgent:
    """An agent with a given name and the moves of the agent `spec`."""

    def __init__(self, name, spec):
        self.name, self.act = name, make_agent(spec).act


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return the folder of a finished run of 2 and 3 players with made-up logs, without training."""
    folder = tmp_path_factory.mktemp("runs") / "a<b"
    folder.mkdir()
    (folder / "config.yaml").write_text(
        yaml.safe_dump({"name": "a<b", "algorithm": "ppo", "players": [2, 3]}), encoding="utf-8"
    )
    log = [{"policy_loss": 1 / n, "entropy": 2 / n, "progress": n / 9, "seconds": 60.0 * n} for n in range(1, 10)]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log), encoding="utf-8")
    evaluations, records, curve = [], [], []
    names = ("net", "net places, maxn moves", "maxn places, net moves")
    for players in (2, 3):
        for name, opponent in [(names[0], "random"), *[(name, "maxn") for name in names]]:
            results = play_games([NamedAgent(name, "maxn:depth=1"), NamedAgent(opponent, "random")], players, 6)
            evaluations.append(evaluation_dict(summarise(results)))
            records += game_records(results, range(results.schedule.rotation))
        numbers = {"players": players, "opponent": "maxn", "games": 10, "evaluation_seconds": 1.5}
        curve += [{"progress": n / 9, "seconds": 60.0 * n, **numbers, "wins": n} for n in (1, 5)]
    (folder / "curve.jsonl").write_text("".join(json.dumps(line) + "\n" for line in curve), encoding="utf-8")
    (folder / "evaluation.json").write_text(json.dumps(evaluations), encoding="utf-8")
    write_records(folder / "games.txt", records)
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    return Path(shutil.copytree(finished, tmp_path / finished.name))


class Page(HTMLParser):
    """Collects elements that are still open at the end, URLs that are loaded, table cells and text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.loaded, self.cells, self.text = [], [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "!doctype"):
            self.open.append(tag)
        self.loaded += [value for key, value in attributes if key in ("src", "href", "xlink:href") and value[0] != "#"]

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.cells.append(data)


def test_the_report_is_two_pictures_and_a_page_that_loads_nothing(folder):
    write_report(folder)
    pictures = [(folder / name).read_bytes() for name in ("report.png", "report-dark.png")]
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    assert pictures[0] != pictures[1]
    text = (folder / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == page.loaded == []
    assert "url(http" not in text
    assert "@import" not in text
    assert "a<b" in page.text
    drawn = "".join(re.findall(r"(?s)<figure>.*?</figure>", text))
    assert not re.findall(r"#[0-9a-f]{6}\b", drawn)  # the page's theme colours the plots
    run = read_run(folder)
    cells = [cell for sheet in report_tables(run) for row in (sheet.columns, *sheet.rows) for cell in row]
    assert page.cells == cells
    assert text.count("<figure>") == 2 * 2 + 2
    assert text.count('class="board"') == 6


def test_a_report_is_written_completely_or_not_at_all(folder, monkeypatch):
    monkeypatch.setattr("ninetka_train.reporting.page.write_page", lambda run: "\udc80")  # cannot be encoded
    with pytest.raises(UnicodeEncodeError):
        write_report(folder)
    assert not list(folder.glob("report*"))


def test_captions_of_the_page_say_the_number_of_games_and_the_intervals(folder):
    text = write_page(read_run(folder))
    captions = re.findall("<figcaption>(.*?)</figcaption>", text)
    assert len(captions) == text.count("<figure>")
    assert captions[0].startswith("Wins in 6 to 10 games per point; areas: 95 % Wilson intervals")
    assert captions[1].startswith("Wins in 6 games per row; bars: 95 % Wilson intervals")
    assert captions[-1] == "n = 9 rollouts."


def test_tables_show_the_figures_of_the_evaluation(folder):
    evaluations = json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))
    titles = [sheet.title for sheet in report_tables(read_run(folder))]
    assert titles == [
        f"{players} players: {what}"
        for players in (2, 3)
        for what in ("wins of the network", "what each phase is worth")
    ]
    three = report_tables(read_run(folder))[2:]
    net = evaluations[4]["agents"][0]
    seats = [f"{100 * seat['wins'] / seat['games']:.1f}" for seat in net["seats"]]
    assert three[0].rows[0][:2] == ("random", str(net["games"]))
    assert three[0].rows[0][2].startswith(f"{100 * net['share']:.1f} [{100 * net['interval'][0]:.1f}, ")
    assert list(three[0].rows[0][3:]) == seats
    assert [row[:2] for row in three[1].rows] == [("net", "net"), ("net", "maxn"), ("maxn", "net")]


@pytest.mark.parametrize(("game", "players"), [("ninetka", 4), ("go", 2), ("kropki", 2)])
def test_tables_fit_80_columns(folder, game, players, monkeypatch, capsys):
    """All opponents, the teacher and the default opponent of each game, with the widest figures."""
    parts = plugins_of(game)
    run, teacher = read_run(folder), f"{parts.teacher},exploration=0.7,simulations=400"
    shares = [
        WinShare(agent, opponent, f"{players} players", players, 1000, 1000, ((250, 250),) * players)
        for agent in ("net", teacher, parts.default_opponent)
        for opponent in parts.evaluation_opponents
    ]
    vars(run).update(benchmark=shares, shares=shares)  # cached properties
    monkeypatch.setattr(RunData, "teacher", teacher)
    monkeypatch.setattr("ninetka_train.reporting.run_report.read_run", lambda folder: run)
    monkeypatch.setattr("ninetka_train.reporting.run_report.report_console", lambda: Console(width=80))
    print_run(folder)
    lines = capsys.readouterr().out
    assert max(map(len, lines.splitlines())) <= 80
    assert "\N{HORIZONTAL ELLIPSIS}" not in lines
    for spec in (*parts.evaluation_opponents, parts.default_opponent):
        assert spec.split(",")[-1] in lines
    assert "teacher" in lines


def test_the_summary_gives_the_seconds_of_evaluations(folder):
    assert summary(read_run(folder)).split("; ") == [
        "2 and 3 players",
        "PPO from the network's own games",
        "trained for 9 min 0 s",
        "best of the curve at 56% of the run (50% of games)",
        "the games of the curve took 6 s in addition",
    ]


def test_an_unfinished_run_is_shown(folder):
    for name in ("evaluation.json", "games.txt"):
        (folder / name).unlink()
    log = (folder / "log.jsonl").read_text(encoding="utf-8")
    (folder / "log.jsonl").write_text("".join(log.splitlines(keepends=True)[:4]) + '{"policy_lo', encoding="utf-8")
    done = CliRunner().invoke(app, ["report", str(folder)])
    assert done.exit_code == 0, done.output
    assert "trained for 4 min 0 s (44% of the run)" in done.output
    for name in ("curve.jsonl", "log.jsonl"):
        (folder / name).write_text("", encoding="utf-8")
        assert CliRunner().invoke(app, ["report", str(folder)]).exit_code == 0
        (folder / name).unlink()
    assert CliRunner().invoke(app, ["report", str(folder)]).exit_code == 0


LINE = '{"progress": 0.5, "seconds": 60}'
CURVE_LINE = '{"progress": 1, "players": 2, "opponent": "maxn", "games": 9, "wins": 1, "evaluation_seconds": 1}'


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("log.jsonl", f"{LINE}\nx\n", "log.jsonl, line 2: expected a JSON object, found 'x'"),
        ("log.jsonl", f"{LINE}\n{LINE[:9]}\n", "log.jsonl, line 2: expected a JSON object, found '{"),
        ("log.jsonl", f"{LINE}\n[1]", "log.jsonl, line 2: expected a JSON object, found '[1]'"),
        ("log.jsonl", "\x89PNG\0", "log.jsonl, line 1: expected a JSON object, found '"),
        ("log.jsonl", '{"progress": 1}\n', "log.jsonl, line 1: seconds is missing"),
        ("log.jsonl", '{"progress": 1, "seconds": []}\n', "log.jsonl, line 1: seconds=[]: expected a number"),
        ("curve.jsonl", f"{LINE}\n", "curve.jsonl, line 1: players is missing"),
        ("curve.jsonl", '{"opponent": 1}', "curve.jsonl, line 1: progress is missing"),
        ("curve.jsonl", CURVE_LINE.replace("9", "0"), "curve.jsonl: was not written by a run: division by zero"),
        ("config.yaml", "", "config.yaml: was not written by a run: 'players' is missing"),
        ("config.yaml", "players: 2", "config.yaml: was not written by a run: 'int' object is not iterable"),
        ("config.yaml", "players: [", "config.yaml: is not a YAML file of settings: line 1: "),
        ("config.yaml", None, "not the folder of a run (config.yaml is missing)"),
        ("evaluation.json", "[", "evaluation.json: is not complete JSON"),
        ("evaluation.json", "", "evaluation.json: is not complete JSON"),
        ("evaluation.json", 9999 * "[", "evaluation.json: is not complete JSON"),
        ("evaluation.json", '{"agents": []}', "evaluation.json: expected a list of matches, found {'agents': []}"),
        ("evaluation.json", "[{}]", "evaluation.json: was not written by a run: 'agents' is missing"),
        ("games.txt", "x", "games.txt, line 1: expected 'game record, format 2'"),
        ("games.txt", None, "games.txt"),
    ],
)
def test_broken_or_missing_files_are_named(folder, name, text, message):
    (folder / name).unlink() if text is None else (folder / name).write_text(text, encoding="utf-8")
    done = CliRunner().invoke(app, ["report", str(folder)])
    assert done.exit_code == 2
    assert message in done.output
    assert "Traceback" not in done.output


def test_drawn_games_are_shared_by_their_seats():
    seats = [{"wins": 1, "draws": 2, "games": 4}, {"wins": 2, "draws": 0, "games": 4}]
    net = {"name": "net", "wins": 3, "draws": 2, "share": 4 / 8, "games": 8, "seats": seats}
    share = run_data._win_share({"agents": [net, {"name": "random"}], "settings": {"num_players": 2}}, 1.0)
    assert (share.share, share.seats) == (4 / 8, ((2, 4), (2, 4)))
    assert share.interval == wilson_interval(4, 8)

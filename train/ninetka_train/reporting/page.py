"""The report of a run as one self-contained HTML page with a light and a dark theme, also for phones.

Start reading at `write_page`. `run_data.py` makes the tables, `figures.py` the plots.
"""

from __future__ import annotations

from html import escape

import yaml

from ninetka_env.api.records import GameRecord, format_record
from ninetka_env.api.rendering import render_svg, svg_style
from ninetka_train.judging.texts import count_text, percent
from ninetka_train.reporting.figures import Panel, draw_svg, learning_panels, strength_panels
from ninetka_train.reporting.run_data import (
    NETWORK,
    PHASE_AGENTS,
    ReportTable,
    RunData,
    WinShare,
    report_tables,
    summary,
)
from ninetka_train.reporting.style import DARK, LIGHT

SHOWN_GAMES = 6


def write_page(run: RunData) -> str:
    """Return the HTML page of a run."""
    body = [
        f"<header><h1>{escape(run.name)}</h1><p>{escape(summary(run))}</p></header>",
        _tiles(run),
        _section("strength", "Strength", "".join(map(_figure, strength_panels(run)))),
        _section("tables", "Tables", "".join(map(_table, report_tables(run)))),
        _section("losses", "Learning", "".join(map(_figure, learning_panels(run)))),
        _section("games", "Games", _games(run.games)),
        _section("about", "Settings", f"<pre>{escape(yaml.safe_dump(run.config, sort_keys=False))}</pre>"),
    ]
    return _PAGE.format(title=escape(run.name), style=_style(run), body="\n".join(filter(None, body)))


def _section(name: str, title: str, content: str) -> str:
    return f'<section class="{name}"><h2>{title}</h2>{content}</section>' if content else ""


def _tiles(run: RunData) -> str:
    """Return the tiles with the network's benchmark results."""
    tiles = [
        f"<div><b>{percent(share.share)}<small> %</small></b><span>against {escape(share.opponent)}, "
        f"{escape(share.variant)}</span><span>{_interval(share)}</span></div>"
        for share in run.benchmark
        if share.agent == NETWORK
    ]
    return f'<div class="tiles">{"".join(tiles)}</div>' if tiles else ""


def _interval(share: WinShare) -> str:
    low, high = share.interval
    return f"{percent(low)} to {percent(high)} · {count_text(share.games, 'game')}"


def _figure(panel: Panel) -> str:
    svg = draw_svg(panel).replace("<svg ", f'<svg role="img" aria-label="{escape(panel.alt_text)}" ', 1)
    return f"<figure><h3>{escape(panel.title)}</h3>{svg}<figcaption>{escape(panel.caption)}</figcaption></figure>"


def _table(sheet: ReportTable) -> str:
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in sheet.columns)
    rows = "".join(
        "<tr>"
        + f'<th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in sheet.rows
    )
    caption = f"<caption>{escape(sheet.title)}</caption>"
    table = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="sheet">{table}<p>{escape(sheet.note)}</p></div>'


def _games(games: list[GameRecord]) -> str:
    """Return cards with the final boards and game records of the network's first games."""
    cards: list[str] = []
    for record in games:
        names = [record.tags.get(seat, "?") for seat in record.seats]
        if NETWORK in names and not set(names) & (PHASE_AGENTS.keys() - {NETWORK}) and len(cards) < SHOWN_GAMES:
            seats = "".join(
                f'<li><i class="seat seat{seat + 1}"></i>{escape(name)}: {record.scores[seat]:g}'
                + (" <b>wins</b>" if seat == record.winner else "")
                + "</li>"
                for seat, name in enumerate(names)
            )
            details = f"<details><summary>record</summary><pre>{escape(format_record(record))}</pre></details>"
            cards.append(f"<article>{render_svg(record.final())}<ul>{seats}</ul>{details}</article>")
    note = (
        "<p>All saved games are in games.txt next to this page; <code>ninetka replay games.txt</code> shows them.</p>"
    )
    return f'<div class="cards">{"".join(cards)}</div>{note}' if cards else ""


def _style(run: RunData) -> str:
    boards = svg_style(run.games[0].start()) if run.games else ""
    light, dark = (";".join(f"--{name}:{colour}" for name, colour in theme.items()) for theme in (LIGHT, DARK))
    return f":root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}{_CSS}{boards}"


_CSS = """
*{box-sizing:border-box}
html{color-scheme:light dark;-webkit-text-size-adjust:100%}
body{margin:0 auto;padding:clamp(1rem,4vw,2.5rem);max-width:76rem;background:var(--page);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
h1{margin:0;font-size:1.9rem;letter-spacing:-.02em}h2{margin:2.2rem 0 .8rem;font-size:1.15rem}
h3{margin:0 0 .4rem;font-size:1rem}p{margin:.3rem 0;color:var(--faint)}
.tiles,.strength,.losses,.cards{display:grid;gap:1rem}.tables{display:flex;flex-wrap:wrap;gap:1rem}
.tiles{grid-template-columns:repeat(auto-fit,minmax(12rem,1fr));margin-top:1.4rem}
.strength{grid-template-columns:repeat(auto-fit,minmax(min(100%,27rem),1fr))}
.losses{grid-template-columns:repeat(auto-fit,minmax(min(100%,18rem),1fr))}
.strength h2,.losses h2{grid-column:1/-1;margin-bottom:0}.tables h2{width:100%;margin-bottom:0}
.cards{grid-template-columns:repeat(auto-fit,minmax(min(100%,18rem),1fr))}
.tiles div,figure,.sheet,article,.about pre{margin:0;padding:1rem 1.1rem;background:var(--paper);
border:1px solid var(--grid);border-radius:.7rem}
.tiles b{display:block;font-size:2.1rem;line-height:1.2;letter-spacing:-.02em;font-variant-numeric:tabular-nums}
.tiles small{font-size:.55em;font-weight:500;color:var(--faint)}.tiles span{display:block;font-size:.9rem}
.tiles span+span{color:var(--faint);font-size:.82rem}
figure svg{display:block;width:100%;height:auto;font-family:inherit}
figcaption{margin-top:.3rem;font-size:.82rem;color:var(--faint)}
.sheet{flex:1 0 auto;max-width:100%;overflow-x:auto}.sheet p{font-size:.82rem;width:0;min-width:100%}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:.92rem}
caption{text-align:left;font-weight:600;padding-bottom:.5rem}
th,td{padding:.38rem .5rem;text-align:right;border-top:1px solid var(--grid);white-space:nowrap;font-weight:400}
thead th{border-top:0;color:var(--faint);font-size:.82rem}th:first-child{text-align:left;padding-left:0}
article ul{list-style:none;margin:.6rem 0;padding:0;font-size:.9rem}article li b{color:var(--ink)}
i.seat{display:inline-block;width:.75em;height:.75em;margin-right:.45em;border-radius:50%;border:1px solid #0003}
.board{display:block;width:100%;height:auto;background:var(--page);border-radius:.5rem}
.about pre{columns:14rem}
@media(max-width:34rem){th,td{white-space:normal;padding:.35rem .25rem;font-size:.85rem}
th{overflow-wrap:anywhere}th:first-child{min-width:5.5rem}}
pre{margin:.5rem 0 0;overflow-x:auto;font-size:.8rem;line-height:1.45}summary{cursor:pointer;color:var(--faint)}
"""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} - ninetka</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""

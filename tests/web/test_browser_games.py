"""The page in a headless browser: whole games of 9tka, Go and Kropki by clicks and keys, take-backs, several users."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("playwright")
from browser import BrowserUser, click_cell, download_file, needs_chromium
from playwright.sync_api import Browser, expect
from web_helpers import Server

pytestmark = [pytest.mark.slow, needs_chromium]


MORE_PLAYERS = [("random", "me", "maxn"), ("maxn", "random", "me", "maxn")]


@pytest.mark.parametrize(
    "seats", [("me", "maxn"), *(pytest.param(seats, marks=pytest.mark.exhaustive) for seats in MORE_PLAYERS)]
)
def test_a_whole_game_by_clicks(ann: BrowserUser, seats: tuple[str, ...]) -> None:
    ann.start_ninetka(*seats, neutrals="players" if len(seats) == 3 else "random")
    clicks = 0
    while ann.wait_for_turn():
        ann.click(clicks)
        clicks += 1
    assert clicks >= 36 // len(seats)
    expect(ann.page.locator(".headline")).to_contain_text("win")
    scores = [int(text) for text in ann.page.locator(".score").all_inner_texts()]
    assert len(scores) == len(seats)
    winner = ann.page.locator(".seat").nth(max(seat for seat, score in enumerate(scores) if score == max(scores)))
    expect(winner).to_contain_text("wins")  # of equal scores, the last seat wins
    names = ann.page.locator(".person b").all_inner_texts()
    ann.page.click("#rematch")
    expect(ann.page.locator("#rematch")).to_have_count(0)
    assert ann.page.locator(".person b").all_inner_texts() == names[-1:] + names[:-1]


@pytest.mark.exhaustive
def test_a_whole_game_by_keys(ann: BrowserUser) -> None:
    ann.start_ninetka("me", "random", "random")
    keys = [("Enter",), ("ArrowDown", "Enter"), ("ArrowRight", " "), ("ArrowLeft", "ArrowUp", "Enter")]
    ann.wait_for_turn()
    ann.tab_to_board()
    ann.watch_focus()
    assert ann.page.locator(".hit[tabindex='0']").count() == 1
    turns = 0
    while ann.wait_for_turn():
        ann.page.wait_for_function("() => document.activeElement.matches('.hit')")  # the board keeps the focus
        assert re.match(
            r"[A-K]\d+: (place|slide)", ann.page.evaluate("document.activeElement.getAttribute('aria-label')")
        )
        ann.press(*keys[turns % 4])
        turns += 1
    expect(ann.page.locator("#live")).to_contain_text("win")
    assert ann.page.evaluate("window.lostFocus") == 0


def test_a_whole_game_of_go_by_clicks(ann: BrowserUser, tmp_path: Path) -> None:
    page = ann.page
    ann.start_game("go", "5 x 5", "me", "me")
    moves = ["C1", "D1", "C2", "D2", "C3", "D3", "C4", "D4", "C5", "D5", "B3", "A1"]
    for name in moves:
        click_cell(ann, name)
    expect(page.locator(".stones .stone")).to_have_count(12)
    page.mouse.click(
        *page.evaluate("""() => { const box = document.querySelector(".board").getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2]; }""")
    )
    expect(page.locator(".toast").last).to_have_text("the point is occupied")
    with ann.waiting_for_moves():
        page.click("#act-P")
    expect(page.locator(".hint")).to_contain_text("passed")
    with ann.waiting_for_moves():
        page.keyboard.press("p")
    expect(page.locator(".question")).to_contain_text("1 dead stone")
    expect(page.locator(".dead")).to_have_count(1)
    page.click("#play-on")
    expect(page.locator(".count")).to_have_text("12 / 12")
    for key in ("p", "p"):
        ann.press(key)
    page.click("#accept")
    expect(page.locator(".headline")).to_have_text("White wins")  # by komi
    assert page.locator(".score").all_inner_texts() == ["15", "17"]
    file = download_file(ann, "#download-sgf")
    page.click(".brand")
    page.set_input_files("#file", {"name": "game.sgf", "mimeType": "text/plain", "buffer": file.read_bytes()})
    expect(page.locator(".count")).to_have_text("0 / 14")
    page.keyboard.press("End")
    expect(page.locator(".stones .stone")).to_have_count(12)
    assert page.locator(".move").all_inner_texts()[:12] == moves


@pytest.mark.exhaustive
def test_a_whole_game_of_go_by_keys(ann: BrowserUser) -> None:
    page = ann.page
    ann.start_game("go", "5 x 5", "me", "me")
    ann.wait_for_turn()
    ann.tab_to_board()
    keys = [("Enter",), ("ArrowDown", "Enter"), ("ArrowRight", " "), ("ArrowLeft", "ArrowUp", "Enter")]
    for turn in range(6):
        ann.wait_for_turn()
        page.wait_for_function("() => document.activeElement.matches('.hit')")
        assert re.match(r"[A-E][1-5]: place your stone", page.evaluate("document.activeElement.ariaLabel"))
        ann.press(*keys[turn % 4])
    for key in ("p", "p"):
        ann.press(key)
    page.locator("#accept").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#live")).to_contain_text("win")


@pytest.mark.exhaustive
def test_a_whole_game_of_kropki_by_clicks(ann: BrowserUser) -> None:
    page = ann.page
    ann.start_game("kropki", "6 x 6", "me", "me")
    for name in ("B4", "B3", "C4", "F1", "A3", "F2", "D3", "F3", "B2", "F4"):
        click_cell(ann, name)
    page.locator(".hit[aria-label^='C2:']").hover(force=True)
    expect(page.locator(".preview .planned.chain")).to_have_count(1)  # the chain that the point would close
    click_cell(ann, "C2")
    expect(page.locator(".may")).to_have_count(2)
    click_cell(ann, "C3")  # a click on any node of the core draws its chain
    expect(page.locator(".under .chain")).to_have_count(1)
    assert page.locator(".score").all_inner_texts() == ["1", "0"]
    while ann.wait_for_turn():
        if page.locator("#act-E").count():
            with ann.waiting_for_moves():
                page.click("#act-E")
        else:
            ann.click(3)
    expect(page.locator(".headline")).to_contain_text(re.compile("wins|Drawn"))
    plies, moves = ann.plies, page.locator(".move").all_inner_texts()
    file = download_file(ann, "#download-sgf")
    page.click(".brand")
    page.fill("#record", file.read_text(encoding="utf-8"))
    page.click("#open-record")
    expect(page.locator(".count")).to_have_text(f"0 / {plies}")
    page.locator("#slider").fill("12")
    expect(page.locator(".under .chain")).to_have_count(1)
    assert page.locator(".move").all_inner_texts() == moves


@pytest.mark.exhaustive
def test_a_whole_game_of_kropki_by_keys(ann: BrowserUser) -> None:
    page = ann.page
    ann.start_game("kropki", "6 x 6", "me", "greedy")
    ann.wait_for_turn()
    ann.tab_to_board()
    turns = 0
    while ann.wait_for_turn():
        page.wait_for_function("() => document.activeElement.matches('.hit')")
        ann.press(*[("Enter",), ("ArrowDown", "Enter"), ("ArrowRight", " ")][turns % 3])
        turns += 1
    assert turns >= 12
    expect(page.locator("#live")).to_contain_text(re.compile("wins?|Drawn"))


def test_moves_are_taken_back_and_nothing_is_lost_by_a_reload(ann: BrowserUser) -> None:
    ann.start_ninetka("me", "me")
    for number in range(5):
        ann.click(number)
    assert ann.plies == 5
    moves = ann.page.locator(".move").all_inner_texts()
    ann.page.reload()
    ann.page.wait_for_selector(".hit")
    assert ann.page.locator(".move").all_inner_texts() == moves
    ann.page.click("#undo")
    expect(ann.page.locator(".count")).to_have_text("4 / 4")
    ann.page.keyboard.press("u")
    expect(ann.page.locator(".count")).to_have_text("3 / 3")
    ann.click(2)
    assert ann.page.locator(".move").all_inner_texts()[:3] == moves[:3]


def test_two_people_and_a_watcher_share_a_table(
    ann: BrowserUser, bob: BrowserUser, browser: Browser, server: Server
) -> None:
    ann.start_ninetka("me", "open")
    url = ann.page.url
    bob.join(url, "Bob")
    expect(ann.page.locator(".seat").nth(1)).to_contain_text("Bob")
    watcher = BrowserUser(browser, server)
    watcher.page.goto(url)
    for turn in range(6):
        (ann if turn % 2 == 0 else bob).wait_for_turn()
        (ann if turn % 2 == 0 else bob).click(turn)
    for user in (ann, bob, watcher):
        expect(user.page.locator(".count")).to_have_text("6 / 6")
    assert watcher.page.locator(".hit").count() == 0
    assert bob.page.locator(".hit").count() == 0
    ann.page.click("#undo")
    bob.page.click("text=Refuse")
    expect(ann.page.locator(".question")).to_have_count(0)
    ann.page.click("#undo")
    bob.page.click("text=Agree")
    expect(watcher.page.locator(".count")).to_have_text("4 / 4")
    watcher.page.click("#tab-analysis")
    expect(watcher.page.locator(".panel")).to_contain_text("when the game is over")
    watcher.close()

"""A user of the page in a headless browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from web_helpers import Server

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM = os.environ.get("NINETKA_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="no Chromium: `make browser` installs one")

TIMEOUT_MS = 60_000
"""Milliseconds before a wait fails. No browser test waits for the compiler; see `COMPILE_PROGRAM`."""

expect.set_options(timeout=TIMEOUT_MS)


MIDDLE_OF_HIT = """number => {
    const hits = document.querySelectorAll(".hit"), box = hits[number % hits.length].getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
}"""
"""JavaScript that returns the centre of a hit area. One call is needed: the board may be redrawn between two calls."""


class BrowserUser:
    """A user with a separate browser context. `before(page)` is called before the page is loaded."""

    def __init__(
        self, browser: Browser, server: Server, before: Callable[[Page], None] = lambda page: None, **options: object
    ) -> None:
        self.context = browser.new_context(reduced_motion="reduce", **options)
        self.context.set_default_timeout(TIMEOUT_MS)
        self.page: Page = self.context.new_page()
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        before(self.page)
        self.page.goto(server.url)
        self.page.wait_for_selector("#start")

    def close(self) -> None:
        self.context.close()
        assert self.errors == []

    def join(self, url: str, name: str) -> None:
        """Open the address of a table and take an open seat."""
        self.page.goto(url)
        self.page.click(".sit")
        self.page.fill("input[name=name]", name)
        self.page.click("dialog[open] button[value=sit]")

    def start_ninetka(self, *seats: str, neutrals: str = "random", fast: bool = True) -> None:
        """Fill in the form of 9tka and start."""
        self.page.locator("#game-ninetka").check(force=True)
        self.page.locator(f"#players-{len(seats)}").check(force=True)
        self.choose_option("placed in turn" if neutrals == "players" else "at random")
        self.start_with_seats(*seats, fast=fast)

    def start_game(self, game: str, board: str, *seats: str) -> None:
        """Fill in the form of another game and start."""
        self.page.locator(f"#game-{game}").check(force=True)
        self.page.wait_for_selector(f".home[data-game={game}]")
        self.choose_option(board)
        self.start_with_seats(*seats)

    def choose_option(self, text: str) -> None:
        label = self.page.locator("label.choice", has=self.page.get_by_text(text, exact=True))
        label.locator("input").check(force=True)

    def start_with_seats(self, *seats: str, fast: bool = True) -> None:
        page = self.page
        for number, seat in enumerate(seats):
            page.select_option(f"#seat-{number}", seat)
        page.click("#start")
        page.wait_for_selector(".board")
        if fast and any(seat not in ("me", "open") for seat in seats):
            page.select_option("#speed", "0")

    def tab_to_board(self) -> None:
        """Press Shift+Tab until the board has the focus."""
        for _ in range(40):
            if self.page.evaluate("document.activeElement.matches('.hit')"):
                return
            self.page.keyboard.press("Shift+Tab")
        raise AssertionError("the board cannot be reached by Tab")

    def watch_focus(self) -> None:
        """Start to count the frames in which the body of the page has the focus."""
        self.page.evaluate("""() => {
            window.lostFocus = 0;
            const check = () => {
                window.lostFocus += document.activeElement === document.body;
                requestAnimationFrame(check);
            };
            check();
        }""")

    def wait_for_timeline(self) -> None:
        """Wait for the win probabilities in the timeline."""
        self.page.wait_for_selector(".band.known polygon", state="attached")  # flat areas count as invisible

    @property
    def plies(self) -> int:
        return int(self.page.inner_text(".count").split("/")[1])

    def wait_for_turn(self) -> bool:
        """Wait until it is the user's turn; return False if the game is over."""
        self.page.wait_for_selector(".hit, #rematch")
        return self.page.locator(".hit").count() > 0

    def click(self, number: int = 0) -> None:
        """Click on a legal cell and wait until the move is shown."""
        with self.waiting_for_moves():
            self.page.mouse.click(*self.page.evaluate(MIDDLE_OF_HIT, number))

    def press(self, *keys: str) -> None:
        """Press keys and wait until the move is shown."""
        with self.waiting_for_moves():
            for key in keys:
                self.page.keyboard.press(key)

    @contextmanager
    def waiting_for_moves(self, moves: int = 1) -> Iterator[None]:
        """Wait at the end of the `with` block until `moves` new moves are shown."""
        shown = self.plies + moves
        yield
        self.page.wait_for_function(
            "n => Number(document.querySelector('.count').textContent.split('/')[1]) >= n", arg=shown
        )


def download_file(user: BrowserUser, button: str) -> Path:
    """Download a game record or an SGF file and return its path."""
    user.page.click("#tab-share")
    with user.page.expect_download() as download:
        user.page.click(button)
    user.page.click("#tab-moves")
    return Path(download.value.path())


def click_cell(user: BrowserUser, name: str) -> None:
    """Click on the cell with a name and wait until the move is shown."""
    with user.waiting_for_moves():
        user.page.locator(f".hit[aria-label^='{name}:']").click(force=True)

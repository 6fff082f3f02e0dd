"""Fixtures of the tests of the web app: a server, a browser, and users of the page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # Playwright may not be installed
    from browser import BrowserUser
    from playwright.sync_api import Browser
    from web_helpers import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    from web_helpers import running_server

    with running_server(tmp_path_factory.mktemp("data") / "table.sqlite3") as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from browser import CHROMIUM
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def open_browser(browser: Browser, server: Server) -> Iterator[BrowserUser]:
    from browser import BrowserUser

    user = BrowserUser(browser, server)
    yield user
    user.close()


@pytest.fixture
def ann(browser: Browser, server: Server) -> Iterator[BrowserUser]:
    with open_browser(browser, server) as ann:
        yield ann


@pytest.fixture
def bob(browser: Browser, server: Server) -> Iterator[BrowserUser]:
    with open_browser(browser, server) as bob:
        yield bob


@pytest.fixture(scope="module")
def shared_user(browser: Browser, server: Server) -> Iterator[BrowserUser]:
    """A user that all tests of a module share."""
    with open_browser(browser, server) as user:
        yield user

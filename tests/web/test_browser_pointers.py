"""The board under a mouse and a finger, in browsers whose clicks have a pointer type and in older ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

pytest.importorskip("playwright")
from browser import BrowserUser, needs_chromium
from playwright.sync_api import Browser, CDPSession, expect
from web_helpers import Server

pytestmark = [pytest.mark.slow, needs_chromium]

NARROW = {"width": 240, "height": 900}
"""A viewport in which the squares of all games are so small that the first touch shows a preview."""

REMOVE_POINTER_TYPE = """
const { get } = Object.getOwnPropertyDescriptor(PointerEvent.prototype, "pointerType");
Object.defineProperty(PointerEvent.prototype, "pointerType", {
    get() { return this.type === "click" ? undefined : get.call(this); },
});
"""
"""JavaScript that makes the browser an older one, in which `click` has no pointer type."""

COUNT_CLICKS = "addEventListener('click', event => (window.clickCount = event.detail), true)"

PREVIEW_IS_AT = """name => {
    const ghost = document.querySelector(".preview .ghost");
    if (!ghost) return false;
    const { x, y, width, height } = ghost.getBoundingClientRect();
    return document.elementFromPoint(x + width / 2, y + height / 2).matches(`.hit[aria-label^="${name}:"]`);
}"""

GAMES = {"ninetka": "", "go": "9 x 9", "kropki": "10 x 10"}


class PointerUser(BrowserUser):
    """A user with a mouse and a touch screen."""

    times = count(1_000_000_000)
    """Seconds at which touches begin, so far apart that none continues an earlier one."""

    def start(self, server: Server, game: str) -> None:
        """Start a game in which the user has all seats."""
        self.page.goto(server.url)
        if game == "ninetka":
            self.start_ninetka("me", "me")
        else:
            self.start_game(game, GAMES[game], "me", "me")
        self.wait_for_turn()
        self.page.evaluate(COUNT_CLICKS)
        self.screen: CDPSession = self.context.new_cdp_session(self.page)

    def hit_name(self, number: int) -> str:
        label = self.page.locator(".hit").nth(number).get_attribute("aria-label")
        assert label
        return label.partition(":")[0]

    def middle(self, name: str) -> tuple[float, float]:
        """Return the centre of a square, which is small and visible."""
        box = self.page.locator(f".hit[aria-label^='{name}:']").bounding_box()
        assert box
        assert box["width"] < 26
        assert box["y"] + box["height"] < NARROW["height"]
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def touch(self, name: str, *, taps: int = 1) -> None:
        """Touch a square; `taps` follow each other quickly by their times, however slow the test is."""
        x, y = self.middle(name)
        start = next(self.times)
        for tap in range(taps):
            for phase, points, after in (("touchStart", [{"x": x, "y": y}], 0.0), ("touchEnd", [], 0.02)):
                event = {"type": phase, "touchPoints": points, "timestamp": start + 0.1 * tap + after}
                self.screen.send("Input.dispatchTouchEvent", event)

    def expect_preview(self, name: str) -> None:
        self.page.wait_for_function(PREVIEW_IS_AT, arg=name)

    @property
    def moves(self) -> list[str]:
        return self.page.locator(".move").all_inner_texts()


@pytest.fixture(scope="module", params=["new", "old"])
def user(request: pytest.FixtureRequest, browser: Browser, server: Server) -> Iterator[PointerUser]:
    """A user of a new browser, and one of an older browser."""
    script = REMOVE_POINTER_TYPE if request.param == "old" else ""
    user = PointerUser(browser, server, lambda page: page.add_init_script(script), viewport=NARROW, has_touch=True)
    yield user
    user.close()


@pytest.mark.parametrize("user", ["old"], indirect=True)  # all other tests use a mouse in a new browser
@pytest.mark.parametrize("game", GAMES)
def test_a_mouse_sees_a_preview_and_plays_with_one_click(user: PointerUser, server: Server, game: str) -> None:
    user.start(server, game)
    first, second = user.hit_name(3), user.hit_name(7)
    x, y = user.middle(first)
    for step in range(3):  # the hovered square must keep the pointer when the pointer moves in it
        user.page.mouse.move(x + step, y)
        user.expect_preview(first)
    with user.waiting_for_moves():
        user.page.mouse.dblclick(x, y)
    expect(user.page.locator(".preview .ghost")).to_have_count(0)
    with user.waiting_for_moves():
        user.page.mouse.click(*user.middle(second))
    assert user.moves == [first, second]
    assert user.page.locator(".toast").count() == 0  # the second half of the double click was not sent


@pytest.mark.parametrize("game", GAMES)
def test_a_touch_of_a_small_square_previews_and_the_next_one_plays(
    user: PointerUser, server: Server, game: str
) -> None:
    user.start(server, game)
    slip, first, second, third = map(user.hit_name, (3, 7, 12, 15))
    for name in (slip, first):
        user.touch(name)
        user.expect_preview(name)
    with user.waiting_for_moves():
        user.touch(first)
    with user.waiting_for_moves():
        user.touch(second, taps=2)
    assert user.page.evaluate("clickCount") == 2
    with user.waiting_for_moves():  # a screen reader clicks without a press
        user.page.locator(f".hit[aria-label^='{third}:']").dispatch_event("click")
    assert user.moves == [first, second, third]

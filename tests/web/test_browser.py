"""The page in a headless browser: reloads, several users, replay, analysis, phones, accessibility."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from web_helpers import Server

pytest.importorskip("playwright")
from browser import MIDDLE_OF_HIT, BrowserUser, click_cell, needs_chromium
from playwright.sync_api import Browser, Page, WebSocketRoute, expect

pytestmark = [pytest.mark.exhaustive, needs_chromium]


def test_the_focus_survives_redraws(ann: BrowserUser) -> None:
    ann.start_ninetka("me", "me")
    for number in range(3):
        ann.click(number)
    page, focused = ann.page, "document.activeElement.id"
    ann.watch_focus()
    for element_id, plies in (("ply-2", "2 / 3"), ("forward", "3 / 3"), ("undo", "2 / 2")):
        page.locator(f"#{element_id}").focus()
        page.keyboard.press("Enter")
        expect(page.locator(".count")).to_have_text(plies)
        assert page.evaluate(focused) == element_id
    page.locator("#ply-2").focus()
    page.keyboard.press("u")  # removes the focused element
    expect(page.locator(".count")).to_have_text("1 / 1")
    assert page.evaluate("document.activeElement.matches('.board, .hit')")


def test_a_connection_lost_before_the_answer_keeps_the_token(ann: BrowserUser) -> None:
    token = "localStorage.getItem('ninetka-token')"
    before = ann.page.evaluate(token)
    ann.page.route_web_socket(
        re.compile("/ws$"), lambda websocket: websocket.on_message(lambda text: websocket.close())
    )
    ann.page.reload()
    ann.page.wait_for_selector("#lost:not([hidden])")
    assert ann.page.evaluate(token) == before


def test_a_connection_lost_before_the_table_is_shown_is_opened_again(ann: BrowserUser) -> None:
    ann.start_ninetka("me", "me")
    connections: list[WebSocketRoute] = []

    def connect(websocket: WebSocketRoute) -> None:
        connections.append(websocket)
        server = websocket.connect_to_server()
        if len(connections) == 1:
            websocket.on_message(lambda text: websocket.close() if '"join"' in str(text) else server.send(text))

    ann.page.route_web_socket(re.compile("/ws$"), connect)
    ann.page.reload()
    ann.page.wait_for_selector(".board")
    assert len(connections) == 2


def test_users_leave_chat_play_again_and_move_their_seat(browser: Browser, server: Server) -> None:
    ann, bob, watcher = (BrowserUser(browser, server) for _ in range(3))
    ann.page.select_option("#clock", "180+3")
    ann.start_ninetka("me", "open")
    url = ann.page.url
    bob.join(url, "Bob")
    watcher.page.goto(url)
    expect(ann.page.locator(".clock.runs")).to_have_text(re.compile("[0-2]:[0-5][0-9]"))
    bob.page.click("#tab-chat")
    bob.page.fill("#say", "hello <i>Ann</i>")
    bob.page.press("#say", "Enter")
    expect(ann.page.locator("#tab-chat")).to_have_text("Chat (1)")
    ann.page.click("#tab-chat")
    expect(ann.page.locator(".lines")).to_have_text("Bob hello <i>Ann</i>")
    ann.click()
    expect(bob.page.locator("#tab-chat[aria-selected=true]")).to_have_count(1)  # the chat stays open
    bob.page.click("#tab-share")
    bob.page.evaluate("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    bob.page.click("#copy-personal")
    bob.page.wait_for_function("() => window.copied")
    link = bob.page.evaluate("window.copied")
    bob.close()
    for user in (ann, watcher):
        expect(user.page.locator(".seat").nth(1)).to_contain_text(re.compile("has left, 0:[0-5][0-9] to come back"))
    phone = BrowserUser(browser, server)
    phone.page.goto(link)
    expect(phone.page.locator(".seat").nth(1)).to_contain_text("Bob")
    expect(phone.page.locator(".headline")).to_have_text("Your turn")
    assert phone.page.url == url
    expect(watcher.page.locator(".seat").nth(1)).not_to_contain_text("has left")
    phone.click()
    ann.page.once("dialog", lambda dialog: dialog.accept())
    ann.page.click("#resign")
    ann.page.click("#rematch")
    phone.page.click("text=Refuse")
    ann.page.click("#rematch")
    phone.page.click("text=Agree")
    for user in (ann, phone, watcher):
        expect(user.page.locator(".count")).to_have_text("0 / 0")
        expect(user.page.locator(".seat").nth(0)).to_contain_text("Bob")
    for user in (ann, phone, watcher):
        user.close()


def test_a_game_is_downloaded_opened_again_and_replayed(ann: BrowserUser, tmp_path: Path) -> None:
    ann.start_ninetka("random", "random", "random")
    ann.page.wait_for_selector("#rematch")
    plies = ann.plies
    ann.page.click("#tab-share")
    with ann.page.expect_download() as download:
        ann.page.click("#download")
    download.value.save_as(tmp_path / "game.txt")
    text = (tmp_path / "game.txt").read_text(encoding="utf-8")
    assert text.startswith("game record, format 2\ngame: ninetka\nplayers: 3")
    ann.page.click(".brand")
    ann.page.set_input_files("#file", tmp_path / "game.txt")
    ann.page.wait_for_selector(".board")
    page, count = ann.page, ann.page.locator(".count")
    expect(count).to_have_text(f"0 / {plies}")
    assert page.locator(".stones .stone").count() == 9
    for key, ply in [(".", 1), ("ArrowRight", 2), (",", 1), ("End", plies), ("Home", 0)]:
        page.keyboard.press(key)
        expect(count).to_have_text(f"{ply} / {plies}")
    page.locator("#slider").fill("36")
    expect(count).to_have_text(f"36 / {plies}")
    assert page.locator(".stones .stone").count() == 45
    page.click("#forward")
    page.locator(".move").last.click()
    expect(page.locator(".headline")).to_contain_text("wins")
    page.click("#tab-share")
    page.evaluate("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    page.click("#back")
    page.click("#copy-position")
    page.wait_for_function("() => window.copied")
    position = page.evaluate("window.copied")
    assert position.startswith("9tka  players=3")
    page.click(".brand")
    page.fill("#record", position)
    page.click("#open-record")
    expect(count).to_have_text("0 / 0")


def test_records_are_opened(ann: BrowserUser) -> None:
    ann.start_ninetka("random", "random")
    page, count = ann.page, ann.page.locator(".count")
    page.wait_for_selector("#rematch")
    plies, moves = ann.plies, page.locator(".move").all_inner_texts()
    text = download_record(ann)
    page.once("dialog", lambda dialog: dialog.accept("2"))
    for pasted in (text, f"{text}\n{text}"):  # with several games, the page asks for the number
        page.click(".brand")
        page.fill("#record", pasted)
        page.click("#open-record")
        expect(count).to_have_text(f"0 / {plies}")
        assert page.locator(".move").all_inner_texts() == moves


def test_a_game_is_given_up(ann: BrowserUser) -> None:
    page = ann.page
    page.on("dialog", lambda dialog: dialog.accept())
    ann.start_ninetka("me", "maxn")
    ann.click()
    page.click("#resign")
    expect(page.locator(".headline")).to_have_text("Blue wins")
    expect(page.locator(".headline .icon")).to_have_count(1)
    expect(page.locator(".hint")).to_have_text("Yellow gave up.")
    expect(page.locator(".seat").nth(0)).to_contain_text("gave up")
    expect(page.locator("#live")).to_have_text("Blue wins.")
    assert download_record(ann).endswith("result: yellow resigned; blue wins\n")
    page.click(".brand")
    expect(page.locator(".tables li").first).to_contain_text("blue won")
    ann.start_ninetka("me", "random", "random")
    page.click("#resign")
    expect(page.locator(".headline")).to_have_text("Given up")
    expect(page.locator(".headline .icon")).to_have_count(0)
    page.click("#tab-share")
    expect(page.locator("#download")).to_be_disabled()
    page.click(".brand")
    expect(page.locator(".tables li").first).to_contain_text("given up")


def download_record(user: BrowserUser) -> str:
    """Download the record of a finished game and return its text."""
    user.page.click("#tab-share")
    with user.page.expect_download() as download:
        user.page.click("#download")
    text = Path(download.value.path()).read_text(encoding="utf-8")
    user.page.click("#tab-moves")
    return text


def test_a_drawn_game_is_not_shown_as_given_up(browser: Browser, server: Server) -> None:
    ann = BrowserUser(browser, server, before=draw_all_games)
    page = ann.page
    ann.start_ninetka("me", "random")
    while ann.wait_for_turn():
        ann.click()
    expect(page.locator(".headline")).to_have_text("Drawn")
    expect(page.locator(".headline .icon")).to_have_count(0)
    expect(page.locator(".hint")).to_contain_text(re.compile(r"Yellow \d, Blue \d\."))
    assert not any("wins" in seat for seat in page.locator(".seat").all_inner_texts())
    expect(page.locator(".seat.active")).to_have_count(0)
    assert download_record(ann)
    page.click(".brand")
    expect(page.locator(".tables li").first).to_contain_text("drawn")
    ann.close()


def draw_all_games(page: Page) -> None:
    """Change the server's messages so that finished games are draws, because no game of 9tka ends in a draw."""

    def edited(text: str) -> str:
        message = json.loads(text)
        for game in (message, *message.get("tables", ())):
            if game.get("winner") is not None:
                game["winner"] = -1
        return json.dumps(message)

    page.route_web_socket(re.compile("/ws$"), lambda websocket: edit_messages(websocket, edited))


def edit_messages(websocket: WebSocketRoute, edit: Callable[[str], str]) -> None:
    """Change the messages from the server to a page."""
    server = websocket.connect_to_server()
    websocket.on_message(server.send)
    server.on_message(lambda text: websocket.send(edit(str(text))))


def test_the_focus_stays_on_its_square_while_the_analysis_runs(ann: BrowserUser) -> None:
    ann.start_ninetka("me", "me")
    page = ann.page
    for number in range(4):
        ann.click(number)
    page.click("#tab-analysis")
    ann.watch_focus()
    page.evaluate("document.querySelectorAll('.hit')[7].focus()")
    focused_element = page.evaluate_handle("document.activeElement")
    expect(page.locator(".analysis")).to_contain_text(re.compile("(8|30|100),000 simulations"))  # of any budget
    assert focused_element.evaluate("each => each === document.activeElement")  # still the same element
    page.locator("#try").focus()
    expect(page.locator(".analysis")).to_contain_text("100,000 simulations")
    assert page.evaluate("document.activeElement.id") == "try"
    assert page.evaluate("window.lostFocus") == 0


def test_the_analysis_shows_what_agents_think(ann: BrowserUser) -> None:
    ann.start_ninetka("me", "maxn")
    ann.click()
    ann.wait_for_turn()
    page = ann.page
    page.click("#tab-analysis")
    page.wait_for_selector(".candidates li")
    ann.wait_for_timeline()
    assert page.locator(".warm").count() == page.locator(".hit").count()
    assert page.locator(".band polygon").count() == 2
    choose_engine(page, "net")
    page.wait_for_selector(".candidates li")
    expect(page.locator(".analysis")).to_contain_text("256 simulations")
    box = page.locator(".band").bounding_box()
    assert box
    page.mouse.click(box["x"] + 1, box["y"] + 5)
    expect(page.locator(".count")).to_have_text("0 / 2")
    page.wait_for_selector(".candidates li")
    page.click("#tab-moves")
    expect(page.locator(".warm")).to_have_count(0)
    page.keyboard.press("End")
    page.keyboard.press("h")
    expect(page.locator(".toast")).to_contain_text("Hint: ")
    expect(page.locator(".hinted")).to_have_count(1)
    ann.click()
    expect(page.locator(".hinted")).to_have_count(0)


def choose_engine(page: Page, engine: str) -> None:
    """Click on the label of an engine. Each result redraws the labels, so Playwright may repeat the click."""
    page.locator(f"label.choice:has(input[value={engine}])").click()


def play_to_the_slides(user: BrowserUser, slides: int) -> None:
    """Play all placements and a number of slides."""
    while len(user.page.locator(".move").all()) < 36 + slides:
        user.wait_for_turn()
        user.click(user.plies)


def test_perfect_play_mistakes_and_variations(ann: BrowserUser) -> None:
    page = ann.page
    ann.start_ninetka("me", "me")
    play_to_the_slides(ann, 18)
    page.click("#tab-analysis")
    page.wait_for_selector(".verdict")
    expect(page.locator(".verdict").first).to_contain_text("With perfect play")
    choose_engine(page, "solver")
    page.wait_for_selector(".candidates li")
    for result in page.locator(".candidates li span:nth-child(3)").all_inner_texts():
        assert result in ("wins", "loses")
    ann.wait_for_timeline()
    choose_engine(page, "mcts")
    page.click("#show-line")
    assert page.locator(".numbered").count() >= 2
    assert page.locator(".warm").count() == 0
    page.click("#show-line")
    trying = "document.getElementById('try').click(); document.querySelectorAll('.hit').length"
    assert page.evaluate(trying) == 0  # no move can be played before the server has answered
    expect(page.locator(".headline")).to_have_text("Trying moves")
    page.wait_for_selector(".hit")
    for tried in (1, 2):
        page.mouse.click(*page.evaluate(MIDDLE_OF_HIT, 0))
        expect(page.locator(".hint")).to_contain_text(f"{tried} tried after ply 54")
    expect(page.locator(".count")).to_have_text("54 / 54")  # the game is unchanged
    page.keyboard.press(",")
    expect(page.locator(".hint")).to_contain_text("1 tried after ply 54")
    page.keyboard.press("Escape")
    expect(page.locator(".headline")).to_contain_text("Your turn")
    page.wait_for_selector(".mistakes li")  # some of the moves were mistakes
    worst = page.locator(".mistakes .move").first
    ply = int(worst.inner_text().split(".")[0])
    worst.click()
    expect(page.locator(".count")).to_have_text(f"{ply - 1} / 54")
    stones = page.locator(".stones .stone").count()
    before = page.url
    page.locator(".mistakes button", has_text="Try again from here").first.click()
    page.wait_for_url(lambda url: url != before)
    expect(page.locator(".count")).to_have_text("0 / 0")
    expect(page.locator(".stones .stone")).to_have_count(stones)
    expect(page.locator(".person b").filter(has_text="MaxN")).to_have_count(1)


def test_a_failed_analysis_shows_an_error(browser: Browser, server: Server) -> None:
    def fail(page: Page) -> None:
        page.route_web_socket(re.compile("/ws$"), lambda websocket: edit_messages(websocket, as_failure))

    ann = BrowserUser(browser, server, before=fail)
    ann.start_ninetka("me", "me")
    ann.page.click("#tab-analysis")
    expect(ann.page.locator(".failure")).to_have_text("The analysis failed: no memory is left.")
    ann.close()


def as_failure(text: str) -> str:
    """Return an analysis message as a message `failed`; return other messages unchanged."""
    message = json.loads(text)
    if message["type"] != "analysis":
        return text
    fields = {name: message[name] for name in ("ply", "variation", "engine")}
    return json.dumps({"type": "failed", "reason": "no memory is left", **fields})


def test_a_click_that_plays_nothing_shows_the_reason(ann: BrowserUser) -> None:
    page = ann.page
    ann.start_ninetka("me", "open")
    board = page.locator(".board").bounding_box()
    assert board
    square = board["width"] / 12.2

    def click(column: float, row: float) -> None:
        page.mouse.click(board["x"] + (column + 1.1) * square, board["y"] + (row + 1.1) * square)

    click(5, 5)
    expect(page.locator(".toast")).to_have_text("your stones go on free squares of the edge")
    click(0, 11)  # the letters around the board are no squares, and a pass is not possible
    page.wait_for_timeout(100)
    expect(page.locator(".toast")).to_have_text("your stones go on free squares of the edge")
    ann.click()
    click(5, 5)
    expect(page.locator(".toast")).to_have_text("It is blue's turn")  # one message at a time
    page.click("#back")
    click(5, 5)
    expect(page.locator(".toast")).to_have_text("This is an earlier position; go to the newest one to play")


def test_typing_a_number_does_not_swallow_the_next_click(ann: BrowserUser) -> None:
    page = ann.page
    page.locator("#game-kropki").check(force=True)
    page.wait_for_selector(".home[data-game=kropki]")
    page.locator("details.more summary").click()
    page.fill("#option-width", "7")
    page.click("h2:text('New game')")
    assert not page.is_checked("label.choice:has-text('10 x 10') input")  # the dependent choice is updated at once
    page.fill("#option-width", "2")
    page.locator("details.more summary").click()
    page.click("#start")
    expect(page.locator("#option-width")).to_be_visible()  # the invalid field is shown
    page.fill("#option-width", "8")
    page.click("#start")
    page.wait_for_selector(".board")


def test_an_incomplete_address_shows_an_error(ann: BrowserUser) -> None:
    ann.page.goto(ann.page.url + "t/K3h1")
    expect(ann.page.locator("h1")).to_have_text("No such table")
    ann.page.click("text=New game")
    ann.page.wait_for_selector("#start")


def test_arrows_on_the_board_stay_there_while_others_move(ann: BrowserUser) -> None:
    page = ann.page
    ann.start_ninetka("me", "maxn", fast=False)
    page.select_option("#speed", "2000")
    ann.wait_for_turn()
    ann.tab_to_board()
    ann.press("Enter")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".count")).to_have_text("2 / 2")
    ann.wait_for_turn()


def test_a_double_click_plays_once(ann: BrowserUser) -> None:
    ann.start_game("go", "5 x 5", "me", "me")
    with ann.waiting_for_moves():
        ann.page.mouse.dblclick(*ann.page.evaluate(MIDDLE_OF_HIT, 0))
    ann.page.wait_for_timeout(100)
    assert (ann.plies, ann.page.locator(".toast").count()) == (1, 0)


def test_a_phone_shows_everything_without_scrolling_sideways(browser: Browser, server: Server) -> None:
    players = 4
    phone = BrowserUser(browser, server, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    width = "document.documentElement.scrollWidth"
    assert phone.page.evaluate(width) == 390
    phone.page.set_viewport_size({"width": 320, "height": 640})
    assert phone.page.evaluate(width) == 320
    phone.page.set_viewport_size({"width": 390, "height": 844})
    phone.start_ninetka("me", *["random"] * (players - 1))
    phone.wait_for_turn()
    assert phone.page.evaluate(width) == 390
    board = phone.page.locator(".board").bounding_box()
    assert board
    assert board["width"] > 350
    assert board["y"] + board["height"] < 844
    phone.page.set_viewport_size({"width": 740, "height": 360})
    assert phone.page.evaluate(width) == 740
    board = phone.page.locator(".board").bounding_box()
    assert board
    assert board["width"] > 280
    assert board["y"] + board["height"] <= 360
    phone.page.set_viewport_size({"width": 390, "height": 844})
    for _ in range(36 // players):
        phone.wait_for_turn()
        with phone.waiting_for_moves():
            phone.page.locator(".hit").first.tap()
    phone.page.wait_for_selector(".ring")
    plies = phone.plies
    phone.page.locator(".hit").first.tap()  # shows a preview of where the stone would stop
    expect(phone.page.locator(".ghost")).to_have_count(1)
    assert phone.plies == plies
    with phone.waiting_for_moves():
        phone.page.locator(".hit").first.tap()
    phone.close()


# The other games


@pytest.mark.parametrize("game", ["go", "kropki"])
def test_the_analysis_of_the_other_games(ann: BrowserUser, game: str) -> None:
    page = ann.page
    ann.start_game(game, "9 x 9" if game == "go" else "10 x 10", "me", "me")
    for number in (30, 40, 50):
        ann.click(number)
    page.click("#tab-analysis")
    page.wait_for_selector(".candidates li")
    ann.wait_for_timeline()
    assert page.locator(".chance").count() > 1
    assert page.locator(".over rect").count() > 0 or game == "kropki"
    expect(page.locator(".analysis")).to_contain_text("Score estimate" if game == "go" else "simulations")


def test_a_large_paper_scrolls_and_zooms_on_a_phone(browser: Browser, server: Server) -> None:
    phone = BrowserUser(browser, server, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    page = phone.page
    phone.start_game("kropki", "20 x 20", "me", "me")
    phone.wait_for_turn()
    for _ in range(6):
        page.click("#zoom-in")
    box = page.locator(".hit").nth(210).bounding_box()
    assert box
    assert box["width"] >= 32
    assert page.evaluate("document.documentElement.scrollWidth") == 360  # the board scrolls, the page does not
    assert page.evaluate(
        "(({scrollWidth, clientWidth}) => scrollWidth > 2 * clientWidth)(document.querySelector('.holder'))"
    )
    with phone.waiting_for_moves():
        page.locator(".hit").nth(210).tap()
    page.click("#zoom-out")
    for _ in range(6):
        page.click("#zoom-out")
    page.locator(".hit").nth(100).tap()  # the squares are so small that the first tap shows a preview
    expect(page.locator(".ghost")).to_have_count(1)
    assert phone.plies == 1
    with phone.waiting_for_moves():
        page.locator(".hit").nth(100).tap()
    phone.close()


@pytest.mark.parametrize(("game", "corner"), [("ninetka", "B1"), ("go", "A1"), ("kropki", "A1")])
def test_a_turned_board_plays_the_same(shared_user: BrowserUser, game: str, corner: str) -> None:
    page = shared_user.page
    page.click(".brand")
    page.wait_for_selector("#start")
    if game == "ninetka":
        shared_user.start_ninetka("me", "me")
    else:
        shared_user.start_game(game, "9 x 9" if game == "go" else "10 x 10", "me", "me")
    hit = page.locator(f".hit[aria-label^='{corner}:']")
    board, before = page.locator(".board").bounding_box(), hit.bounding_box()
    page.click("#turn")
    after = hit.bounding_box()
    assert board
    assert before
    assert after
    assert before["y"] > board["y"] + board["height"] / 2 > after["y"]
    assert before["x"] < board["x"] + board["width"] / 2 < after["x"]
    with shared_user.waiting_for_moves():
        page.mouse.click(after["x"] + after["width"] / 2, after["y"] + after["height"] / 2)
    assert page.locator(".move").all_inner_texts() == [corner]
    page.click("#turn")


@pytest.mark.parametrize(
    ("game", "board", "first_move", "second_move"),
    [("ninetka", "", "B1", "C1"), ("go", "9 x 9", "A1", "B2"), ("kropki", "10 x 10", "A1", "B2")],
)
def test_a_move_is_chosen_before_its_turn(
    shared_user: BrowserUser, game: str, board: str, first_move: str, second_move: str
) -> None:
    page, chosen = shared_user.page, shared_user.page.locator(".premove")
    page.click(".brand")
    page.wait_for_selector("#start")
    if game == "ninetka":
        shared_user.start_ninetka("me", "random", fast=False)
    else:
        shared_user.start_game(game, board, "me", "random")
    page.click("#pause")
    expect(page.locator("#pause[aria-pressed=true]")).to_have_count(1)
    box = page.locator(f".hit[aria-label^='{second_move}:']").bounding_box()
    assert box
    centre = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    click_cell(shared_user, first_move)
    for cancel in (lambda: page.keyboard.press("Escape"), lambda: page.mouse.click(*centre)):
        page.mouse.click(*centre)
        expect(chosen).to_have_count(1)
        expect(page.locator(".hint")).to_contain_text(f"Next: {second_move}.")
        cancel()
        expect(chosen).to_have_count(0)
    page.mouse.click(*centre)
    with shared_user.waiting_for_moves(2):
        page.click("#pause")
    moves = page.locator(".move").all_inner_texts()
    assert (moves[0], moves[2]) == (first_move, second_move)
    expect(chosen).to_have_count(0)


def test_a_move_chosen_before_its_turn_that_cannot_be_played_is_dropped(ann: BrowserUser, bob: BrowserUser) -> None:
    ann.start_game("go", "5 x 5", "me", "open")
    bob.join(ann.page.url, "Bob")
    ann.wait_for_turn()
    box = ann.page.locator(".hit[aria-label^='C3:']").bounding_box()
    assert box
    click_cell(ann, "A1")
    ann.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(ann.page.locator(".premove")).to_have_count(1)
    click_cell(bob, "C3")
    expect(ann.page.locator(".toast")).to_have_text("C3 cannot be played now")
    expect(ann.page.locator(".premove")).to_have_count(0)
    assert ann.plies == 2


# Accessibility


def violations(page: Page) -> list[tuple[str, str]]:
    """Return axe-core's violations on a large light page and on a small dark page."""
    axe, violations_found = pytest.importorskip("axe_playwright_python.sync_playwright").Axe(), []
    for scheme, width, height in (("light", 1280, 900), ("dark", 360, 740)):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": height})
        wrong = axe.run(page).response["violations"]
        violations_found += [
            (f"{scheme} {violation['id']}", node["html"][:200]) for violation in wrong for node in violation["nodes"]
        ]
        assert page.evaluate("document.documentElement.scrollWidth") == width
    return violations_found


@pytest.mark.parametrize(("game", "board"), [("", ""), ("ninetka", ""), ("go", "9 x 9"), ("kropki", "10 x 10")])
def test_axe_finds_nothing_wrong(shared_user: BrowserUser, game: str, board: str) -> None:
    page = shared_user.page
    page.set_viewport_size({"width": 1280, "height": 900})
    page.click(".brand")
    page.wait_for_selector("#start")
    if not game:
        assert violations(page) == []
        page.click("#help")
        assert violations(page) == []
        page.keyboard.press("Escape")
        return
    if game == "ninetka":
        shared_user.start_ninetka(*["me"] * 4)
    else:
        shared_user.start_game(game, board, "me", "me")
    for number in range(6):
        shared_user.click(11 * number)
    assert violations(page) == []
    page.click("#tab-analysis")
    shared_user.wait_for_timeline()
    page.wait_for_selector(".candidates li")
    assert violations(page) == []

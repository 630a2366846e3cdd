"""The pages in a real Chromium: what they say is what the command says, they move, they are silent, and each control has a name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import headway as hw
from headway.web import pages
from headway.web.question import UPLOADS
from support.paths import ROOT
from support.web_server import Visit

pytestmark = pytest.mark.slow  # a browser, or a server under fire: minutes

VIEWS = [(page["name"], view["name"]) for page in pages.document() for view in page.get("view", ())]
BOARD = ["/blackboard", "/blackboard?claim=RB-10", "/blackboard?chapter=3", "/blackboard?chapter=7"]
WAITING = ("lab",)  # pages that run nothing before they are told to: test_lab
ASKED_VIEWS = [(page, view) for page, view in VIEWS if view not in UPLOADS and page not in WAITING]  # UPLOADS ask nothing without a file


def command_of(page: Any) -> str:
    """The command line that the page shows."""
    return page.locator(".answer > div .command code, .chapter > .command code").first.inner_text()


def answered(page: Any) -> str:
    """The headline, once the answer has come."""
    page.wait_for_selector("[aria-busy=false] #answer:not(:empty), .chapter #answer:not(:empty)", timeout=90_000)
    return page.locator("#answer").text_content()


@pytest.mark.parametrize(("name", "view"), ASKED_VIEWS)
def test_headline__is_the_answer_of_the_same_command(visit: Visit, name: str, view: str) -> None:
    page = visit.open(f"/{name}?view={view}")
    headline = answered(page)
    assert headline == hw.command(command_of(page)).answer


@pytest.mark.parametrize("path", BOARD)
def test_blackboard__headline_and_every_sentence_are_answers(visit: Visit, path: str) -> None:
    page = visit.open(path)
    assert page.locator("#answer").text_content() == hw.command(command_of(page)).answer
    page.wait_for_timeout(1500)
    for stage in page.locator(".stage").all():
        says = stage.locator(".says").text_content() if stage.locator(".says").count() else ""
        if says:
            command = stage.locator(".side > div > .command code").first.inner_text()
            assert says == hw.command(command).answer


def test_curve__follows_every_move_and_ends_at_the_last(visit: Visit) -> None:
    page = visit.open("/blackboard?claim=RB-10")
    stage = page.locator(".stage", has=page.locator("[data-claim=RB-10].open"))
    slider = stage.locator("input[type=range]").first
    slider.wait_for()
    page.wait_for_function("() => window.headway.redraws.count > 0")
    before = page.evaluate("() => window.headway.redraws.count")
    line = stage.locator("svg path[aria-roledescription='line mark'], svg .mark-line path").first
    shapes = set()
    for place in range(50):
        count = page.evaluate("() => window.headway.redraws.count")
        slider.evaluate(
            "(range, value) => { range.value = value; range.dispatchEvent(new Event('input', {bubbles: true})); }", str(place + 20)
        )
        page.wait_for_function("(count) => window.headway.redraws.count > count", arg=count)
        shapes.add(line.get_attribute("d"))
    assert page.evaluate("() => window.headway.redraws.count") - before >= 50
    assert len(shapes) > 30  # the curve moved, not only the number
    slider.evaluate("(range) => range.dispatchEvent(new Event('change', {bubbles: true}))")
    page.wait_for_function("() => document.location.search.includes('with=')")
    moved = stage.locator("output").first.inner_text()
    page.wait_for_function("(word) => document.querySelector('.stage .claims .open') && [...document.querySelectorAll('.command code')].some((code) => code.textContent.includes(word))", arg=moved.replace(" ", ""))  # fmt: skip  # noqa: E501


def test_curve__a_hasty_hand_ends_at_its_last_position(visit: Visit) -> None:
    page = visit.open("/plan?view=serve")
    answered(page)
    slider = page.locator("input[data-slider=context]")
    most = int(slider.get_attribute("max") or 0)
    slider.evaluate("""async (range, most) => {
        for (let place = 0; place < 60; place += 1) {
            range.value = String((place * 7) % most);
            range.dispatchEvent(new Event('input', {bubbles: true}));
            await new Promise((resolve) => setTimeout(resolve, 4));
        }
    }""", most)  # fmt: skip
    slider.evaluate("(range) => range.dispatchEvent(new Event('change', {bubbles: true}))")
    word = page.get_by_label("Context", exact=True).input_value()
    page.wait_for_function("(word) => document.querySelector('.answer .command code').textContent.includes(`--context ${word}`)", arg=word)
    assert page.locator("#answer").text_content() == hw.command(command_of(page)).answer


def test_state__is_in_the_address_and_back_restores_it(visit: Visit) -> None:
    page = visit.open("/plan?view=serve")
    first = answered(page)
    page.get_by_label("TP", exact=True).fill("4")
    page.get_by_label("TP", exact=True).press("Enter")
    page.wait_for_function("(first) => document.querySelector('#answer').textContent !== first", arg=first)
    second, there = page.locator("#answer").text_content(), page.url
    assert "tp=4" in there
    page.go_back()
    page.wait_for_function("(first) => document.querySelector('#answer')?.textContent === first", arg=first)
    page.goto(there)
    page.wait_for_function("(second) => document.querySelector('#answer')?.textContent === second", arg=second)


def test_number__unfolds_its_tree_and_gives_the_focus_back(visit: Visit) -> None:
    page = visit.open("/plan?view=serve")
    answered(page)
    number = page.locator("td .number", has_text="ms").first
    number.click()
    tree = page.locator("#tree")
    tree.locator("details").first.wait_for()
    assert tree.locator(".source").count() > 3
    page.keyboard.press("Escape")
    assert tree.is_hidden()
    assert number.evaluate("(node) => document.activeElement === node")


def test_exports__are_what_the_command_writes(visit: Visit, tmp_path: Path) -> None:
    page = visit.open("/plan?view=serve")
    answered(page)
    result = hw.command(command_of(page))
    texts = {"JSON": result.to_json(), "CSV": result.to_csv()}
    for name, expected in texts.items():
        with page.expect_download() as download:
            page.get_by_role("button", name=name, exact=True).click()
        assert download.value.path().read_text(encoding="utf-8") == expected
    with page.expect_download() as download:
        page.get_by_role("button", name="One HTML file").click()
    whole = tmp_path / "view.html"
    download.value.save_as(whole)
    assert result.answer in whole.read_text(encoding="utf-8")
    other = Visit(visit.page.context.browser, "file://")
    other.page.goto(f"file://{whole}")
    other.page.locator("svg").first.wait_for()
    assert other.said == []
    other.close()
    with page.expect_download() as download:
        page.get_by_role("button", name="PNG").click()
    assert download.value.path().read_bytes().startswith(b"\x89PNG")


def test_chip__of_ones_own_is_edited_fact_by_fact_and_taken_away(visit: Visit) -> None:
    page = visit.open("/compare?view=chip")
    first = answered(page)
    fact = page.get_by_label("hbm bw of the chip", exact=True)
    fact.fill("9 TB/s")
    fact.press("Tab")
    page.wait_for_function("(first) => document.querySelector('#answer').textContent !== first", arg=first)
    assert "9 TB/s" in page.locator("#answer").text_content()
    with page.expect_download() as download:
        page.get_by_role("button", name="The chip’s file").click()
    assert "9000000000000" in download.value.path().read_text(encoding="utf-8")


def test_benchmark__is_read_where_it_is_dropped(visit: Visit) -> None:
    page = visit.open("/runs?view=score")
    bench = ROOT / "tests" / "contract" / "golden" / "inputs" / "vllm_serve.json"
    page.get_by_label("Benchmark file").set_input_files(str(bench))
    page.wait_for_function("() => document.querySelector('#answer').textContent.startsWith('TPOT')")
    expected = hw.score(vllm=str(bench), on="8xh100-sxm", tp=8).answer
    assert page.locator("#answer").text_content() == expected
    assert "/" not in command_of(page).replace("8xh100", "")


def test_own_runs__are_told_before_and_after_where_they_are_dropped(visit: Visit) -> None:
    page = visit.open("/runs?view=calibrate&on=8xh100-sxm&tp=8&engine=vllm")
    bench = ROOT / "tests" / "contract" / "golden" / "inputs" / "vllm_serve.json"
    page.get_by_label("Benchmark file").set_input_files(str(bench))
    page.wait_for_function("() => document.querySelector('#answer').textContent.includes(' -> ')")
    assert page.locator("#answer").text_content() == hw.calibrate(str(bench), on="8xh100-sxm", tp=8, engine="vllm").answer
    assert page.get_by_label("Written by").count() == 0


def test_flashcards__are_dealt_and_marked(visit: Visit) -> None:
    page = visit.open("/blackboard?chapter=1")
    page.get_by_role("button", name="Deal cards").click()
    marked = set()
    for _ in range(4):  # cards are dealt at random: a number, a direction or a sentence
        page.locator(".card form label").last.wait_for()
        page.locator(".card form input").last.fill("no answer to any card")
        page.get_by_role("button", name="Answer", exact=True).click()
        words = page.locator(".card [role=status]").last.locator("p").first
        words.wait_for()
        if "wants" in words.text_content():  # a slip of the hand is asked again, without a fault of the page
            unit = words.text_content().partition("such as ")[2] or "r"
            page.locator(".card form input").last.fill(re.split(r",| or ", unit)[0] if unit != "r" else "rises")
            page.locator(".card form input").last.press("Enter")
            page.get_by_role("button", name="Next card").wait_for()
        marked.add(words.text_content().partition(":")[0])
        page.get_by_role("button", name="Next card").click()
    assert marked <= {"Right", "Not quite", "The answer"} and marked


@pytest.mark.parametrize("width", [360, 2560])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages__fit_their_window(browser: Any, address: str, width: int, theme: Any) -> None:
    window = Visit(browser, address, viewport={"width": width, "height": 900}, color_scheme=theme)
    for path in ("/plan?view=serve", "/compare", "/blackboard?claim=RB-10"):
        page = window.open(path)
        page.wait_for_timeout(500)
        assert page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0, path
    window.close()
    assert window.said == [] and window.blocked == []


def test_curve__that_has_no_value_leaves_the_number(visit: Visit) -> None:
    """With one stage nothing else moves the bubble: the claim is told all the same."""
    page = visit.open("/blackboard?claim=PP-07&with=stages=1")
    side = page.locator(".stage .side", has=page.locator("[aria-label='Claim PP-07']"))
    side.get_by_text("No curve here").wait_for()
    assert side.locator(".says:not([data-stale])").inner_text() == hw.command("lecture PP-07 --with stages=1").answer
    assert all("Failed to load resource" in line for line in visit.said)  # the browser's own word of a curve that is refused
    visit.said.clear()


def test_drawings__move(visit: Visit) -> None:
    page = visit.open("/blackboard?chapter=3")
    paper = page.locator(".moving-paper").first
    paper.scroll_into_view_if_needed()
    paper.wait_for()
    first = paper.inner_html()
    page.wait_for_timeout(900)
    assert paper.inner_html() != first

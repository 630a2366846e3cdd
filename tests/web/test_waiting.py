"""What a reader sees before an answer is there: words on what is being done, soon, on every page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from headway.web import pages
from support.web_server import Visit

pytestmark = pytest.mark.slow  # a browser

LIMIT_MS = 4_000  # until words that belong to the question stand: twice the target, which bench_web measures
VIEWS = [(page["name"], view) for page in pages.document() for view in page.get("view", ())]
WORKING = [(page, view) for page, view in VIEWS if not view.get("upload") and not view.get("waits")]
HEAVY = "/prices?view=speed&w=llama-3.1-8b&on=h200&prompt=500&output=50"


@pytest.fixture(scope="module")
def warm(browser: Any, address: str) -> None:
    """The server has answered before: its start is the business of bench_web."""
    window = Visit(browser, address)
    window.open("/plan?view=serve").wait_for_selector("[aria-busy=false] #answer:not(:empty)", timeout=90_000)
    window.close()


@pytest.fixture
def held(visit: Visit, warm: None) -> Iterator[tuple[Visit, list[Any]]]:
    """A page whose questions are not answered, and those questions."""
    waiting: list[Any] = []
    for place in ("**/api/ask", "**/api/run"):
        visit.page.route(place, lambda route: waiting.append(route))
    yield visit, waiting
    visit.page.unroute_all(behavior="ignoreErrors")


def first_words(visit: Visit, path: str, where: str) -> None:
    """Open a page and see its first words within the limit; once more where the machine was busy with something else."""
    errors = pytest.importorskip("playwright.sync_api")
    for is_last in (False, True):
        visit.page.goto(visit.address + path, wait_until="commit")
        try:
            visit.page.locator(where).first.wait_for(timeout=LIMIT_MS)
        except errors.TimeoutError:
            if is_last:
                raise
        else:
            return


@pytest.mark.parametrize(("name", "view"), WORKING, ids=[f"{name}-{view['name']}" for name, view in WORKING])
def test_view__says_what_is_being_done_before_there_is_an_answer(held: Any, name: str, view: dict[str, Any]) -> None:
    visit, _ = held
    first_words(visit, f"/{name}?view={view['name']}", ".work")
    words = visit.page.locator(".work").first.inner_text()
    subject = (view.get("words") or [view["flags"].get("sheet", "")])[0]
    assert not re.search(r"[{}\[\]]", words.replace(subject, "")) and len(words) > 20  # no hole is left in the sentence
    if "{w}" in view.get("work", ""):
        assert subject.replace(",", ", ").replace(",  ", ", ") in words


@pytest.mark.parametrize(("path", "words"), [("/blackboard?chapter=3", "chapter 3"), ("/blackboard?claim=RB-10", "claim RB-10")])
def test_blackboard__says_what_it_opens(held: Any, path: str, words: str) -> None:
    visit, _ = held
    first_words(visit, path, ".work")
    assert words in visit.page.locator(".work").inner_text()


@pytest.mark.parametrize("path", ["/start", "/lab?view=batch", "/runs?view=score"])
def test_page__without_a_question_of_its_own_stands_at_once(visit: Visit, warm: None, path: str) -> None:
    first_words(visit, path, ".doors, .chapter-head, #answer:not(:empty)")


def test_earlier_answer__stands_dimmed_until_it_is_computed_again(visit: Visit, warm: None) -> None:
    page = visit.open(HEAVY)
    page.wait_for_selector("[aria-busy=false] #answer:not(:empty)", timeout=90_000)
    headline = page.locator("#answer").text_content()
    waiting: list[Any] = []
    page.route("**/api/run", lambda route: waiting.append(route))
    page.reload()
    page.locator(".work", has_text="An earlier answer; computing again").wait_for()
    assert page.locator("#answer[data-stale]").text_content() == headline
    page.unroute("**/api/run")
    waiting[0].continue_()
    page.wait_for_selector("[aria-busy=false] #answer:not([data-stale])", timeout=90_000)
    assert page.locator(".work").is_hidden()


def test_other_question__shows_no_earlier_answer(held: Any) -> None:
    visit, _ = held
    stored = "JSON.stringify({key: 'x', answer: 'wrong', figures: []})"
    visit.page.add_init_script(f"localStorage.setItem('headway-earlier-prices-speed', {stored})")
    visit.page.goto(visit.address + HEAVY)
    visit.page.locator(".view .work").wait_for()
    assert visit.page.locator("#answer").text_content() == ""


def test_phone__reads_the_answer_before_the_form(browser: Any, address: str, warm: None) -> None:
    window = Visit(browser, address, viewport={"width": 360, "height": 800})
    page = window.open("/plan?view=serve")
    page.wait_for_selector("[aria-busy=false] #answer:not(:empty)", timeout=90_000)
    assert page.locator("#answer").bounding_box()["y"] < 800
    assert page.get_by_label("Context", exact=True).is_hidden()
    page.get_by_text("Change the question").click()
    assert page.get_by_label("Context", exact=True).is_visible()
    page.set_viewport_size({"width": 1280, "height": 800})
    assert page.get_by_label("Context", exact=True).is_visible()
    assert page.get_by_text("Change the question").is_hidden()
    window.close()
    assert window.said == []


def test_phone__a_start_folds_the_form_and_shows_its_answer(browser: Any, address: str, warm: None) -> None:
    window = Visit(browser, address, viewport={"width": 360, "height": 800})
    page = window.open("/plan?view=serve")
    page.get_by_text("Change the question").click()
    page.get_by_role("button", name="DeepSeek-V3 on one rack").click()
    page.locator("#answer:not([data-stale])", has_text="deepseek-v3").wait_for()
    assert page.get_by_label("Context", exact=True).is_hidden()
    window.close()
    assert window.said == []

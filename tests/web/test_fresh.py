"""Nothing on screen that belongs to other inputs than those shown stays undimmed: while one types or drags, and after an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headway.web import pages
from support.web_server import Visit, small

pytestmark = pytest.mark.slow  # a browser

VIEWS = [(page["name"], view["name"]) for page in pages.document() for view in page.get("view", ())
         if not view.get("upload") and not view.get("waits")]  # fmt: skip
FAULT = {"status": 422, "content_type": "application/json", "body": '{"error": "no such thing"}'}
# All that is seen of an answer and is not dimmed: words, drawings and controls, however deep; but not the state of the search.
UNDIMMED = """(root) => {
    const seen = [];
    const walk = (node, dimmed) => {
        if (node.nodeType === Node.TEXT_NODE) {
            if (!dimmed && node.textContent.trim()) seen.push(node.textContent.trim().slice(0, 60));
            return;
        }
        if (node.nodeType !== Node.ELEMENT_NODE || node.matches('.progress, .unseen, form, [hidden]')) return;
        const style = getComputedStyle(node);
        const now = dimmed || Number(style.opacity) < 0.5;
        if (!now && node.matches('svg, input, button')) seen.push(node.tagName);
        for (const child of node.childNodes) walk(child, now);
    };
    document.querySelectorAll(root).forEach((node) => walk(node, false));
    return seen;
}"""
MOVED = "(range, by) => { range.value = String(Number(range.value) + by); range.dispatchEvent(new Event('input', {bubbles: true})); }"
NONE_STALE = "(root) => document.querySelectorAll(`${root} [data-stale], ${root}[data-stale]`).length === 0"


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """A page without transitions whose questions a test can hold back or let fail."""
    window = Visit(browser, address, viewport={"width": 1200, "height": 900}, reduced_motion="reduce")
    yield window
    window.close()
    assert [line for line in window.said if "422" not in line] == []


class Held:
    """Questions of a page that wait until they are let go."""

    def __init__(self, page: Any) -> None:
        self.page, self.waiting = page, []
        for place in ("**/api/ask", "**/api/run"):
            page.route(place, lambda route: self.waiting.append(route))

    def each(self, how: Any) -> None:
        """Let all that wait, and come, go on or fail."""
        for place in ("**/api/ask", "**/api/run"):
            self.page.unroute(place)
            if how is FAULT:
                self.page.route(place, lambda route: route.fulfill(**FAULT))
        for route in self.waiting:
            route.fulfill(**FAULT) if how is FAULT else route.continue_()
        self.waiting.clear()


def undimmed(page: Any, root: str) -> list[str]:
    return page.evaluate(UNDIMMED, root)


def settled(page: Any, root: str = ".answer") -> None:
    page.wait_for_selector("[aria-busy=false] #answer:not(:empty)", timeout=90_000)
    page.wait_for_function(NONE_STALE, arg=root, timeout=90_000)


@pytest.mark.parametrize(("name", "view"), VIEWS)
def test_view__is_dim_where_it_belongs_to_other_inputs(page: Visit, name: str, view: str) -> None:
    window = page.open(small(name, view))
    settled(window)
    assert undimmed(window, ".answer")
    field = window.locator("form.controls .field:not(.switch) > input[type=text]").first
    before = field.input_value()
    held = Held(window)
    field.fill("x" + before)  # typed, not yet asked
    assert undimmed(window, ".answer") == []
    field.press("Enter")
    window.wait_for_timeout(100)
    assert undimmed(window, ".answer") == []  # asked, not yet answered
    held.each(FAULT)
    window.wait_for_selector(".answer.faulty")
    assert undimmed(window, ".answer") == ["no such thing"]
    held.each(None)
    field.fill(before)
    field.press("Enter")
    settled(window)
    assert window.locator(".answer.faulty").count() == 0


@pytest.mark.parametrize(("name", "view"), [(page["name"], view["name"]) for page in pages.document() for view in page.get("view", ())
                                            if view.get("sliders") and (view.get("live") or view.get("follow"))])  # fmt: skip
def test_slider__undims_what_moved_with_it(page: Visit, name: str, view: str) -> None:
    window = page.open(small(name, view))
    settled(window)
    headline = window.locator("#answer").text_content()
    held = Held(window)
    slider = window.locator("input[data-slider]").first
    slider.evaluate(MOVED, 9)
    assert undimmed(window, ".answer") == []
    held.each(None)
    window.wait_for_selector(".picture:not([data-stale])")
    assert "svg" in undimmed(window, ".answer") and headline not in undimmed(window, ".answer")
    slider.evaluate("(range) => range.dispatchEvent(new Event('change', {bubbles: true}))")
    settled(window)


def test_tree__of_a_number_is_dim_with_it(page: Visit) -> None:
    window = page.open("/plan?view=serve")
    settled(window)
    window.locator("td .number", has_text="ms").first.click()
    window.locator("#tree details").first.wait_for()
    assert undimmed(window, "#tree")
    field = window.locator("form.controls input[type=text]").first
    before = field.input_value()
    field.fill("x")
    assert undimmed(window, "#tree") == []
    field.fill(before)  # or the page asks of a model called x
    assert undimmed(window, "#tree")


@pytest.mark.parametrize("path", ["/blackboard?claim=RB-10", "/blackboard?chapter=3"])
def test_blackboard__is_dim_where_a_slider_stands_elsewhere(page: Visit, path: str) -> None:
    window = page.open(path)
    window.wait_for_function("() => window.headway.redraws.count > 0")
    stage = window.locator(".stage", has=window.locator(".side > .sliders input[type=range]")).first
    stage.locator(".says:not(:empty)").wait_for()
    stage.evaluate("(node) => node.setAttribute('id', 'looked-at')")
    root = "#looked-at .side > :not(.moving)"
    assert undimmed(window, root)
    held = Held(window)
    slider = stage.locator(".side > .sliders input[type=range]").first
    slider.evaluate(MOVED, 5)
    assert undimmed(window, root) == []
    slider.evaluate("(range) => range.dispatchEvent(new Event('change', {bubbles: true}))")
    held.each(FAULT)
    window.wait_for_function("() => document.querySelector('#looked-at .says').textContent === 'no such thing'")
    assert undimmed(window, root) == ["no such thing"]
    held.each(None)
    slider.evaluate("(range) => range.dispatchEvent(new Event('change', {bubbles: true}))")
    window.wait_for_function("() => !document.querySelector('#looked-at .picture').hasAttribute('data-stale')")
    assert "svg" in undimmed(window, root)


def test_card_of_ones_own_model__is_dim_while_another_is_typed(page: Visit) -> None:
    window = page.open("/blackboard?chapter=1")
    card = window.locator("section.card", has=window.get_by_label("Your model", exact=True))
    card.get_by_role("button", name="Show its card").click()
    card.locator("table").wait_for()
    card.evaluate("(node) => node.lastElementChild.setAttribute('id', 'looked-at')")
    assert undimmed(window, "#looked-at")
    card.get_by_label("Your model", exact=True).fill("llama-3.1-8b")
    assert undimmed(window, "#looked-at") == []
    card.get_by_role("button", name="Show its card").click()
    window.wait_for_function("() => !document.querySelector('#looked-at').hasAttribute('data-stale')")

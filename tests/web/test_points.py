"""Points of pictures: a pointer and the arrow keys read them, and what is picked is the answer that its words promised."""

from __future__ import annotations

import re
from typing import Any

import pytest

from support.web_server import Visit

pytestmark = pytest.mark.slow  # a browser

SERVE = "/plan?view=serve&v=1&w=llama-3.1-8b&on=h100-sxm&batch=48"
PLAN = "/plan?view=plan&v=1&w=llama-3.1-8b&on=8xh100-sxm&ttft=2s&tpot=30ms"


def tip(page: Any) -> str:
    """What is said of the point under the pointer or the key."""
    return page.locator(".tip:not([hidden])").inner_text()


def test_keys__go_from_point_to_point_and_enter_asks_it(visit: Visit) -> None:
    page = visit.open(SERVE)
    drawing = page.locator(".drawing").first
    drawing.focus()
    page.keyboard.press("Home")
    first = tip(page)
    page.keyboard.press("ArrowRight")
    second = tip(page)
    assert first.startswith("Batch 1:") and second != first
    page.keyboard.press("ArrowLeft")
    assert tip(page) == first
    page.keyboard.press("ArrowRight")
    batch, expected = re.match(r"Batch ([\d,]+): .*expected ([\d.]+ \S+)", second).groups()
    page.keyboard.press("Enter")
    page.locator("#answer", has_text=f"batch {batch},").wait_for()
    assert f"a decode step takes {expected} " in page.inner_text("#answer").replace("us", "µs")
    assert f"batch={batch}" in page.url


TREND = "/compare?view=trend&v=1"
LIT = ".mark-symbol path[fill=currentColor]"


def test_reading_a_point_lights_all_that_has_its_name(visit: Visit) -> None:
    page = visit.open(TREND)
    page.locator(".drawing[tabindex] svg").first.wait_for(timeout=60_000)
    assert page.locator(LIT).count() == 0
    page.locator(".drawing").first.focus()
    page.keyboard.press("Home")
    page.locator(LIT).first.wait_for()
    named = page.locator(LIT).evaluate_all("(nodes) => [...new Set(nodes.map((node) => node.__data__.datum.name))]")
    assert len(named) == 1 and tip(page).startswith(named[0] + ", ")
    rows = page.locator(".mark-symbol path").evaluate_all("(nodes) => nodes.map((node) => node.__data__.datum).filter((row) => !row.downs)")
    assert page.locator(LIT).count() == sum(row.get("name") == named[0] for row in rows) > 1  # in every panel that has it
    page.keyboard.press("Escape")
    page.wait_for_timeout(300)
    assert page.locator(LIT).count() == 0


def test_escape__leaves_the_point(visit: Visit) -> None:
    page = visit.open(SERVE)
    page.locator(".drawing").first.focus()
    page.keyboard.press("End")
    assert tip(page)
    page.keyboard.press("Escape")
    assert page.locator(".tip:not([hidden])").count() == 0 and page.locator(".rings span").count() == 0


def test_pointer__reads_every_line_at_its_place_and_rings_stand_on_them(visit: Visit) -> None:
    page = visit.open(SERVE)
    drawing = page.locator(".drawing").first
    drawing.scroll_into_view_if_needed()
    box = drawing.bounding_box()
    page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 0.5 * box["height"])
    words = tip(page)
    assert all(name in words for name in ("floor", "weights", "KV cache", "expected"))
    far = page.evaluate("""() => {
        const lines = [...document.querySelector('.drawing').querySelectorAll('.mark-line path')];
        return Math.max(...[...document.querySelectorAll('.rings span')].map((ring) => {
            const box = ring.getBoundingClientRect(), x = box.left + box.width / 2, y = box.top + box.height / 2;
            return Math.min(...lines.flatMap((line) => {
                const to = line.getScreenCTM();
                return Array.from({length: 400}, (_, at) => line.getPointAtLength(line.getTotalLength() * at / 399))
                    .map((point) => point.matrixTransform(to)).map((point) => Math.hypot(point.x - x, point.y - y));
            }));
        }));
    }""")
    assert far < 3
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] - 200)
    assert page.locator(".tip:not([hidden])").count() == 0


def test_a_picked_point_of_the_frontier_is_the_layout_that_it_said(visit: Visit) -> None:
    page = visit.open(PLAN)
    page.locator(".drawing svg").first.wait_for(timeout=60_000)
    page.locator(".drawing").first.focus()
    page.keyboard.press("Home")
    for _ in range(20):
        if "click or Enter" in tip(page) and "plan" not in tip(page):
            break
        page.keyboard.press("ArrowRight")
    batch, speed = re.search(r"batch (\d+): ([\d.]+k?) tok/s a user", tip(page)).groups()
    page.keyboard.press("Enter")
    page.locator("#answer", has_text=f"batch {batch}").wait_for(timeout=30_000)
    assert "view=serve" in page.url and f"batch={batch}" in page.url
    headings = page.locator(".numbers th").all_inner_texts()
    assert page.locator(".numbers tbody tr").first.locator("td").nth(headings.index("tok/s user")).inner_text().startswith(speed)

"""Answers that read well: tables that say what of them is not seen, rows to choose, sentences before trees, sliders at their picture, and
answers kept side by side."""

from __future__ import annotations

from typing import Any

import pytest

import headway as hw
from headway.web.question import Cell
from headway.web.reply import explanation
from support.web_server import Visit

pytestmark = pytest.mark.slow  # a browser

# Cells of the table whose text is seen in part: it goes over an end of the region, or over the shade that covers a cut column.
CUT = """(frame) => {
    const region = frame.querySelector('.wide');
    const box = region.getBoundingClientRect();
    const ends = (name, far) => frame.querySelector(`.edge.${name}:not([hidden])`)?.getBoundingClientRect()[far];
    const begin = ends('left', 'right') ?? box.left, end = ends('right', 'left') ?? box.right;
    const range = document.createRange();
    return [...frame.querySelectorAll('th, td')].filter((cell) => {
        if (region.matches('.cut') && !cell.previousElementSibling) return false; // the first column stays
        range.selectNodeContents(cell);
        const { left, right } = range.getBoundingClientRect();
        const isPartly = (edge) => left < edge - 3 && right > edge + 3;
        return isPartly(begin) || isPartly(end);
    }).map((cell) => cell.textContent);
}"""


def answered(page: Any) -> Any:
    page.wait_for_selector("[aria-busy=false] #answer:not([data-stale], :empty)", timeout=90_000)
    return page


@pytest.mark.parametrize("width", [360, 700, 1280])
def test_table__says_how_much_of_it_is_seen_and_cuts_no_word(browser: Any, address: str, width: int) -> None:
    window = Visit(browser, address, viewport={"width": width, "height": 900})
    page = answered(window.open("/plan?view=serve"))
    frame = page.locator(".numbers .frame")
    line = page.locator(".numbers .columns")
    total = frame.locator("th").count()
    says = line.text_content()
    assert says.endswith(f" of {total} columns: scroll sideways for the others") and 0 < int(says.split()[0]) < total
    for far in (0, 37, 150, 10_000):
        frame.locator(".wide").evaluate("(region, far) => { region.scrollLeft = far; }", far)
        page.wait_for_timeout(120)
        assert frame.evaluate(CUT) == []
    assert frame.locator(".edge.right").is_hidden() and frame.locator(".edge.left").is_visible()
    window.close()
    assert window.said == []


def test_table__that_fits_says_nothing(visit: Visit) -> None:
    page = answered(visit.open("/plan?view=serve&w=llama-3.1-8b&on=h100-sxm&batch=4"))
    page.set_viewport_size({"width": 3000, "height": 900})
    answered(page)
    page.locator(".numbers .columns").wait_for(state="hidden")
    assert page.locator(".edge:visible").count() == 0


def test_evidence__rows_are_chosen_by_what_they_say(visit: Visit) -> None:
    page = answered(visit.open("/evidence?view=measured"))
    rows = hw.command("list evidence")._answer.rows
    page.get_by_label("Engine", exact=True).select_option("SGLang")
    page.get_by_label("Measure", exact=True).select_option("TTFT")
    wanted = [row for row in rows if row["engine"] == "SGLang" and row["measure"] == "TTFT"]
    page.get_by_text(f"{len(wanted)} of {len(rows)} rows").wait_for()
    assert page.locator(".numbers tbody tr:visible").count() == len(wanted) > 0
    page.get_by_label("Engine", exact=True).select_option("")
    page.get_by_label("Measure", exact=True).select_option("")
    assert page.locator(".numbers tbody tr:visible").count() == len(rows)


def test_tree__begins_with_a_sentence_with_its_numbers(visit: Visit) -> None:
    page = answered(visit.open("/plan?view=serve&w=llama-3.1-8b&on=h100-sxm&batch=4"))
    page.locator(".number-card .number").first.click()
    says = page.locator("#tree .says")
    says.wait_for()
    tree = explanation(Cell(row=0, key="step_s"), hw.command("serve llama-3.1-8b --on h100-sxm --batch 4"))
    assert says.text_content() == tree["says"]
    assert tree["tree"]["text"] in tree["says"]
    assert tree["tree"]["inputs"]["kv_tokens"]["text"] in tree["says"]


def test_sentence__of_a_chosen_number_says_where_it_is_from() -> None:
    result = hw.command("price llama-3.1-8b --on h200 --prompt 500 --output 50 --tpot 50ms")
    says, row = explanation(Cell(row=0, key="batch"), result)["says"], next(iter(result._answer.rows))
    assert says == f"Batch is {row['batch']:.0f}: chosen by the search of plan."


def test_slider__stands_at_the_picture_that_it_moves(visit: Visit) -> None:
    page = answered(visit.open("/plan?view=serve"))
    slider = page.locator(".pictures input[data-slider=context]")
    slider.wait_for()
    assert slider.evaluate("(range) => range.closest('form').nextElementSibling.matches('figure.picture')")
    assert page.locator("form.controls input[type=range]").count() == 0
    slider.evaluate("(range) => { range.value = '20'; range.dispatchEvent(new Event('input', {bubbles: true})); }")
    word = page.get_by_label("Context", exact=True).input_value()
    slider.evaluate("(range) => range.dispatchEvent(new Event('change', {bubbles: true}))")
    page.locator(".answer > div .command code", has_text=f"--context {word}").wait_for()
    page.get_by_label("Context", exact=True).fill("8k")
    page.get_by_label("Context", exact=True).press("Enter")
    page.locator(".pictures .slide output", has_text="8k").wait_for()


def test_answer__is_kept_beside_the_next_with_its_own_question(visit: Visit) -> None:
    page = answered(visit.open("/plan?view=serve"))
    first, command = page.locator("#answer").text_content(), page.locator(".answer > div > .command code").text_content()
    figures = page.locator(".number-card b, .number-card .number").all_text_contents()
    page.get_by_role("button", name="Keep this answer").click()
    page.get_by_label("TP", exact=True).fill("4")
    page.get_by_label("TP", exact=True).press("Enter")
    page.locator(".answer > div > .command code", has_text="--tp 4").wait_for()
    kept = page.get_by_role("region", name="An answer that was kept")
    assert kept.locator(".kept-headline").text_content() == first != page.locator("#answer").text_content()
    assert kept.locator(".command code").text_content() == command
    assert kept.locator("dd").all_text_contents() == figures
    page.get_by_label("TP", exact=True).fill("2")  # typed, not asked: what is kept stays, what stood for TP 4 is dim
    assert page.locator("#answer[data-stale]").count() == 1 and page.locator(".kept-answer[data-stale]").count() == 0
    page.go_back()
    answered(page)
    assert kept.count() == 1
    kept.get_by_role("button", name="Let it go").click()
    assert kept.count() == 0


def test_answer__comes_to_the_eye_after_enter_and_after_no_slider(visit: Visit) -> None:
    page = visit.open("/plan?view=serve")
    answer = page.locator("[aria-busy=false] #answer:not(:empty)")
    answer.wait_for()
    field, first = page.get_by_label("TP", exact=True), answer.text_content()
    top = "() => document.querySelector('#answer').getBoundingClientRect().top"
    away = "() => { window.scrollTo(0, 700); return window.scrollY; }"
    field.focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("4")
    assert page.evaluate(away) == 700 and page.evaluate(top) < 0
    page.keyboard.press("Enter")
    page.wait_for_timeout(1500)
    assert answer.text_content() != first
    assert 0 <= page.evaluate(top) < 100 and field.evaluate("(node) => node === document.activeElement")
    page.evaluate(away)
    slider = page.locator("input[data-slider=context]")
    for event in ("input", "change"):
        slider.evaluate("(range, event) => { range.value = '40'; range.dispatchEvent(new Event(event, {bubbles: true})); }", event)
    page.wait_for_timeout(1500)
    assert page.evaluate("() => window.scrollY") == 700

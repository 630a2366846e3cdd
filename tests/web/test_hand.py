"""A hand at every view drags, releases, breaks and mends in a drawn order; what is not dimmed is the answer to what the form shows.

The form is read from the document, and its question answered here, without the page: what the page asked for does not count.
"""

from __future__ import annotations

import functools
import json
import random
import re
import shlex
from typing import Any

import pytest

import headway as hw
from headway.web import pages, reply
from headway.web.question import PageQuestion, question
from support.web_server import Visit, small

pytestmark = pytest.mark.slow  # a browser

SEED = 20261127
MOVES = 4
VIEWS = [(page["name"], view["name"]) for page in pages.document() for view in page.get("view", ())
         if not view.get("upload") and not view.get("waits")]  # fmt: skip
FORM = """(form) => [...form.querySelectorAll('input:not([data-slider]), select')].map((input) =>
    [input.id.replace(/-\\d+$/, ''), input.type === 'checkbox' ? input.checked : input.value.trim()])"""
# Of each mark of a picture, the rows that stand in the drawing: Vega ties what it drew to the row that it drew.
SEEN = """(root) => {
    const letters = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
    const width = (node) => Math.round(Math.min(1200, Math.max(320, node.clientWidth / letters)));
    const marks = (figure) => {
        let item = [...figure.querySelectorAll('.drawing svg *')].find((node) => node.__data__?.mark)?.__data__;
        while (item?.mark.group) item = item.mark.group;
        const lists = [];
        const walk = (mark) => {
            if (mark.marktype === 'group') mark.items.forEach((group) => group.items.forEach(walk));
            else if (mark.role === 'mark') lists.push(mark.items.map((entry) => ({...entry.datum})));
        };
        if (item) walk(item.mark);
        return {title: figure.querySelector('.figure-title').textContent, lists};
    };
    const isDim = (node) => Boolean(node.closest('[data-stale]'));
    const texts = (of) => [...root.querySelectorAll(of)].filter((node) => !isDim(node)).map((node) => node.textContent.trim());
    return {
        faulty: root.classList.contains('faulty') && texts('#answer').length > 0,
        headline: texts('#answer'),
        figures: texts('.figures .number-card > :first-child'),
        cells: texts('.numbers tbody td, .numbers tbody th'),
        titles: texts('.picture .figure-title'),
        captions: texts('.picture figcaption'),
        command: texts('.answer > div .command code'),
        pictures: texts('#answer').length ? [...root.querySelectorAll('.picture')].filter((node) => !isDim(node)).map(marks) : [],
        width: width(root.querySelector('.pictures')),
    };
}"""
DRAG = "(range, at) => { range.value = String(at); range.dispatchEvent(new Event('input', {bubbles: true})); }"
RELEASE = "(range) => range.dispatchEvent(new Event('change', {bubbles: true}))"


def shown_question(window: Any, name: str, view_name: str) -> PageQuestion:
    """The question that the form's own fields ask, as a reader would type it."""
    view = next(entry for page in pages.document() if page["name"] == name for entry in page["view"] if entry["name"] == view_name)
    controls = {control["name"]: control for group in pages.verb(view["verb"])["groups"] for control in group["controls"]}
    words, flags = [], {}
    for key, value in window.locator("form.controls").evaluate(FORM):
        if re.fullmatch(r"w\d+", key):
            words += value.split() if view["verb"] in ("law", "show") else [value] * bool(value)
        elif value is True or (value and isinstance(value, str)):
            flags[key] = [part.strip() for part in value.split(";")] if controls[key]["several"] else value
    return question({"verb": view["verb"], "words": words, "flags": flags})


@functools.cache
def answer_of(key: str) -> dict[str, Any]:
    """The whole answer to a question, or the sentence that refuses it."""
    asked = question(json.loads(key))
    return reply.reply(asked, hw.command(asked.command()))


def key_of(asked: PageQuestion, width: int) -> str:
    flags = {name: list(value) if isinstance(value, tuple) else value for name, value in asked.flags}
    return json.dumps({"verb": asked.verb, "words": list(asked.words), "flags": flags, "width": width}, sort_keys=True)


def canonical(rows: list[dict[str, Any]]) -> list[str]:
    """Rows in an order of their own, whole numbers like others."""
    return sorted(json.dumps(json.loads(json.dumps(row), parse_int=float), sort_keys=True) for row in rows)


def check_points(seen: dict[str, Any], expected: dict[str, Any]) -> int:
    """How many rows stand in a drawing; its marks draw every set of rows of the answer's picture, whole, and nothing else."""
    sets = {name: rows for picture in expected["pictures"] if picture["title"] == seen["title"] for name, rows in picture["data"].items()}
    whole = {name: canonical(rows) for name, rows in sets.items()}
    valid = {name: canonical([row for row in rows if None not in row.values()]) for name, rows in sets.items()}  # a dot needs a value
    lists = [canonical(rows) for rows in seen["lists"]]
    for rows in lists:
        assert rows in whole.values() or rows in valid.values(), f"{seen['title']}: {rows[:2]} is no data of the picture"
    for name, rows in whole.items():
        assert not valid[name] or rows in lists or valid[name] in lists, f"{seen['title']}: {name} is not drawn"
    return sum(map(len, lists))


def check(window: Any, name: str, view: str) -> int:
    """How many undimmed texts and rows of drawings were compared; each is the answer's own to what the form shows now."""
    seen = window.locator(".answer").evaluate(SEEN)
    undimmed = [seen[part] for part in ("headline", "figures", "cells", "titles", "captions")]
    if seen["faulty"] or not any(undimmed):
        assert not seen["faulty"] or not any(undimmed[1:]), "numbers stand undimmed below a refusal"
        return 0
    expected = answer_of(key_of(shown_question(window, name, view), seen["width"]))
    figures = {figure["text"] for figure in expected["figures"]}
    cells = {cell["text"].replace("_", " ") for row in expected["table"]["rows"] for cell in row}
    headings = {picture["title"] for picture in expected["pictures"]}
    assert set(seen["headline"]) <= {expected["answer"]}
    assert set(seen["figures"]) <= figures
    assert {text.replace("_", " ") for text in seen["cells"]} - {""} <= cells
    if seen["headline"]:  # at rest: while a slider moves a picture may be that of the layout beside it
        assert set(seen["titles"]) <= headings
        assert all(sorted(shlex.split(line)) == sorted(shlex.split(expected["command"])) for line in seen["command"])
    return sum(map(len, undimmed)) + sum(check_points(picture, expected) for picture in seen["pictures"])


def settle(window: Any) -> None:
    window.locator("[aria-busy=false] #answer:not(:empty), .answer.faulty #answer").first.wait_for(timeout=90_000)
    window.wait_for_timeout(150)
    window.locator("section.answer[aria-busy=false]").wait_for(timeout=90_000)


@pytest.mark.parametrize(("name", "view"), VIEWS)
def test_hand__leaves_nothing_undimmed_that_is_no_answer_to_the_form(browser: Any, address: str, name: str, view: str) -> None:
    visit = Visit(browser, address, viewport={"width": 1200, "height": 900}, reduced_motion="reduce")
    window = visit.open(small(name, view))
    settle(window)
    compared = check(window, name, view)
    assert compared > 0
    drawn = random.Random(f"{SEED} {name} {view}")
    sliders, field = window.locator("input[data-slider]"), window.locator("form.controls .field:not(.switch) > input[type=text]").first
    right = field.input_value()
    for _ in range(MOVES):
        move = drawn.choice(["drag", "release", "break", "mend"])
        if move in ("drag", "release") and sliders.count():
            slider = sliders.nth(drawn.randrange(sliders.count()))
            for _ in range(4):
                slider.evaluate(DRAG, drawn.randint(0, int(slider.get_attribute("max") or 0)))
                window.wait_for_timeout(drawn.choice([0, 20, 120]))
                check(window, name, view)
            if move == "release":
                slider.evaluate(RELEASE)
        elif move == "break":
            field.fill("no-such-thing-" + right)
            check(window, name, view)
            field.press("Enter")
        else:
            field.fill(right)
            field.press("Enter")
        check(window, name, view)
        window.wait_for_timeout(drawn.choice([0, 50, 400]))
        check(window, name, view)
    field.fill(right)
    field.press("Enter")
    settle(window)
    assert check(window, name, view) > 0 or window.locator(".answer.faulty").count()
    visit.close()
    benign = ("status of 4", "status of 503")  # a broken question is refused; a busy server is asked again
    assert [line for line in visit.said if not any(text in line for text in benign)] == []

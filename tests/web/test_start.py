"""The first page: four questions that open their pages with what was typed, and a line for any command."""

from __future__ import annotations

import re
import shlex

import pytest

from headway import QUESTIONS
from headway.core.errors import HeadwayError
from headway.core.question import question_of
from headway.web import pages, permitted
from headway.web.verb import place_of_command
from support.web_server import Visit


def test_every_verb_of_a_page_opens_by_its_example() -> None:
    asked = {view["verb"] for page in pages.document() for view in page.get("view", ())}
    assert asked | {"lecture"} >= set(permitted.VERBS)
    for verb in permitted.VERBS:
        words = shlex.split(question_of(verb).example)
        assert place_of_command(shlex.join(["headway", *words])).startswith("/")


@pytest.mark.parametrize("command", ["nope x", 'serve llama-3.1-8b --on "h100', "", "headway", "--help", "web plan", "serve --nosuch 3",
                                     *sorted(set(QUESTIONS) - set(permitted.VERBS))])  # fmt: skip
def test_what_opens_no_page_is_one_line(command: str) -> None:
    with pytest.raises(HeadwayError) as caught:
        place_of_command(command)
    assert "\n" not in str(caught.value)


def test_a_verb_without_a_page_says_why() -> None:
    for verb in QUESTIONS:
        asked = question_of(verb)
        assert bool(asked.no_page) != bool(asked.refresh), verb
        if asked.no_page:
            with pytest.raises(permitted.Refused, match=re.escape(asked.no_page)):
                permitted.check_verb(verb)


@pytest.mark.slow  # a browser
def test_questions_and_commands_open_their_pages(visit: Visit) -> None:
    page = visit.open("/")
    assert page.locator(".door").count() == 4
    service = page.locator(".door").first
    for label, word in {"Prompt": "4k", "Answer": "500", "First token": "2s", "Time per token": "50ms"}.items():
        service.get_by_label(label).fill(word)
    service.get_by_role("button").click()
    page.wait_for_url("**/plan?v=1&view=plan&w=llama-3.1-70b&on=8xh100-sxm&rate=4%2Fs&prompt=4k&output=500&ttft-p95=2s&tpot-p95=50ms")
    page = visit.open("/")
    page.locator(".door").nth(2).get_by_label("Requests").fill("400k/day")
    page.locator(".door").nth(2).get_by_role("button").click()
    page.wait_for_url("**/own?v=1&view=breakeven&w=llama-3.1-8b&on=l40s&rate=400k%2Fday&prompt=2k*")
    page = visit.open("/")
    page.get_by_label("Or type a command").fill("headway law servers_wait_s servers=10 load=8 service=5s")
    page.keyboard.press("Enter")
    page.locator("#answer", has_text="Servers wait is 1.023 s").wait_for()
    assert page.url.endswith("/formulas?view=law&w=servers_wait_s&w=servers%3D10&w=load%3D8&w=service%3D5s")
    page = visit.open("/")
    page.locator(".door").nth(3).get_by_role("button").click()
    page.locator("h1", has_text="Blackboard").wait_for()

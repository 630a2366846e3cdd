"""What a page assumes is what the command assumes: the defaults that its forms name, what its views preset, the models that it takes."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

import headway as hw
from headway.web import pages, permitted
from headway.web.question import question

VIEWS = [view for page in pages.document() for view in page.get("view", ()) if not view.get("upload")]
ASSUMED = {"kv", "weights", "compute", "chip-price", "price-metric", "engine", "overlap", "hbm-utilization", "confidence", "plainest"}
STATED = {  # presets of what a command assumes otherwise, and why
    ("price", "chip-price"): "the view shows how prices of tokens follow from those of chips",
    ("DeepSeek-V3 on one rack", "price-metric"): "nobody rents this rack by the hour on demand",
}


def controls(verb: str) -> list[dict[str, Any]]:
    return [control for group in pages.verb(verb)["groups"] for control in group["controls"]]


def test_views__preset_nothing_that_the_command_assumes_by_itself() -> None:
    places = [(place["name"], flag) for view in VIEWS for place in (view, *view.get("preset", ())) for flag in place.get("flags", {})]
    assert [place for place in places if place[1] in ASSUMED and place not in STATED] == []
    assert STATED.keys() <= set(places)


def choices_with_default(view: dict[str, Any]) -> dict[str, Any]:
    return {
        control["name"]: control["default"]
        for control in controls(view["verb"])
        if control["default"] in control["choices"] and control["name"] not in view.get("flags", {})
    }


# A sheet has no deployment: the verb refuses its flags. Two replays differ in the time that they took.
ASKED = [view for view in VIEWS if choices_with_default(view) and view["name"] != "sheet"]
MEASURED = {"wall_s", "compile_s"}
SMALL = {"words": ["llama-3.1-8b"], "flags": {"on": "h200", "prompt": "500", "output": "50"}}  # where a view's own question takes long


@pytest.mark.parametrize("view", ASKED, ids=[view["name"] for view in ASKED])
def test_forms__name_the_defaults_of_the_command(view: dict[str, Any]) -> None:
    """The defaults that a form names, all typed out, are the answer without them."""
    asked = SMALL if view["verb"] == "speed" else {"words": view["words"], "flags": view.get("flags", {})}
    plain, typed = (
        question({"verb": view["verb"], **asked, "flags": asked["flags"] | more}) for more in ({}, choices_with_default(view))
    )
    typed_rows, plain_rows = (
        [{key: value for key, value in row.items() if key not in MEASURED} for row in hw.command(shlex.join(each.argv())).rows()]
        for each in (typed, plain)
    )
    assert typed_rows == plain_rows


def test_forms__of_a_search_name_no_format_that_it_may_not_take() -> None:
    for verb in ("plan", "price", "speed"):
        (kv,) = (control for control in controls(verb) if control["name"] == "kv")
        assert kv["default"] == "searched"


def test_models__are_those_of_the_command_but_files_and_downloads() -> None:
    for name in ("llama-3.1-70b", "meta-llama/Llama-3.1-70B-Instruct", "deepseek-ai/DeepSeek-V3", "qwen3-32b:8layers"):
        assert permitted.is_model(name) and hw.model(name)
    for name in ("./config.json", "/etc/passwd", "nobody/no-such-model", "../models/x.json"):
        assert not permitted.is_model(name)

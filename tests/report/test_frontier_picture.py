"""A plan is drawn by what it makes least: among the points that keep its limits none costs less."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

import headway as hw
from headway.report.pictures.frame import View
from headway.report.plan import frontier
from headway.web import pages
from headway.web.question import question

PLANS = [
    place
    for page in pages.document()
    for view in page.get("view", ())
    if view["verb"] == "plan"
    for place in (view, *view.get("preset", ()))
]


@pytest.mark.parametrize("place", PLANS, ids=[place["name"] for place in PLANS])
def test_plan__no_drawn_point_that_keeps_the_limits_is_cheaper(place: dict[str, Any]) -> None:
    asked = question({"verb": "plan", "words": place["words"], "flags": place["flags"]})
    rows = hw.command(shlex.join(asked.argv())).rows()
    limit = place["flags"].get("tpot")
    tpot_s = None if limit is None else float(limit.removesuffix("ms")) / 1e3
    data = frontier(rows, tpot_s, View()).data
    (plan,) = data["frontier1_best"]
    slowest = plan["x"] if tpot_s is None else 1 / tpot_s
    assert plan["y"] == pytest.approx(rows[0]["usd_per_1k_requests"])
    assert min(point["y"] for point in data["frontier1_front"] if point["x"] >= slowest * (1 - 1e-9)) >= plan["y"] * (1 - 1e-9)

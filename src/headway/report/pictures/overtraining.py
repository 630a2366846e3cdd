"""What a model of equal quality costs over its life against the tokens it is trained on, by law: the optimum and the simple rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.listing import format_value
from headway.report.pictures.frame import Picture, View, compose
from headway.report.pictures.plot import Plot
from headway.report.pictures.scale import axis

HIGHEST = 3.0  # times the cheapest, where the axis ends
FAR = 100.0  # drawn for tokens on which no size reaches the quality


def picture(curves: Sequence[Any], row: Mapping[str, Any], view: View) -> Picture:
    """Picture of the curves of several laws (`training/scaling/equal_quality.py`), the first in bold; `row` is its answer."""
    import numpy as np

    lead = curves[0]
    low, high = max(curve.tokens[0] for curve in curves), min(curve.tokens[-1] for curve in curves)
    low, high = (low, high) if low < lead.best_tokens < high else (lead.tokens[0], lead.tokens[-1])  # where every law is drawn
    grid = np.geomspace(low, high, 160)
    shares = {curve.law: np.interp(np.log(grid), np.log(curve.tokens), curve.over_cheapest, left=FAR, right=FAR) for curve in curves}
    x = axis("Tokens of pre-training (log)", grid, "token", log=True, most=6, room=0.0, fixed_ends=view.ends("x"))
    y = axis("", [1.0, HIGHEST], "", ends=(0.95, HIGHEST), log=False, most=5, fixed_ends=view.ends("y"))
    plot = Plot(view, "overtraining", x, y, height=300, ends=[lead.law])
    rows = [
        {"tokens": float(tokens), **{law: _plain(values[place]) for law, values in shares.items()}} for place, tokens in enumerate(grid)
    ]
    for entry in rows:
        known = [FAR if entry[law] is None else entry[law] for law in shares]
        entry |= {"low": min(known), "high": max(known)}
    data = plot.rows("curves", rows)
    plot.band(data, "tokens", "low", "high", "whole")
    plot.curve(data, "tokens", lead.law, "compute", text=lead.law, width=3.5)
    plot.point("best", lead.best_tokens, 1.0, f"cheapest: {format_value(lead.best_tokens, 'token')} tokens", "compute")
    at_rule = 1 + row["rule_regret"]
    if x.holds(lead.rule_tokens) and y.holds(at_rule):
        plot.point("rule", lead.rule_tokens, at_rule, f"simple rule: {at_rule:.2f} times", "network", shape="square")
    plot.upright("chinchilla", row["chinchilla"], "20 tokens a parameter")
    size, served = format_value(row["active"], ""), format_value(row["served"], "token")
    title = f"At one quality the simple rule costs {at_rule:.2f} times the cheapest model; the valley is flat"
    caption = (
        f"Every point has the quality of {size} parameters on {format_value(lead.rule_tokens, 'token')} tokens: left, a larger model is "
        f"dearer to serve; right, a smaller one is dearer to train. The band spans {len(curves)} published laws."
    )
    heading = "Compute of training and serving over that of the cheapest model of equal quality"
    subtitle = f"{size} active parameters, {served} tokens served, by {lead.law}"
    return compose(view, [[plot.panel(heading)]], title=title, subtitle=subtitle, caption=caption)


def _plain(value: Any) -> float | None:
    number = float(value)
    return number if number == number and number < 1e6 else None  # a number differs from itself where it is nan

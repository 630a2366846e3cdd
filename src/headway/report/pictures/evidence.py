"""Measured rows by group with the median error of their predictions, which were made by fits that had not seen them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.errors import BadValue
from headway.report.pictures import dots
from headway.report.pictures.frame import Picture, View, compose

GROUPS = 20  # of which there is a row


def picture(rows: Sequence[Mapping[str, Any]], view: View) -> Picture:
    """Picture of the largest groups, the best predicted first."""
    largest = sorted(rows, key=lambda row: -row["rows"])[:GROUPS]
    if not largest:
        raise BadValue("--plot", "no rows", "rows to draw")
    largest.sort(key=lambda row: row["median_error"])
    labels = [f"{row['chip']}, {row['engine']}, {row['model_class'].replace('moe', 'MoE')}" for row in largest]
    texts = [f"{row['median_error']:.0%}, {row['measure']} ({row['rows']:,})" for row in largest]
    panel = dots.panel(view, "errors", largest, "median_error", labels, texts, unit="share", title="median error of a prediction")
    low, high = (f"{largest[place]['median_error']:.0%}" for place in (0, -1))
    return compose(
        view, [[panel]], title=f"Predictions miss by {low} to {high} in the median, by what was measured",
        subtitle=f"the {len(largest)} largest of {len(rows)} groups of measured rows, by chip, engine and class of model",
        caption="Each row was predicted by a fit that had not seen its source; in brackets is the number of measurements.",
    )  # fmt: skip

"""Each scaling law's answer beside the others', or along an input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core import columns
from headway.core.listing import format_value
from headway.report.pictures import dots, grid
from headway.report.pictures.frame import Picture, View, compose


def picture(rows: Sequence[Mapping[str, Any]], keys: Sequence[str], names: Mapping[str, str], varied: Sequence[str], view: View, *,
            title: str) -> Picture:  # fmt: skip
    """Picture with a panel for each of `keys`; `names` are the columns in words."""
    if varied:
        return grid.picture(
            rows, varied[0], keys, ("law", *varied[1:]), view, title=title, about="scaling laws, each fitted on its own runs"
        )
    panels = []
    for number, key in enumerate(keys):
        own_rows = [row for row in rows if row.get(key) is not None]
        texts = [f"{row[key]:.1%}" if key.endswith("regret") else format_value(row[key], columns.unit(key)) for row in own_rows]
        unit = "share" if key.endswith("regret") else columns.unit(key)
        words = names.get(key, key.replace("_", " "))
        heading = words[:1].upper() + words[1:]
        panels.append(dots.panel(view, f"law{number}", own_rows, key, [row["law"] for row in own_rows], texts, unit=unit, title="",
                                 heading=heading, columns=len(keys)))  # fmt: skip
    caption = "Each point is one published law's answer; the rule through it is the 90 % interval from the errors of its coefficients."
    return compose(view, [panels], title=title, subtitle="scaling laws, each fitted on its own runs", caption=caption)

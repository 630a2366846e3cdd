"""Layouts that an engine can express: a plan for an engine leaves out the others, unless the user pins such a layout."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from headway.hardware.host import chips_per_host
from headway.models.precision import Precision
from headway.performance.layout import NAMES, Layout
from headway.serving.launch.launch import ENGINES, flags
from headway.serving.launch.needs import ask
from headway.serving.plan.space import SearchSpace
from headway.serving.serve_request import ServeRequest


def expressible(layouts: SearchSpace, query: ServeRequest, engine: str, host: Any = None) -> SearchSpace:
    """The layouts that `engine` can express on hosts of `host` chips, with a note on the others; all, with a note, if it expresses none.

    An engine without launch lines expresses all.
    """
    if engine not in ENGINES or not layouts.count:
        return layouts
    writer, name = ENGINES[engine], flags(engine).name
    request = ask(query.model, Layout(), Precision(), None, None, chips_per_host(query.system) if host is None else host)
    columns = [np.broadcast_to(getattr(layouts.layouts, key), (layouts.count, 1))[:, 0].tolist() for key in NAMES]
    rows = [dict(zip(NAMES, degrees, strict=True)) for degrees in zip(*columns, strict=True)]
    reasons = [writer.layout_why(dataclasses.replace(request, **row)) for row in rows]
    keep = np.flatnonzero([not why for why in reasons])
    if len(keep) == len(rows):
        return layouts
    first = next(place for place, why in enumerate(reasons) if why)
    if not len(keep):
        note = f"{name} cannot express the layout asked for: {reasons[first]}"
        return dataclasses.replace(layouts, notes=(*layouts.notes, note))
    note = f"left out {len(rows) - len(keep)} of {len(rows)} layouts that {name} cannot express, such as {Layout(**rows[first])}"
    kept_layouts = Layout(**{key: getattr(layouts.layouts, key)[keep] for key in NAMES})
    return dataclasses.replace(layouts, layouts=kept_layouts, count=len(keep), notes=(*layouts.notes, note))

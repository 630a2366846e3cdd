"""Weights and KV cache per chip as a layout is cut into more pipeline stages: of one batch, and of a batch for every stage."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from headway.core.quantity import default
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.serving.curves import row_precision
from headway.serving.serve import serve

STAGES = (1, 2, 4, 8, 16, 32)
WHY = "a point of the picture"


def by_stages(model: Any, system: Any, row: Mapping[str, Any], assumptions: Assumptions) -> list[dict[str, Any]]:
    """Rows by `pp`, up to the model's layers, with `kv_busy_bytes_chip` beside the columns of `serve`."""
    degrees = {name: row[name] for name in ("tp", "ep", "dp", "cp")}
    precision, layers = row_precision(model, system, row), sum(int(block.count) for block in model.blocks)
    rows = []
    for count in (count for count in STAGES if count <= layers):
        layout = Layout(**degrees, pp=count, replicas=1)
        needed = layout.tp * layout.cp * layout.dp * count
        machine = dataclasses.replace(system, chips=default(int(needed), "chips", "", WHY), fixed_count=False)
        points = [_point(model, machine, layout, row, size, precision, assumptions) for size in (row["batch"], row["batch"] * count)]
        rows.append({"pp": count, **{key: float(points[0][key]) for key in ("weights_bytes_chip", "kv_bytes_chip", "hbm_bytes_chip")},
                     "kv_busy_bytes_chip": float(points[1]["kv_bytes_chip"])})  # fmt: skip
    return rows


def _point(
    model: Any, machine: Any, layout: Layout, row: Mapping[str, Any], batch: Any, precision: Any, assumptions: Any
) -> dict[str, Any]:
    sizes = {"batch": default(float(batch), "batch", "", WHY), "context": default(float(row["context"]), "context", "token", WHY)}
    return serve(model, machine, layout, **sizes, precision=precision, assumptions=assumptions).row(0)

"""Weights and KV cache on a chip by the number of pipeline stages, for one batch in flight and for stages kept busy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.listing import format_value
from headway.report.pictures.frame import Picture, View, compose
from headway.report.pictures.plot import Plot
from headway.report.pictures.scale import axis

LINES = (("weights_bytes_chip", "weights", "weights", ()), ("kv_bytes_chip", "KV of one batch", "kv", (6, 3)),
         ("kv_busy_bytes_chip", "KV, stages busy", "kv", ()))  # fmt: skip


def picture(rows: Sequence[Mapping[str, Any]], view: View, about: str) -> Picture:
    """Picture of rows by `pp`, each with weights, KV cache of one batch, and KV cache of a batch for every stage."""
    x = axis("Pipeline stages (log)", [row["pp"] for row in rows], "count", log=True, base=2, most=6, room=0.02)
    y = axis("", [row[key] for row in rows for key, *_ in LINES], "byte", log=True, fixed_ends=view.ends("y"))
    plot = Plot(view, "stages", x, y, height=300, ends=[words for _, words, _, _ in LINES])
    data = plot.rows("rows", rows)
    for key, words, meaning, dash in LINES:
        plot.curve(data, "pp", key, meaning, text=words, dash=dash)
        plot.cloud(data, "pp", key, meaning, size=30)
    plot.level("hbm", rows[0]["hbm_bytes_chip"], f"usable HBM {format_value(rows[0]['hbm_bytes_chip'], 'byte')}", "ink")
    first, last = rows[0], rows[-1]
    start, end = (format_value(row["weights_bytes_chip"], "byte") for row in (first, last))
    title = f"{last['pp']} stages cut a chip's weights from {start} to {end}, but not the KV cache of stages kept busy"
    caption = "A stage holds fewer layers but serves as many micro-batches as there are stages, so that its KV cache stays as large."
    return compose(view, [[plot.panel("Bytes on the fullest chip (log)")]], title=title, subtitle=about, caption=caption)

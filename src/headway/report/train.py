"""Words for the bars of training layouts, and pictures of `train`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.errors import BadValue
from headway.core.listing import cell

DEGREES = ("tp", "cp", "pp", "vpp", "ep", "dp")
APART = ("model", "system", "seq", "global_batch", "dtype", "optimizer", "schedule", "recompute", "micro_batch", "zero")


def pictures() -> dict[str, Any]:
    """Pictures of `train` by name."""

    def layouts(rows: Any, view: Any) -> Any:
        from headway.report.pictures import training

        table = list(rows)
        return training.picture(table, [f"{place}. {name}" for place, name in enumerate(labels(table), 1)], view)

    def pipeline(rows: Any, view: Any) -> Any:
        from headway.report.pictures import pipeline as drawing

        row = next((row for row in rows if row["pp"] > 1), None)
        if row is None:
            raise BadValue("--picture", "pipeline", "a layout with stages, such as --pp 8")
        subject = f"{row['model']} on {row['system']}"
        return drawing.training(int(row["pp"]), int(row["micro_batches"]), view, subject=subject)

    return {"layouts": layouts, "pipeline": pipeline}


def labels(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Label per row: its degrees of parallelism, and settings that differ between rows."""
    apart = [key for key in APART if len({row[key] for row in rows}) > 1]
    layout_texts = [" ".join(f"{key}{row[key]}" for key in DEGREES if row[key] != 1) or "one chip a copy" for row in rows]
    return [", ".join([way, *(_field_text(key, row) for key in apart)]) for way, row in zip(layout_texts, rows, strict=True)]


def _field_text(key: str, row: Mapping[str, Any]) -> str:
    return str(row[key]) if isinstance(row[key], str) else f"{key} {cell(key, row)}"

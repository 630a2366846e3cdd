"""What would help one point of `serve`: each of a few changes evaluated again, ranked by speed for the money."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

from headway.core.errors import HeadwayError
from headway.hardware.system import System
from headway.models.model import Model
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.layout import NAMES, Layout
from headway.serving.serve import serve

MOST_CHANGES = 3
LEAST_GAIN = 0.01  # share from which a change is worth a line


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of one input, the row that its command prints, its formats as typed, and its gain: user speed times tokens for money."""

    flag: str
    row: Mapping[str, Any]
    precision: Precision
    gain: float


def changes(
    model: Model, system: System, row: Mapping[str, Any], assumptions: Assumptions, precision: Precision, most: int = MOST_CHANGES,
    batch_flag: str = "batch",
) -> list[Change]:  # fmt: skip
    """The most useful of the changes that fit, each evaluated as its command would; a point that cannot run is helped by what can.

    `precision`: the formats as typed, where "" is as published; the labels of a row are no formats to type: a checkpoint may mix several.
    `batch_flag` is "" where the batch follows from other flags, and is not changed.
    """
    known = []
    for flag, edits in _candidates(row, batch_flag):
        formats = dataclasses.replace(precision, **{key: edits[key] for key in ("weights", "kv") if key in edits})
        after = _evaluated(model, system, {**row, **edits}, formats, assumptions)
        if after is not None and runs(after):
            gain = _value(after) / _value(row) - 1 if runs(row) else math.inf
            if gain >= LEAST_GAIN:
                known.append(Change(flag=flag, row=after, precision=formats, gain=gain))
    return sorted(known, key=lambda change: -change.gain)[:most]


def _candidates(row: Mapping[str, Any], batch_flag: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Changes of formats, batch and tensor parallelism, as flags and as values of the row."""
    for key in ("weights", "kv"):
        if row[key] != "fp8":
            yield f"--{key} fp8", {key: "fp8"}
    for batch in (round(2 * row["batch"]), round(row["batch"] / 2)) if batch_flag and row.get("rate") is None else ():
        if batch:
            yield f"--{batch_flag} {batch}", {"batch": batch}
    yield from _layouts(row, bool(batch_flag))


def _layouts(row: Mapping[str, Any], merges_stages: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Other tensor parallelism, with copies on the chips that this frees; pipeline stages as tensor parallelism."""
    tp, pp, replicas = row["tp"], row["pp"], row.get("replicas") or 1
    for degree in (2 * tp, tp // 2):
        copies = replicas * tp // degree if degree else 0
        if replicas > 1 and copies and copies * degree == replicas * tp:
            yield f"--tp {degree} --replicas {copies}", {"tp": degree, "replicas": copies}
        elif degree:
            yield f"--tp {degree}", {"tp": degree}
    if pp > 1 and merges_stages:
        yield f"--tp {tp * pp} --pp 1", {"tp": tp * pp, "pp": 1}


def _evaluated(
    model: Model, system: System, row: Mapping[str, Any], precision: Precision, assumptions: Assumptions
) -> Mapping[str, Any] | None:
    """The row of `serve` at changed inputs; None where they are not legal."""
    keys = ("rate", "prompt", "output") if row.get("rate") is not None else ("batch", "prompt", "output")
    load = {key: row[key] for key in keys if row.get(key) is not None}
    load |= {} if row.get("prompt") is not None else {"context": row["context"]}
    layout = Layout(**{name: row[name] for name in (*NAMES, "replicas") if row.get(name) is not None})
    try:
        return serve(model, system, layout, **load, precision=precision, assumptions=assumptions).row(0)
    except HeadwayError:
        return None


def _value(row: Mapping[str, Any]) -> float:
    """Speed of one user times tokens for the money, or tokens per second where no price is known."""
    cost = row.get("usd_per_mtok_out")
    return 1 / row[time_key(row)] * (1 / cost if cost else row[tokens_key(row)])


def runs(row: Mapping[str, Any]) -> bool:
    """Whether a point fits in memory and carries its load."""
    return bool(row["fits"]) and (row.get("utilisation") or 0.0) < 1.0


def time_key(row: Mapping[str, Any]) -> str:
    """The time that a point is judged by: TPOT, or the step where there is none."""
    return "tpot_s" if row.get("tpot_s") is not None else "step_s"


def tokens_key(row: Mapping[str, Any]) -> str:
    """The rate that a point without a price is judged by, a column of its table."""
    return "tok_per_s_chip" if row.get("prompt") is not None else "decode_tok_per_s"

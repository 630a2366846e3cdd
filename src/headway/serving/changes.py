"""What would help one point of `serve`: each of a few changes evaluated again, ranked by speed for the money."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

from headway.core.errors import HeadwayError
from headway.models.precision import Precision
from headway.performance.layout import NAMES, Layout
from headway.serving.serve import serve

MOST_CHANGES = 3
LEAST_GAIN = 0.01  # share from which a change is worth a line


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of one input, the row that it leads to, and its gain: speed of one user times tokens for the money, less 1."""

    flag: str
    row: Mapping[str, Any]
    gain: float


def changes(model: Any, system: Any, row: Mapping[str, Any], assumptions: Any, compute: str = "", most: int = MOST_CHANGES) -> list[Change]:
    """The most useful of the changes that fit, each evaluated by `serve`; a point that does not fit is helped by what fits.

    `compute` is the format of the multiplications that the user set; "" follows the weights, as where nothing is typed.
    """
    known = []
    for flag, edits in _candidates(row):
        after = _evaluated(model, system, {**row, **edits, "compute": compute}, assumptions)
        if after is not None and after["fits"]:
            gain = math.inf if not row["fits"] else _value(after) / _value(row) - 1
            if gain >= LEAST_GAIN:
                known.append(Change(flag=flag, row=after, gain=gain))
    return sorted(known, key=lambda change: -change.gain)[:most]


def _candidates(row: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Changes of formats, batch and tensor parallelism, as flags and as values of the row."""
    for key in ("weights", "kv"):
        if row[key] != "fp8":
            yield f"--{key} fp8", {key: "fp8"}
    for batch in (round(2 * row["batch"]), round(row["batch"] / 2)):
        if batch:
            yield f"--batch {batch}", {"batch": batch}
    yield from _layouts(row)


def _layouts(row: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Other tensor parallelism, with copies on the chips that this frees; pipeline stages as tensor parallelism."""
    tp, pp, replicas = row["tp"], row["pp"], row.get("replicas") or 1
    for degree in (2 * tp, tp // 2):
        copies = replicas * tp // degree if degree else 0
        if replicas > 1 and copies and copies * degree == replicas * tp:
            yield f"--tp {degree} --replicas {copies}", {"tp": degree, "replicas": copies}
        elif degree:
            yield f"--tp {degree}", {"tp": degree}
    if pp > 1:
        yield f"--tp {tp * pp} --pp 1", {"tp": tp * pp, "pp": 1}


def _evaluated(model: Any, system: Any, row: Mapping[str, Any], assumptions: Any) -> Mapping[str, Any] | None:
    """The row of `serve` at changed inputs; None where they are not legal."""
    load = {key: row[key] for key in ("batch", "prompt", "output", "rate") if row.get(key) is not None}
    load |= {} if row.get("prompt") is not None else {"context": row["context"]}
    precision = Precision(weights=row["weights"], kv=row["kv"], compute=row["compute"])
    layout = Layout(**{name: row[name] for name in (*NAMES, "replicas") if row.get(name) is not None})
    try:
        return serve(model, system, layout, **load, precision=precision, assumptions=assumptions).row(0)
    except HeadwayError:
        return None


def _value(row: Mapping[str, Any]) -> float:
    """Speed of one user times tokens for the money, or tokens per second where no price is known."""
    speed = 1 / (row["tpot_s"] or row["step_s"])
    cost = row.get("usd_per_mtok_out")
    return speed * (1 / cost if cost else row["decode_tok_per_s"])

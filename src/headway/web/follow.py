"""The question that a slider of the plan's page asks while it moves: the plan's own layout at its batch."""

from __future__ import annotations

from typing import Any

from headway.core.listing import clean
from headway.report.result import Result
from headway.web.question import PageQuestion

DEGREES = ("tp", "ep", "dp", "pp", "cp", "replicas", "redundant")
PASSED = ("prompt", "output", "chip-price", "price-metric", "engine", "set", "hit-rate", "attention", "kv-share")


def follow(question: PageQuestion, result: Result) -> dict[str, Any] | None:
    """`serve` of the best layout; None where the answer is no plan, or its layout has two pools."""
    if question.verb != "plan" or not len(result):
        return None
    row = clean(next(iter(result._answer.rows)))
    if row.get("kind") != "best" or row.get("prefill_replicas") is not None or not row.get("batch"):
        return None
    flags: dict[str, Any] = {"on": row["system"]}
    flags |= {name: str(int(row[name])) for name in DEGREES if row.get(name) and row[name] != (0 if name == "redundant" else 1)}
    flags |= {name: row[name] for name in ("weights", "kv") if row.get(name)}
    flags |= {name: list(value) if isinstance(value, tuple) else value for name, value in question.flags if name in PASSED}
    flags["batch"] = str(int(row["batch"]))  # the picture goes over all batches and marks this one
    return {"verb": "serve", "words": [row["model"]], "flags": flags}

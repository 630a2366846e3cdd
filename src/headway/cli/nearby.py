"""The sentence about the measured rows nearest to a plan."""

from __future__ import annotations

from typing import Any

MOST_TOLD = 3
SAID = {"served TPOT": "TPOT", "throughput": "throughput", "decode": "decode step", "prefill": "prefill"}
HOW = {"disagg": ", disaggregated", "serving_unloaded": ", unloaded", "static": ", static batch", "decode_e2e": ", end to end"}


def sentence(model: Any, chip: Any, engine: str) -> str:
    """How many rows, of what, and how far off they are predicted."""
    from headway.evidence.engines import family
    from headway.evidence.nearest import nearest

    found = nearest(chip, model, family(engine))
    if not found:
        return f"nearest measured: none within range of {model.name} on {chip.name}"
    told = "; ".join(map(_told, found[:MOST_TOLD]))
    rest = sum(one.rows for one in found[MOST_TOLD:])
    more = f"; {rest} rows more" if rest else ""
    seen = "" if all(one.cross_validated for one in found) else " (by a fit that has seen them)"
    return f"nearest measured: {told}{more}{seen}"


def _told(one: Any) -> str:
    rows = f"{one.rows} row{'s' if one.rows > 1 else ''} of {one.engine if one.engine != 'other' else 'another engine'}"
    how = HOW.get(one.kind, "")
    return f"{rows} on {one.chip}, {one.model_class} class{how}: median {SAID[one.measure]} error {100 * one.median_error:.0f} %"

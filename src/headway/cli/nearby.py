"""The sentence about the measured rows nearest to a plan."""

from __future__ import annotations

from typing import Any

MOST_TOLD = 3
NAMES = {"served TPOT": "TPOT", "throughput": "throughput", "decode": "decode step", "prefill": "prefill"}
HOW = {"disagg": ", disaggregated", "serving_unloaded": ", unloaded", "static": ", static batch", "decode_e2e": ", end to end"}


def sentence(model: Any, chip: Any, engine: str) -> str:
    """How many rows, of what, and how far off they are predicted."""
    from headway.evidence.engines import family
    from headway.evidence.nearest import nearest

    entries = nearest(chip, model, family(engine))
    if not entries:
        return f"nearest measured: none within range of {model.name} on {chip.name}"
    text = "; ".join(map(_entry_text, entries[:MOST_TOLD]))
    rest = sum(entry.rows for entry in entries[MOST_TOLD:])
    more = f"; {rest} rows more" if rest else ""
    fit_note = "" if all(entry.cross_validated for entry in entries) else " (by a fit that has seen them)"
    return f"nearest measured: {text}{more}{fit_note}"


def _entry_text(entry: Any) -> str:
    rows = f"{entry.rows} row{'s' if entry.rows > 1 else ''} of {entry.engine if entry.engine != 'other' else 'another engine'}"
    how = HOW.get(entry.kind, "")
    return f"{rows} on {entry.chip}, {entry.model_class} class{how}: median {NAMES[entry.measure]} error {100 * entry.median_error:.0f} %"

"""Sentences about serving: speed and cost of a point, what binds it, what would help, and the nearest measured rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.core import columns
from headway.core.listing import format_value

MOST_TOLD = 3
NAMES = {"served TPOT": "TPOT", "throughput": "throughput", "decode": "decode step", "prefill": "prefill"}
HOW = {"disagg": ", disaggregated", "serving_unloaded": ", unloaded", "static": ", static batch", "decode_e2e": ", end to end"}


def sentence(model: Any, chip: Any, engine: str) -> str:
    """Sentence on the nearest measured rows: their number, their subject and the median error of their predictions."""
    from headway.evidence.fit.nearest import nearest
    from headway.evidence.rows.names import family

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


DEFINED = "TTFT and TPOT are means at this load, as vLLM's `bench serve` defines them: prefill of other requests counts."
TTFT = ("ttft_s", "ttft_floor_s", "ttft_lo_s~ttft_hi_s")
STEP_VIEW = ("step_s", "step_floor_s", "step_lo_s~step_hi_s", *TTFT, "tok_per_s_user", "decode_tok_per_s")
TPOT = ("tpot_s", "tpot_floor_s", "tpot_lo_s~tpot_hi_s")
REQUEST_VIEW = (*TTFT, *TPOT, "tok_per_s_user", "tok_per_s_chip", "usd_per_mtok_in", "usd_per_mtok_out")
PARTS = ("compute_s", "weights_s", "kv_s", "network_s", "overhead_s")
WHAT = ("model", "system", "replicas", "tp", "ep", "dp", "pp", "cp", "weights", "kv", "compute", "batch", "context", "prompt", "output")
TEXTS = ("model", "system", "weights", "kv", "compute", "overlap", "price_metric")
HELPS = {
    "compute": "more FLOP/s or a narrower compute format; a larger batch no longer lowers the cost per token",
    "weights": "a larger batch (the weights are read once for all of it), a narrower weight format, or more HBM bandwidth",
    "kv": "a shorter context, a narrower KV format, or more HBM bandwidth; a larger batch no longer lowers the cost per token",
    "network": "fewer chips per collective (less tp or ep) or faster links",
    "overhead": "fewer and larger kernels, or an engine that does less between steps; a larger batch costs almost nothing here",
    "capacity": "more chips per replica, narrower formats, a shorter context or a smaller batch",
}


FASTER = {
    "compute": "more FLOP/s per replica (more tp) or a narrower compute format",
    "weights": "more HBM bandwidth per replica (more tp or ep) or a narrower weight format",
    "kv": "more HBM bandwidth per replica, a narrower KV format or a smaller batch",
    "network": "faster links or fewer chips per collective",
    "overhead": "fewer and larger kernels, or an engine that does less between steps",
    "capacity": HELPS["capacity"],
}


def is_request(row: Mapping[str, Any]) -> bool:
    """Whether a row is about whole requests (prompt and output) and not about one step at a context."""
    return row.get("prompt") is not None


def value(row: Mapping[str, Any], key: str) -> str:
    """Value of a row with its unit."""
    return format_value(row.get(key), columns.unit(key))


def timed(row: Mapping[str, Any], stem: str) -> str:
    """Time of a row with floor and interval."""
    floor, low, high = (value(row, f"{stem}_{end}_s") for end in ("floor", "lo", "hi"))
    return f"{value(row, f'{stem}_s')} (floor {floor}, 90 % {low} .. {high})"


def layout(row: Mapping[str, Any]) -> str:
    """Layout of a row, without degrees of 1."""
    degrees = [f"{key}={row[key]}" for key in ("tp", "ep", "dp", "pp", "cp") if row.get(key, 1) != 1] or ["tp=1"]
    return " ".join(degrees + ([f"replicas={row['replicas']}"] if row.get("replicas", 1) != 1 else []))


def formats(row: Mapping[str, Any]) -> str:
    """Number formats of a row."""
    return f"{row['weights']} weights, {row['kv']} KV, {row['compute']} compute"


def work(row: Mapping[str, Any]) -> str:
    """Load of a row."""
    keys = ("batch", "context") if row.get("prompt") is None else ("batch", "prompt", "output")
    return ", ".join(f"{key} {value(row, key)}" for key in keys)


def bound(row: Mapping[str, Any]) -> str:
    """Clause on what binds a point."""
    return f"{row['bound']} {'bind' if row['bound'] == 'weights' else 'binds'}"


def speed(row: Mapping[str, Any]) -> str:
    """Clause on the latency and throughput of a point."""
    if not row["fits"]:
        return f"does not fit: {row['why']}"
    if not is_request(row):
        step = f"a decode step takes {timed(row, 'step')}, {value(row, 'tok_per_s_user')} per user"
        return f"{step}, {value(row, 'decode_tok_per_s')} in all; {bound(row)}"
    tpot = "no TPOT (an answer of one token)" if row["tpot_s"] is None else f"TPOT {timed(row, 'tpot')}"
    times = f"TTFT {timed(row, 'ttft')}, {tpot}"
    return f"{times}, {value(row, 'tok_per_s_chip')} per chip, {money(row)}; {bound(row)}"


def money(row: Mapping[str, Any]) -> str:
    """Cost per million tokens."""
    if row.get("usd_per_mtok_out") is None:
        return "no price known"
    return f"{value(row, 'usd_per_mtok_in')} per Mtok in and {value(row, 'usd_per_mtok_out')} out"


def point(row: Mapping[str, Any]) -> str:
    """Sentence about a point."""
    return f"{row['model']} on {row['system']} with {layout(row)} ({formats(row)}), {work(row)}: {speed(row)}."


def binds(row: Mapping[str, Any]) -> list[str]:
    """Lines on what binds a point and what would help."""
    step_parts = ", ".join(f"{key.removesuffix('_s')} {value(row, key)}" for key in PARTS)
    where = "the step, if it fitted," if row["bound"] == "capacity" else "the step"
    memory = f"weights {value(row, 'weights_bytes_chip')}, KV {value(row, 'kv_bytes_chip')} of {value(row, 'hbm_bytes_chip')} usable HBM"
    return [
        f"what binds: {row['bound']} ({where} is made of {step_parts}; on the fullest chip {memory})",
        f"what would help: {HELPS[row['bound']]}",
    ]


def grid(table: Any, varying: list[str]) -> tuple[str, list[str]]:
    """Sentence about many points, and lines on what binds the point it names."""
    first = table.row(0)
    fixed = " ".join(f"{first[key]} on"[: None if key == "model" else -3] for key in ("model", "system") if key not in varying)
    start = f"{fixed.removesuffix(' on')}: " if fixed else ""
    fastest = table.best("step_s" if not is_request(first) or all(value is None for value in table.values("tpot_s")) else "tpot_s")
    if not len(fastest):
        return f"{start}none of {len(table)} points fits; the first, {brief(first, varying)}.", binds(first)
    cheapest = table.best("usd_per_mtok_out")
    best, name = (cheapest, "cheapest") if len(cheapest) else (table.best("decode_tok_per_s", True), "most tokens per second")
    best_row = best.row(0)
    count = f"all {len(table)}" if table["fits"].all() else f"{int(table['fits'].sum())} of {len(table)}"
    sentence = f"{start}{count} points fit; fastest is {brief(fastest.row(0), varying)}; {name} is {brief(best_row, varying)}."
    return sentence, [f"{name}: {brief(best_row, varying).partition(':')[0]}", *binds(best_row)]


def brief(row: Mapping[str, Any], varying: list[str]) -> str:
    """Clause on a point of a grid: its varied inputs, latency and throughput."""
    names = [str(row[key]) for key in ("model", "system") if key in varying]
    settings = [f"{key} {value(row, key)}" for key in varying if key not in ("model", "system")]
    return f"{', '.join(names + settings)}: {speed(row)}"

"""Words of a measured run: the cause in one sentence, the parts of its time, whether the server runs as it should, what would help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headway.core.listing import Listing, estimate_text, format_value, is_loose
from headway.report import output
from headway.report.words import sentence, with_ends

if TYPE_CHECKING:
    from headway.evidence.serving.causes import Causes, Fault
    from headway.evidence.serving.predict import Prediction
    from headway.evidence.serving.remedies import Remedy
    from headway.performance.estimate import Estimate

VIEW = ("part", "measured", "share", "expected", "floor")
WAITS = ("queue", "batch limit")  # causes that TTFT shows
SLOW = {
    "network": "links {size} times slower", "network latency": "collectives {size} times later",
    "engine": "engine overhead {size} times as long", "memory": "HBM {size} times slower",
    "compute": "kernels {size} times slower",
    "batch limit": "at most {seats:.0f} requests are in service at once",
}  # fmt: skip


MOST_SIZE = 3  # times slower, beyond which a fault is called implausible: evidence/serving/causes.py
BEYOND = 1.02  # times the measurement from which a floor is above it by more than clocks err


def _expected(estimate: Estimate) -> str:
    """An expected time, or its ends where they are far apart."""
    return estimate_text(estimate.expected, estimate.low, estimate.high, "s")


def seconds(value: float | None) -> str:
    """A time with its unit."""
    return format_value(value, "s")


def summary(task: Any, prediction: Prediction, cause: Causes, changes: Sequence[Remedy], remarks: Sequence[str]) -> output.Summary:
    """Summary of a run: sentence, parts of the time that shows the cause, what binds, ranked changes."""
    wait = (cause.name in WAITS and cause.ttft) or not cause.tpot
    parts, name = (cause.ttft, "TTFT") if wait else (cause.tpot, "TPOT")
    total, estimate = (task.row.ttft_s, prediction.ttft) if wait else (task.row.tpot_s, prediction.tpot)
    table = [
        {"part": part.name, "measured": seconds(part.measured), "share": percent(part.measured / total),
         "expected": None if part.expected is None else seconds(part.expected),
         "floor": None if part.floor is None else seconds(part.floor)}
        for part in parts
    ]  # fmt: skip
    ends = {} if estimate is None else {"expected": _expected(estimate), "floor": seconds(estimate.floor)}
    table.append({"part": name, "measured": seconds(total), "share": "100 %"} | ends)
    scaled = "--step-factor in a command scales every step, so that without the change it answers what was measured"
    of_factors = [scaled] if any("--step-factor" in change.command for change in changes) else []
    return output.Summary(
        headline(task, prediction, cause), VIEW, people=Listing(table), binds=binds(task, prediction, cause, name),
        helps=[_help(change) for change in changes], remarks=[*notes(cause, name), *of_factors, *remarks],
        first=("part", "measured", "share"),
    )  # fmt: skip


def percent(share: float) -> str:
    """A share as people write it; a small one with a digit more.

    >>> percent(0.504), percent(0.0043), percent(0.00002), percent(0.0), percent(12.0)
    ('50 %', '0.4 %', '<0.1 %', '0 %', '1,200 %')
    """
    if 0 < share < 0.01:
        return f"{100 * share:.1f} %" if share >= 0.0005 else "<0.1 %"
    return f"{100 * share:,.0f} %"


def error(ratio: float) -> str:
    """How far a prediction is off, from itself over the measurement.

    >>> error(1.04), error(0.5), error(1.001)
    ('4 % too high', '50 % too low', 'as measured')
    """
    off = percent(abs(ratio - 1))
    return "as measured" if abs(ratio - 1) < 0.005 else f"{off} too {'high' if ratio > 1 else 'low'}"


def times(value: float, digits: int = 2) -> str:
    """A factor with so many digits, as people write it.

    >>> times(2.14), times(886.4), times(12_345.0), times(1.036, 3)
    ('2.1', '890', '12,000', '1.04')
    """
    return f"{float(f'{value:.{digits}g}'):,.12g}"


def headline(task: Any, prediction: Any, cause: Any) -> str:
    """The measurement, the prediction and how far it is off, the floor at this load, and the cause, in one sentence."""
    row = task.row
    if cause.name == "queue":
        carried = f"it carries {cause.capacity:.3g}"
        if row.request_rate:
            start = f"{row.request_rate:.3g} requests/s arrive, {carried}"
            start = f"The server is saturated: {start}" if row.request_rate > cause.capacity else f"Requests wait in bursts: {start}"
        else:
            start = f"The server is saturated: {row.concurrency:,.0f} users wait for their turn, {carried} requests/s"
        return sentence(start, f"; {_compared('TTFT', row.ttft_s, prediction.ttft)}" if row.ttft_s else "")
    if cause.name == "batch limit":
        start = f"A batch limit holds the server back: {fault_words(cause.fault)}"
        return sentence(start, f"; {_compared('TTFT', row.ttft_s, prediction.ttft)}")
    start = _compared("TTFT", row.ttft_s, prediction.ttft)
    if row.tpot_s and prediction.tpot is not None:
        floor = f"{times(row.tpot_s / prediction.tpot.floor)} times its floor"
        start = f"{_compared('TPOT', row.tpot_s, prediction.tpot)}, {floor}"
    if cause.fault is not None:
        return sentence(start, f"; the cause is the {cause.name}: {fault_words(cause.fault)} would explain it")
    if cause.name == "not explained":
        if prediction.tpot is not None and row.tpot_s and row.tpot_s * BEYOND < prediction.tpot.floor:
            floor = seconds(prediction.tpot.floor)
            return sentence(f"TPOT is {seconds(row.tpot_s)}, less than the {floor} that these chips allow", "; it was not set up as stated")
        if _faster(row, prediction):
            return sentence(start, "; the server is faster than expected, so it may not be set up as stated")
        if cause.implausible:
            return sentence(start, "; no cause is plausible", f": it would take {fault_words(cause.implausible[0])}")
        return sentence(start, "; it is outside its 90 % interval, and no single fault explains it")
    if cause.name == "small batch":
        batch = _first(cause.nominal.times.decoding)
        return sentence(start, f"; the batch is small: {batch:.3g} requests share each step", "; twice as many would cost little")
    part = next((part for part in cause.tpot if part.name == cause.name), None)
    if part is None:  # TPOT was not measured
        return sentence(start)
    share = part.measured / row.tpot_s
    take = "take" if cause.name == "weights" else "takes"
    return sentence(start, f"; {cause.name} {take} {percent(share)} of it")


def _compared(name: str, measured: float | None, estimate: Estimate | None) -> str:
    """A measured time beside its prediction, and the error of that."""
    if estimate is None or not measured:
        return f"{name} is {seconds(measured)}"
    off = "" if is_loose(estimate.low, estimate.high) else f" ({error(estimate.expected / measured)})"
    return f"{name} is {seconds(measured)}, predicted {_expected(estimate)}{off}"


def fault_words(fault: Fault) -> str:
    """A fault with its size."""
    server = fault.served.server
    seats = max(round(_first(server.scheduling.max_sequences * server.step.dp * server.replicas)), 1)
    return SLOW[fault.name].format(size=times(fault.size), seats=seats)


def _faster(row: Any, prediction: Prediction) -> bool:
    """Whether TPOT, or else TTFT, is below its interval."""
    estimate, value = (prediction.tpot, row.tpot_s) if row.tpot_s else (prediction.ttft, row.ttft_s)
    return estimate is not None and value < estimate.low


def _first(value: Any) -> float:
    return float(np.ravel(value)[0])


def binds(task: Any, prediction: Prediction, cause: Any, name: str) -> str:
    """The cause, and whether the server runs as it should."""
    estimate = prediction.ttft if name == "TTFT" else prediction.tpot
    if estimate is None:
        return cause.name
    expected = f"expected {name} {with_ends(estimate.expected, estimate.low, estimate.high, 's')}"
    if cause.saturated:
        longer = "; a longer run waits longer" if task.row.request_rate and task.row.request_rate > cause.capacity else ""
        return f"{cause.name}; {expected}{longer}"
    if cause.name == "not explained" and _faster(task.row, prediction):
        return f"{cause.name}; {expected}: the server is faster than expected"
    verdict = "the server runs as it should" if cause.usual else "the server does not run as it should"
    return f"{cause.name}; {expected}: {verdict}"


def notes(cause: Causes, name: str) -> list[str]:
    """Notes on faults that explain the run as well, and on the columns."""
    lines = []
    for fault in cause.implausible[:3]:
        lines.append(f"{fault_words(fault)} would explain it, which is implausible: no more than {MOST_SIZE:g} times is taken as a cause")
    if cause.rivals:
        rivals = ", ".join(fault.name for fault in cause.rivals[:3])
        lines.append(f"this run alone does not rule out: {rivals}; runs at other loads tell them apart (--append-result)")
    if name == "TPOT":
        lines.append("floor of a part: at datasheet rates and this load; parts overlap there, so TPOT's floor is less than their sum")
    return lines


def _help(change: Remedy) -> output.Help:
    after, is_rate = change.after, change.quantity == "rate"
    unit, name = ("token/s", "tokens/s") if is_rate else ("s", change.quantity.upper())
    start = f"{format_value(change.before, unit)}{'' if change.explained else ' as it should run'}"
    effect = f"{name} {start} -> {with_ends(after.expected, after.low, after.high, unit)}"
    more = f", {change.rate:.2f}x tokens/s" if change.rate is not None and not is_rate else ""
    return output.Help(change=change.change, effect=f"{effect}{more}; try: {change.command}", gain=change.rank_gain)


def share_columns(cause: Causes, measure: str) -> dict[str, Any]:
    """Cause of a measured row and the parts of its time, in ms; nothing for a rate."""
    parts = {"TTFT": cause.ttft, "served TPOT": cause.tpot}.get(measure, ())
    return {"cause": cause.name, "parts": {part.name: 1000 * part.measured for part in parts} or None}

"""Words of a measured run: the cause in one sentence, the parts of its time, whether the server runs as it should, what would help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.core.listing import Listing, format_value
from headway.report import output
from headway.report.words import interval, sentence

VIEW = ("part", "measured", "share", "expected", "floor")
WAITS = ("queue", "batch limit")  # causes that TTFT shows
SLOW = {
    "network": "links {size:.2g} times slower", "network latency": "collectives {size:.2g} times later",
    "engine": "engine overhead {size:.2g} times as long", "memory": "HBM {size:.2g} times slower",
    "compute": "kernels {size:.2g} times slower",
    "batch limit": "at most {seats:.0f} of {users:.0f} requests in service",
}  # fmt: skip


def seconds(value: float | None) -> str:
    """A time with its unit."""
    return format_value(value, "s")


def summary(task: Any, prediction: Any, cause: Any, changes: Sequence[Any], command: Any, remarks: Sequence[str]) -> output.Summary:
    """Summary of a run: sentence, parts of the time that shows the cause, what binds, ranked changes; `command` gives one's line."""
    wait = (cause.name in WAITS and cause.ttft) or not cause.tpot
    parts, name = (cause.ttft, "TTFT") if wait else (cause.tpot, "TPOT")
    total = task.row.ttft_s if wait else task.row.tpot_s
    people = Listing([*(_part(part, total) for part in parts), _total(name, total, prediction)])
    return output.Summary(
        headline(task, prediction, cause), VIEW, people=people, binds=binds(task, prediction, cause, name),
        helps=[_help(change, command) for change in changes], remarks=[*notes(cause, name), *remarks], first=("part", "measured", "share"),
    )  # fmt: skip


def _part(part: Any, total: float) -> dict[str, Any]:
    expected = seconds(part.expected) if part.expected is not None else None
    floor = seconds(part.floor) if part.floor is not None else None
    return {
        "part": part.name,
        "measured": seconds(part.measured),
        "share": f"{part.measured / total:.0%}",
        "expected": expected,
        "floor": floor,
    }


def _total(name: str, total: float, prediction: Any) -> dict[str, Any]:
    estimate = prediction.ttft if name == "TTFT" else prediction.tpot
    ends = {} if estimate is None else {"expected": seconds(estimate.expected), "floor": seconds(estimate.floor)}
    return {"part": name, "measured": seconds(total), "share": "100%"} | ends


def headline(task: Any, prediction: Any, cause: Any) -> str:
    """The measurement, its floor at this load, and the cause, in one sentence."""
    row = task.row
    if cause.name == "queue":
        rate = f"{row.request_rate:.3g} requests/s arrive, it carries {cause.capacity:.3g}" if row.request_rate else ""
        waiting = f"{row.concurrency:.0f} users wait for their turn, it carries {cause.capacity:.3g} requests/s"
        return sentence(f"The server is saturated: {rate or waiting}", f"; TTFT is {seconds(row.ttft_s)}" if row.ttft_s else "")
    if cause.name == "batch limit":
        start = f"A batch limit holds the server back: {fault_words(cause)}"
        return sentence(start, f"; TTFT is {seconds(row.ttft_s)}", f", expected {seconds(prediction.ttft.expected)}")
    start = _against_floor(row, prediction)
    if cause.fault is not None:
        return sentence(start, f"; the cause is the {cause.name}: {fault_words(cause)} would explain it")
    if cause.name == "not explained":
        if _faster(row, prediction):
            return sentence(start, "; the server is faster than expected, so it may not be set up as stated")
        return sentence(start, "; it is outside its 90 % interval, and no single fault explains it")
    if cause.name == "small batch":
        return sentence(start, f"; the batch is small: {_batch(cause):.3g} requests share each step", "; twice as many would cost little")
    part = next((part for part in cause.tpot if part.name == cause.name), None)
    if part is None:  # TPOT was not measured
        return sentence(start)
    share = part.measured / row.tpot_s
    take = "take" if cause.name == "weights" else "takes"
    return sentence(start, f"; {cause.name} {take} {share:.0%} of it")


def _against_floor(row: Any, prediction: Any) -> str:
    if not row.tpot_s or prediction.tpot is None:
        return f"TTFT is {seconds(row.ttft_s)}"
    return f"TPOT is {seconds(row.tpot_s)}, {row.tpot_s / prediction.tpot.floor:.2g} times the floor at this load"


def fault_words(cause: Any) -> str:
    """The fault with its size."""
    served = cause.fault.served
    return SLOW[cause.fault.name].format(size=cause.fault.size, seats=_first(served.times.in_service), users=_first(served.users))


def _faster(row: Any, prediction: Any) -> bool:
    """Whether TPOT, or else TTFT, is below its interval."""
    estimate, value = (prediction.tpot, row.tpot_s) if row.tpot_s else (prediction.ttft, row.ttft_s)
    return estimate is not None and value < estimate.lo


def _batch(cause: Any) -> float:
    return _first(cause.nominal.times.decoding)


def _first(value: Any) -> float:
    import numpy as np

    return float(np.ravel(value)[0])


def binds(task: Any, prediction: Any, cause: Any, name: str) -> str:
    """The cause, and whether the server runs as it should."""
    estimate = prediction.ttft if name == "TTFT" else prediction.tpot
    if estimate is None:
        return cause.name
    expected = f"expected {name} {seconds(estimate.expected)} (90 %: {interval(estimate.lo, estimate.hi, 's')})"
    if cause.saturated:
        return f"{cause.name}; {expected} at the requests in service; a longer run waits longer"
    if cause.name == "not explained" and _faster(task.row, prediction):
        return f"{cause.name}; {expected}: the server is faster than expected"
    verdict = "the server runs as it should" if cause.usual else "the server does not run as it should"
    return f"{cause.name}; {expected}: {verdict}"


def notes(cause: Any, name: str) -> list[str]:
    """Notes on faults that explain the run as well, and on the columns."""
    lines = []
    if cause.rivals:
        rivals = ", ".join(fault.name for fault in cause.rivals[:3])
        lines.append(f"this run alone does not rule out: {rivals}; runs at other loads tell them apart (--append-result)")
    if name == "TPOT":
        lines.append("floor of a part: at datasheet rates and this load; parts overlap there, so TPOT's floor is less than their sum")
    return lines


def _help(change: Any, command: Any) -> output.Help:
    after, name = change.after, change.quantity.upper()
    effect = f"{name} {seconds(change.before)} -> {seconds(after.expected)} (90 %: {interval(after.lo, after.hi, 's')})"
    more = f", {change.rate:.2f}x tokens/s"
    return output.Help(change=change.change, effect=f"{effect}{more}; try: {command(change.flags)}", gain=change.gain)


def share_columns(cause: Any, measure: str) -> dict[str, Any]:
    """Cause of a measured row and the parts of its time, in ms; nothing for a rate."""
    parts = {"TTFT": cause.ttft, "served TPOT": cause.tpot}.get(measure, ())
    return {"cause": cause.name, "parts": {part.name: 1000 * part.measured for part in parts} or None}

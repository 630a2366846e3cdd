"""Words and pictures of `headway measure`: rates, ridge and what binds when; errors of steps that were predicted first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from headway.core.listing import Rows, format_value
from headway.laws.roofline.balance import hardware_ratio
from headway.reality.measure.chip import MeasuredFiles
from headway.reality.measure.decode import AIM, DECODE, PREFILL, DecodeResult, median_error
from headway.reality.measure.rates import MachineRates
from headway.reality.measure.record import MachineRecord
from headway.reality.measure.timing import QUIET
from headway.report.output import Help, Summary
from headway.report.pictures import frame, plot, scale
from headway.report.words import number_of, sentence

if TYPE_CHECKING:
    from headway.report.pictures.frame import Picture, View

VIEW = ("what", "rows", "columns", "context", "time_s", "flop_per_s", "bytes_per_s", "spread")
DECODE_VIEW = ("kind", "decoder", "batch", "context", "predicted_s", "measured_s", "error", "spread")


def bytes_text(size: float) -> str:
    """A size in words."""
    return format_value(size, "byte")


def rows(record: MachineRecord) -> list[dict[str, Any]]:
    """A row for each time."""
    plain: list[dict[str, Any]] = []

    def add(what: str, time: Any, **values: Any) -> None:
        empty = dict.fromkeys(("rows", "columns", "context", "size_bytes", "flop_per_s", "bytes_per_s", "native"))
        plain.append({"what": what, "time_s": time.seconds, "spread": time.spread} | empty | values)

    for matmul in record.matmuls:
        size, rates = matmul.inner * matmul.columns * matmul.element, {"flop_per_s": matmul.flop_per_s, "bytes_per_s": matmul.weights_per_s}
        add(f"matmul {matmul.format}", matmul, rows=matmul.rows, columns=matmul.columns, size_bytes=size, native=matmul.native, **rates)
    for stream in record.streams:
        add(f"stream {stream.kind}", stream, size_bytes=stream.bytes, bytes_per_s=stream.bytes_per_s)
    for call in record.calls:
        add(f"call {call.kind}", call)
    for vector in record.vectors:
        add(vector.kind, vector, rows=vector.rows)
    for time in record.attentions:
        work = {"flop_per_s": time.flop / time.seconds, "bytes_per_s": time.bytes / time.seconds, "size_bytes": int(time.bytes)}
        add("attention" if time.queries == 1 else "attention prompt", time, rows=time.sequences, context=time.context, **work)
    for link in record.links:
        add(f"link {link.origin} to {link.target}", link, size_bytes=link.bytes, bytes_per_s=link.bytes_per_s)
    return plain


def noise(record: MachineRecord) -> str:
    """Why the machine was not quiet; "" where it was."""
    reasons = [f"spread {record.spread:.0%}"] if record.spread > QUIET else []
    reasons += [f"it had {record.share:.0%} of a core"] if record.share < 1 - QUIET else []
    return "" if record.is_quiet else f"not quiet: {', '.join(reasons)}"


def machine(record: MachineRecord) -> str:
    """The device with its threads."""
    return f"{record.device} on {number_of(record.threads, 'thread')}" if not record.cards else record.device


def describe(record: MachineRecord, rates: MachineRates, files: MeasuredFiles | None) -> Summary:
    """Rates, ridge and what binds when."""
    peak = record.peak()
    peak_text, read_text = format_value(rates.peak, "flop/s"), format_value(rates.bandwidth, "byte/s")
    balanced = float(hardware_ratio(peak.element, rates.peak, rates.bandwidth))
    headline = sentence(
        f"{machine(record)}: {peak_text} in {peak.format}, {read_text} read",
        f": {record.ridge:,.1f} FLOP per byte", f", a batch of {balanced:,.1f} balances",
        last=f"; {noise(record)}" if noise(record) else "",
    )  # fmt: skip
    copy = record.copy()
    remarks = [f"threads: {record.threads} of {number_of(record.cores, 'core')} that this process may use; {record.library}"]
    remarks += [f"a copy moves {format_value(copy.bytes_per_s, 'byte/s')}, reads and writes together"] if copy else []
    native = {matmul.format for matmul in record.matmuls if matmul.native}
    looped = [form for form in (*record.formats(), "bfloat16") if form not in native]
    if looped:
        names = ", ".join(dict.fromkeys(looped))
        remarks.append(f"{names}: no matmul of the library's own that gains anything; they count as converted to {peak.format} first")
    if record.share < 1:
        remarks.append("times are the thread's own processor time, which leaves out what others' work takes of the machine")
    use = f"headway serve MODEL --on {files.chip.stem.replace('_', '-')} goes by {files.chip}" if files else ""
    helps = [] if files else [Help(change="--save NAME", effect="keeps it as a chip: every verb then takes --on NAME")]
    if not record.is_quiet and record.threads > 1:
        helps.append(Help(change="--threads 1", effect="measures one thread by its own time, whatever else runs"))
    return Summary(headline, VIEW, [use] if use else [], binds=_binds(rates, peak.element), helps=helps, remarks=remarks)


def _binds(rates: MachineRates, element: int) -> str:
    """What a matmul waits for, by its rows."""
    single = rates.bandwidth * rates.memory
    packed = single / (1 + rates.packing)
    ridge = element * rates.peak / (2 * packed)
    first = f"one row: reads of weights, {format_value(single, 'byte/s')}"
    if rates.packing < 0.1:
        return f"{first} up to {ridge:,.0f} rows; arithmetic beyond"
    copies = f"from two rows the library copies weights first, which leaves {format_value(packed, 'byte/s')}"
    return f"{first}; {copies}; beyond {ridge:,.0f} rows arithmetic"


def describe_decode(record: MachineRecord, results: Sequence[DecodeResult], path: str, digest: str) -> Summary:
    """Errors of decode and of prefill, apart."""
    decode, prefill = (median_error(results, kind) for kind in (DECODE, PREFILL))
    counts = {kind: sum(result.point.kind == kind for result in results) for kind in (DECODE, PREFILL)}
    spread = median(result.spread for result in results)
    verdict = "" if max(decode, prefill) <= AIM else f"; beyond the {AIM:.0%} it aims at"
    headline = sentence(
        f"Decode was predicted within {decode:.0%}, prefill within {prefill:.0%}",
        f" (medians of {counts[DECODE]} and {counts[PREFILL]} points)",
        ", from the measured machine alone", last=verdict,
    )  # fmt: skip
    signed = median(result.error for result in results)
    worst = max(results, key=lambda result: abs(result.error))
    point = f"{worst.point.shape}, batch {worst.point.batch}, {worst.point.tokens} tokens"
    after = [
        f"Written before the first step was measured: {path}, sha256 {digest}.",
        f"Median error with its sign {signed:+.0%}; the largest, {worst.error:+.0%}, at {point}.",
    ]
    quiet = noise(record)
    remarks = [f"machine: {machine(record)}, {record.library}, measured {record.date}" + (f"; {quiet}" if quiet else "")]
    remarks.append(f"median spread of the points' own rounds: {spread:.0%}")
    return Summary(headline, DECODE_VIEW, after, remarks=remarks)


def roofline(record: MachineRecord, rates: MachineRates, rows_left: Rows, view: View) -> Picture:
    """Matmuls under the roof of what was reached."""
    form = record.main
    times = [time for time in record.matmuls if time.format == form and time.inner == time.columns]
    intensity = [2.0 * time.rows / time.element for time in times]
    measured = [{"x": at, "y": time.flop_per_s} for at, time in zip(intensity, times, strict=True)]
    ridge, read = rates.peak / rates.bandwidth, format_value(rates.bandwidth, "byte/s")
    title = "FLOP per byte of weights: twice the rows over an element's bytes (log)"
    across = scale.AxisScale(title, [*intensity, ridge * 4], "count", log=True)
    axis = across.axis(view.ends("x"))
    roof = [{"x": at, "y": min(rates.peak, rates.bandwidth * at)} for at in (axis.low, ridge, axis.high)]
    parts: list[plot.Part] = [
        plot.Series(rows=roof, meaning="ink", width=2.5),
        plot.Series(rows=measured, meaning="weights", width=1.5, dots=60),
        plot.RuleLines(x=[ridge], text=f"{ridge:,.1f} FLOP per byte"),
        plot.Note(x=axis.high / 2.2, y=rates.peak, text=f"{format_value(rates.peak, 'flop/s')} {form}", meaning="ink"),
        plot.Note(x=axis.low * 1.6, y=rates.bandwidth * axis.low * 1.6, text=f"{read} read", meaning="ink"),
    ]
    parts += [
        plot.Note(x=at, y=time.flop_per_s, text=number_of(time.rows, "row"), meaning="weights")
        for at, time in zip(intensity, times, strict=True) if time.rows in (1, 2, 16, 128)
    ]  # fmt: skip
    panel = plot.Plot(
        name="roofline", x=across, parts=parts, heading="Measured FLOP/s of one device (log)", height=340,
        y=scale.AxisScale("", [*(time.flop_per_s for time in times), rates.peak * 1.2, rates.bandwidth * axis.low], "flop/s", log=True),
    )  # fmt: skip
    title = f"{machine(record)}: {format_value(rates.peak, 'flop/s')} over {read}"
    caption = "Line: peak and reads that were reached. Points: matmuls by rows, whose weights no cache holds; the library adds the gap."
    subtitle = f"{record.library}, {record.date}" + (f"; {noise(record)}" if noise(record) else "")
    return frame.compose(view, [[panel]], title=title, subtitle=subtitle, caption=caption)


def points(record: MachineRecord, rows_left: Rows, view: View) -> Picture:
    """Predicted against measured times."""
    table: list[Mapping[str, Any]] = list(rows_left)
    times = [row[key] for row in table for key in ("predicted_s", "measured_s")]
    ends = [min(times) / 1.3, max(times) * 1.3] if times else [1e-3, 1.0]
    across = scale.AxisScale("Measured (log)", ends, "s", log=True)
    axis = across.axis(view.ends("x"))
    line = [{"x": at, "y": at, "low": at * (1 - AIM), "high": at * (1 + AIM)} for at in (axis.low, axis.high)]
    parts: list[plot.Part] = [plot.Series(rows=line, meaning="muted", width=1, band=("low", "high"))]
    for kind, meaning in ((DECODE, "weights"), (PREFILL, "compute")):
        spots = [{"x": row["measured_s"], "y": row["predicted_s"]} for row in table if row["kind"] == kind]
        parts.append(plot.Series(rows=spots, meaning=meaning, width=0, dots=60))
    panel = plot.Plot(
        name="points", x=across, parts=parts, heading="Predicted (log)", height=340, y=scale.AxisScale("", ends, "s", log=True),
        keys=((DECODE, "weights"), (PREFILL, "compute")),
    )  # fmt: skip
    caption = f"Each point was predicted before it was measured; the band is {AIM:.0%} around equal."
    title = "Steps of small decoders, predicted and measured"
    return frame.compose(view, [[panel]], title=title, subtitle=machine(record), caption=caption)

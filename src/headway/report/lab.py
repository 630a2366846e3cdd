"""Words and picture of `headway lab`: the experiments, the points of one beside their predictions, a server of trains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.core.errors import BadValue
from headway.core.listing import Listing, format_value
from headway.core.units import show
from headway.evidence.lecture.chapters import statement
from headway.reality.lab.batch import lines
from headway.report.output import Summary
from headway.report.pictures import frame, plot, scale
from headway.report.words import Row, interval, number_of, sentence

if TYPE_CHECKING:
    from headway.reality.lab.experiment import LabRun, LabSetup
    from headway.report.pictures.frame import Picture, View

VIEW = ("quantity", "at", "predicted", "interval", "measured", "each_token", "inside", "claim")
RISE = 1.05  # of a token's cost over that of batch 1, from which it counts as a rise
LIST_VIEW = ("experiment", "chapter", "about", "command")


def contents(rows: Sequence[Row]) -> Summary:
    """The experiments that there are."""
    names = ", ".join(row["experiment"] for row in rows)
    headline = f"{number_of(len(rows), 'experiment')} of the lecture run on this machine: {names}."
    after = [f"{row['experiment']}: {row['runs']}; it tests {', '.join(row['claims'])}." for row in rows]
    after.append("Each predicts first, writes its prediction down, then measures; --quick takes under 20 s.")
    return Summary(headline, LIST_VIEW, after)


def described(run: LabRun, rows: Sequence[Row]) -> Summary:
    """The points of an experiment beside their predictions."""
    measured = [row for row in rows if row["measured"] is not None]
    inside = sum(row["inside"] for row in measured)
    if not measured:
        headline = f"{run.experiment.name}: nothing was measured{', it was interrupted' if run.interrupted else ''}."
    elif run.interrupted or run.noise.reasons:
        why = "it was interrupted" if run.interrupted else "the machine was not quiet"
        headline = sentence(SENTENCES[run.experiment.name](run, measured), f"; no verdict, as {why}")
    else:
        headline = sentence(SENTENCES[run.experiment.name](run, measured), f"; {inside} of {len(measured)} points lie inside")
    people = [
        {key: format_value(row[key], row["unit"]) for key in ("predicted", "measured")}
        | {key: row[key] for key in ("quantity", "claim", "inside")}
        | {"each_token": format_value(row["measured"] / row["at"], "s") if row["quantity"] == "step" and row["measured"] else None}
        | {"at": f"{run.experiment.axis} {row['at']:g}", "interval": interval(row["predicted_lo"], row["predicted_hi"], row["unit"])}
        for row in rows
    ]
    after = [f"{claim}: {statement(claim)}" for claim in dict.fromkeys(row["claim"] for row in rows)]
    if run.noise.reasons:
        after.append(f"Not quiet: {'; '.join(run.noise.reasons)}. {inside} of {len(measured)} points lie inside all the same.")
    after += BELOW.get(run.experiment.name, lambda run, rows: [])(run, measured)
    stopped = "interrupted; " if run.interrupted else ""
    after.append(f"{stopped}{run.date}, {run.machine}; predicted before the first point, sha256 {run.digest[:16]}")
    return Summary(headline, VIEW, after, Listing(people) if people else None)


def trains(run: LabRun, rows: Sequence[Row]) -> str:
    """What the trains did."""
    wait = next((row for row in rows if row["quantity"] == "mean wait"), None)
    worst = next((row for row in rows if row["quantity"] == "longest response"), None)
    interval_text = show(run.setup.interval, "s")
    if wait is None:
        return f"Trains left every {interval_text}"
    measured, predicted = (format_value(wait[key], "s") for key in ("measured", "predicted"))
    text = f"Requests wait {measured} for a train every {interval_text} ({predicted} predicted)"
    return text + (f", the longest took {format_value(worst['measured'], 's')}" if worst else "")


def batch(run: LabRun, rows: Sequence[Row]) -> str:
    """How the cost of a token goes with the batch, as it was measured."""
    steps = sorted((row["at"], row["measured"] / row["at"]) for row in rows if row["quantity"] == "step")
    if len(steps) < 2:
        return "One batch was measured"
    (first, alone), (last, shared) = steps[0], steps[-1]
    peak, most = max(steps, key=lambda step: step[1])
    end = f"falls to {format_value(shared, 's')} at batch {last:,.0f}"
    if most > RISE * alone:
        rise = f"Cost per token first rises {most / alone:.2g} times, from {format_value(alone, 's')} at batch {first:,.0f}"
        return f"{rise} to batch {peak:,.0f}, then {end}"
    return f"Cost per token rises at none of these batches: from {format_value(alone, 's')} at batch {first:,.0f} it {end}"


def below_batch(run: LabRun, rows: Sequence[Row]) -> list[str]:
    """Floor, balanced batch and the shares of experts."""
    of = lines(run.setup, run.calibration)
    steps = [row["measured"] for row in rows if row["quantity"] == "step"]
    counts = [row["measured"] / row["predicted"] - 1 for row in rows if row["quantity"] == "experts touched"]
    text = f"Every weight read once takes {format_value(of['floor_s'], 's')} (RB-05: {format_value(of['bandwidth'], 'byte/s')})"
    text += f"; a step of few tokens touches few experts, and took {format_value(min(steps), 's')} at least" if steps else ""
    balanced = f"Balanced batch {of['balanced']:,.0f} by the board's law: {format_value(of['peak'], 'flop/s')} over that bandwidth, times "
    far = max(counts, key=abs, default=0.0)
    touched = [f"Experts touched lie within {abs(far):.1%} of E (1 - (1 - k/E)^B)."] if counts else []
    balanced += "total over active parameters; the knee is where a token costs twice what it does at the largest batch."
    return [text + ".", balanced, *touched]


SENTENCES: dict[str, Callable[[LabRun, Sequence[Row]], str]] = {"trains": trains, "batch": batch}
BELOW: dict[str, Callable[[LabRun, Sequence[Row]], list[str]]] = {"batch": below_batch}


def drawing(run: LabRun, rows: Sequence[Row], view: View) -> Picture:
    """Measured points over the predicted curve and its interval; of steps also what each token takes of them."""
    points = [row for row in rows if row["quantity"] == run.experiment.main]
    if not points:
        raise BadValue("--plot", "no point", f"rows of {run.experiment.main}")
    panels = [[_panel(run, points, run.experiment.main, lambda row: 1.0)]]
    if run.experiment.main == "step":
        panels.append([_panel(run, points, "step over batch: what each token takes", lambda row: 1 / row["at"])])
    measured = [row for row in rows if row["measured"] is not None]
    inside, stopped = sum(row["inside"] for row in measured), "interrupted: " * run.interrupted
    title = f"{stopped}{inside} of {len(measured)} measured points lie in the interval that was predicted"
    quiet = f"; the machine was not quiet ({'; '.join(run.noise.reasons)})" if run.noise.reasons else ""
    caption = f"The band is the interval that was predicted, written down before the first point{quiet}."
    return frame.compose(view, panels, title=title, subtitle=f"{run.experiment.title}; {run.machine}, {run.date}", caption=caption)


def _panel(run: LabRun, points: Sequence[Row], heading: str, factor: Callable[[Row], float]) -> plot.Plot:
    """One quantity along the experiment's axis."""
    keys = {"predicted": "predicted", "low": "predicted_lo", "high": "predicted_hi", "measured": "measured"}
    curve = [
        {"x": row["at"]} | {name: None if row[key] is None else row[key] * factor(row) for name, key in keys.items()} for row in points
    ]
    dots = [point for point in curve if point["measured"] is not None]
    x = scale.AxisScale(run.experiment.axis, [point["x"] for point in curve], room=0.05, base=2 if len(curve) > 5 else 10)
    return plot.Plot(
        name=heading.partition(" ")[0] + str(len(heading)), heading=heading, x=x,
        y=scale.AxisScale("", [point[name] for point in curve for name in ("low", "high", "measured")], points[0]["unit"]),
        parts=[
            plot.Series(rows=curve, y="predicted", meaning="weights", text="predicted", band=("low", "high")),
            plot.Series(rows=dots, y="measured", meaning="kv", width=0, dots=60),
        ],
        keys=[("measured here", "kv")],
    )  # fmt: skip


def serving(setup: LabSetup, port: int) -> str:
    """Where the trains are served."""
    interval_text, step = show(setup.interval, "s"), "the decoder's step" if setup.step is None else "a stated step"
    seats = f"{setup.limit} seats of {setup.context:,} tokens"
    return f"trains every {interval_text} with {seats} and {step} at http://127.0.0.1:{port}/v1 (Ctrl-C ends it)"


def served(counts: Mapping[str, Any]) -> str:
    """What was served."""
    return f"Served {counts.get('requests', 0):,} requests, {counts.get('tokens', 0):,} tokens, {counts.get('departures', 0):,} departures."

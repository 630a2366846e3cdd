"""Words and picture of `headway lab`: the experiments, the points of one beside their predictions, a server of trains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.core.errors import BadValue
from headway.core.listing import Listing, format_value
from headway.core.units import show
from headway.evidence.lecture.chapters import statement
from headway.report.output import Summary
from headway.report.pictures import frame, plot, scale
from headway.report.words import Row, interval, number_of, sentence

if TYPE_CHECKING:
    from headway.reality.lab.experiment import LabRun, LabSetup
    from headway.report.pictures.frame import Picture, View

VIEW = ("quantity", "at", "predicted", "interval", "measured", "inside", "claim")
LIST_VIEW = ("experiment", "chapter", "about", "claims", "command")


def contents(rows: Sequence[Row]) -> Summary:
    """The experiments that there are."""
    names = ", ".join(row["experiment"] for row in rows)
    headline = f"{number_of(len(rows), 'experiment')} of the lecture run on this machine: {names}."
    after = [f"{row['experiment']}: {row['runs']}." for row in rows]
    after.append("Each predicts first, writes its prediction down, then measures; --quick takes under 20 s.")
    return Summary(headline, LIST_VIEW, after)


def described(run: LabRun, rows: Sequence[Row]) -> Summary:
    """The points of an experiment beside their predictions."""
    measured = [row for row in rows if row["measured"] is not None]
    inside = sum(row["inside"] for row in measured)
    if not measured:
        headline = f"{run.experiment.name}: nothing was measured{', it was interrupted' if run.interrupted else ''}."
    elif run.noise.reasons:
        headline = sentence(SENTENCES[run.experiment.name](run, measured), "; no verdict, as the machine was not quiet")
    else:
        headline = sentence(SENTENCES[run.experiment.name](run, measured), f"; {inside} of {len(measured)} points lie inside")
    people = [
        {key: format_value(row[key], row["unit"]) for key in ("predicted", "measured")}
        | {key: row[key] for key in ("quantity", "claim", "inside")}
        | {"at": f"{run.experiment.axis} {row['at']:g}", "interval": interval(row["predicted_lo"], row["predicted_hi"], row["unit"])}
        for row in rows
    ]
    after = [f"{claim}: {statement(claim)}" for claim in dict.fromkeys(row["claim"] for row in rows)]
    if run.noise.reasons:
        after.append(f"Not quiet: {'; '.join(run.noise.reasons)}. {inside} of {len(measured)} points lie inside all the same.")
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


SENTENCES: dict[str, Callable[[LabRun, Sequence[Row]], str]] = {"trains": trains}


def drawing(run: LabRun, rows: Sequence[Row], view: View) -> Picture:
    """Measured points over the predicted curve and its interval."""
    points = [
        {"x": row["at"], "low": row["predicted_lo"], "high": row["predicted_hi"]} | {key: row[key] for key in ("predicted", "measured")}
        for row in rows if row["quantity"] == run.experiment.main
    ]  # fmt: skip
    if not points:
        raise BadValue("--plot", "no point", f"rows of {run.experiment.main}")
    unit = next(row["unit"] for row in rows if row["quantity"] == run.experiment.main)
    dots = [point for point in points if point["measured"] is not None]
    values = [point[key] for point in points for key in ("low", "high", "measured")]
    panel = plot.Plot(
        name="points", heading=run.experiment.main,
        parts=[
            plot.Series(rows=points, y="predicted", meaning="weights", text="predicted", band=("low", "high")),
            plot.Series(rows=dots, y="measured", meaning="kv", text="measured", width=0, dots=60),
        ],
        x=scale.AxisScale(run.experiment.axis, [point["x"] for point in points], room=0.05),
        y=scale.AxisScale("", values, unit, zero=True),
    )  # fmt: skip
    inside = sum(bool(row["inside"]) for row in rows if row["measured"] is not None)
    title = f"{inside} of {sum(row['measured'] is not None for row in rows)} measured points lie in the interval that was predicted"
    quiet = f"; the machine was not quiet ({'; '.join(run.noise.reasons)})" if run.noise.reasons else ""
    caption = f"The band is the 90 % interval, written down before the first point{quiet}."
    return frame.compose(view, [[panel]], title=title, subtitle=f"{run.experiment.title}; {run.machine}, {run.date}", caption=caption)


def serving(setup: LabSetup, port: int) -> str:
    """Where the trains are served."""
    interval_text, step = show(setup.interval, "s"), "the decoder's step" if setup.step is None else "a stated step"
    return f"trains every {interval_text} with {setup.limit} seats and {step} at http://127.0.0.1:{port}/v1 (Ctrl-C ends it)"


def served(counts: Mapping[str, Any]) -> str:
    """What was served."""
    return f"Served {counts.get('requests', 0):,} requests, {counts.get('tokens', 0):,} tokens, {counts.get('departures', 0):,} departures."

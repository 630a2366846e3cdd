"""Words and picture of `headway lab`, whatever the experiment: which there are, the points of one beside their predictions."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from headway.core.errors import BadValue
from headway.core.listing import Listing, format_value
from headway.evidence.lecture.chapters import statement
from headway.report.output import Summary
from headway.report.pictures import frame, plot, scale
from headway.report.words import Row, interval, number_of, sentence

if TYPE_CHECKING:
    from headway.reality.lab.experiment import LabRun
    from headway.report.pictures.frame import Picture, View

VIEW = ("quantity", "at", "predicted", "interval", "measured", "each_token", "inside", "claim")
FEW = 4  # places along the axis, which then are its ticks
LIST_VIEW = ("experiment", "chapter", "about", "command")


def contents(rows: Sequence[Row]) -> Summary:
    """The experiments that there are."""
    names = ", ".join(row["experiment"] for row in rows)
    headline = f"{number_of(len(rows), 'experiment')} of the lecture run on this machine: {names}."
    after = [f"{row['experiment']}: {row['runs']}; it tests {', '.join(row['claims'])}." for row in rows]
    after.append("Each predicts first, writes its prediction down, then measures; --quick takes under 20 s.")
    return Summary(headline, LIST_VIEW, after)


class ExperimentWords(Protocol):
    """What the module of an experiment's words has; those with more than one picture's panel have `panels` too."""

    def headline(self, run: LabRun, rows: Sequence[Row]) -> str: ...  # of the rows that were measured, without a full stop
    def below(self, run: LabRun, rows: Sequence[Row]) -> list[str]: ...


def words_of(run: LabRun) -> ExperimentWords:
    """The module `report/lab/NAME.py` of an experiment."""
    return cast("ExperimentWords", importlib.import_module(f"headway.report.lab.{run.experiment.name}"))


def described(run: LabRun, rows: Sequence[Row]) -> Summary:
    """The points of an experiment beside their predictions."""
    of = words_of(run)
    measured = [row for row in rows if row["measured"] is not None]
    inside = sum(row["inside"] for row in measured)
    if not measured:
        state = "none is measured yet" if run.is_running else "nothing was measured" + ", it was interrupted" * run.interrupted
        headline = f"{run.experiment.name}: {number_of(len(rows), 'point')} predicted, {state}."
    elif run.is_running:
        headline = sentence(of.headline(run, measured), last=f"; {len(measured)} of {len(rows)} points are measured")
    elif run.interrupted or run.noise.reasons:
        why = "it was interrupted" if run.interrupted else "the machine was not quiet"
        headline = sentence(of.headline(run, measured), last=f"; no verdict, as {why}")
    else:
        headline = sentence(of.headline(run, measured), last=f"; {inside} of {len(measured)} points lie inside")
    people = [
        {key: format_value(row[key], row["unit"]) for key in ("predicted", "measured")}
        | {key: row[key] for key in ("quantity", "claim", "inside")}
        | {"each_token": format_value(row["measured"] / row["at"], "s") if row["quantity"] == "step" and row["measured"] else None}
        | {"at": f"{row['axis']} {_place(run, row)}", "interval": interval(row["predicted_lo"], row["predicted_hi"], row["unit"])}
        for row in rows
    ]
    after = [f"{claim}: {statement(claim)}" for claim in dict.fromkeys(row["claim"] for row in rows) if claim]
    if run.noise.reasons:
        after.append(f"Not quiet: {'; '.join(run.noise.reasons)}. {inside} of {len(measured)} points lie inside all the same.")
    after += of.below(run, measured)
    stopped = "interrupted; " if run.interrupted else ""
    after.append(f"{stopped}{run.date}, {run.machine}; predicted before the first point, sha256 {run.digest[:16]}")
    return Summary(headline, VIEW, after, Listing(people) if people else None)


def _place(run: LabRun, row: Row) -> str:
    """Where a point lies on the axis."""
    unit = run.experiment.axis_unit
    return format_value(row["at"], unit) if unit else f"{row['at']:g}"


def drawing(run: LabRun, rows: Sequence[Row], view: View) -> Picture:
    """Measured points over the predicted curve and its interval, in the panels of the experiment."""
    panels = getattr(words_of(run), "panels", usual_panels)(run, rows)
    measured = [row for row in rows if row["measured"] is not None]
    inside, stopped = sum(row["inside"] for row in measured), "interrupted: " * run.interrupted
    stopped = "under way: " if run.is_running else stopped
    title = stopped + (words_of(run).headline(run, measured) if measured else f"{run.experiment.name}: nothing is measured yet")
    quiet = f"; the machine was not quiet ({'; '.join(run.noise.reasons)})" if run.noise.reasons else ""
    caption = f"The band is the interval that was predicted, written down before the first point; {inside} of {len(measured)} measured " \
              f"points lie inside{quiet}."  # fmt: skip
    return frame.compose(view, panels, title=title, subtitle=f"{run.experiment.title}; {run.machine}, {run.date}", caption=caption)


def usual_panels(run: LabRun, rows: Sequence[Row]) -> list[list[plot.Plot]]:
    """The experiment's main quantity; of steps also what each token takes of them."""
    points = [row for row in rows if row["quantity"] == run.experiment.main]
    if not points:
        raise BadValue("--plot", "no point", f"rows of {run.experiment.main}")
    panels = [[_panel(run, points, run.experiment.main, lambda row: 1.0)]]
    if run.experiment.main == "step":
        panels.append([_panel(run, points, "step over batch: what each token takes", lambda row: 1 / row["at"])])
    return panels


def _panel(run: LabRun, points: Sequence[Row], heading: str, factor: Callable[[Row], float]) -> plot.Plot:
    """One quantity along the experiment's axis."""
    keys = {"predicted": "predicted", "low": "predicted_lo", "high": "predicted_hi", "measured": "measured"}
    curve = [
        {"x": row["at"]} | {name: None if row[key] is None else row[key] * factor(row) for name, key in keys.items()} for row in points
    ]
    dots = [point for point in curve if point["measured"] is not None]
    base = 2 if len(curve) > 5 else 10
    places, unit = [float(row["at"]) for row in points], run.experiment.axis_unit
    ticks = [(at, scale.tick_text(at, unit)) for at in places] if len(places) <= FEW else ()
    x = scale.AxisScale(run.experiment.axis.capitalize(), places, unit, room=0.05, base=base, ticks=ticks)
    return plot.Plot(
        name=heading.partition(" ")[0] + str(len(heading)), heading=heading[:1].upper() + heading[1:], x=x,
        y=scale.AxisScale("", [point[name] for point in curve for name in ("low", "high", "measured")], points[0]["unit"]),
        parts=[
            plot.Series(rows=curve, y="predicted", meaning="weights", text="predicted", band=("low", "high")),
            plot.Series(rows=dots, y="measured", meaning="kv", width=0, dots=60),
        ],
        keys=[("measured here", "kv")],
    )  # fmt: skip

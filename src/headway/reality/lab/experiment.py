"""One frame for experiments: what is predicted, written down before anything is measured, then what is measured, point by point.

An experiment predicts in this process, by the laws that every verb replays; it measures in a process of its own, whose numerical library
has a stated number of threads.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, Self, cast

from headway.core.notes import note
from headway.core.progress import tell
from headway.core.units import Byte, Number
from headway.reality import threads
from headway.reality.lab.shape import SIZES, LabShape

CHILD = "headway.reality.lab.child"
WIDEST = 2.0  # high end of an interval over its low end, at most


@dataclass(frozen=True, slots=True, kw_only=True)
class LabSetup:
    """What the user may choose of every experiment; a class of an experiment adds its own. A field is read from the flag of its name."""

    quick: bool = False
    seed: int = 0
    threads: int = 1

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        """A setup from what `asdict` and JSON made of it: lists are tuples again, sizes a shape."""
        values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in document.items()}
        if "shape" in values:
            values["shape"] = LabShape(**values["shape"])
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedPoint:
    """A point before it is measured; its numbers know the laws behind them."""

    quantity: str
    claim: str  # id of the claim that it tests; "" where the lecture claims nothing of it
    at: float  # along the axis
    unit: str
    value: Any
    low: Any
    high: Any
    axis: str = ""  # where it is not the experiment's

    def plain(self) -> dict[str, Any]:
        """As it is hashed and kept."""
        numbers = {name: float(getattr(self, name)) for name in ("at", "value", "low", "high")}
        return {"quantity": self.quantity, "claim": self.claim, "unit": self.unit, "axis": self.axis} | numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPoint:
    """What one point measured."""

    value: float
    spread: float  # of its rounds, or of its sample: a share of the value


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """How quiet the machine was: empty reasons where it was."""

    load: float  # processes that ran or waited to run before, on the mean of a minute
    cores: int
    reasons: tuple[str, ...] = ()


Child = Callable[..., dict[str, Any]]  # as threads.in_child
Calibration = Mapping[str, Any]  # what the machine was measured to do before the prediction, as JSON holds it
Say = Callable[[Sequence[float]], None]  # place, value and spread of a point that was measured


class ExperimentModule(Protocol):
    """What the module of an experiment has; one whose machine is measured in a child has `calibration(setup)` for that process as well."""

    def fitted(self, setup: Any) -> Any: ...  # with what --quick makes of it; BadValue where the laws say nothing of it
    def memory(self, setup: Any) -> Byte: ...
    def calibrate(self, setup: Any, child: Child) -> Calibration: ...  # the machine, measured without what is predicted
    def predict(self, setup: Any, calibration: Calibration) -> Iterable[PredictedPoint]: ...
    def measure(self, setup: Any, plan: Sequence[Mapping[str, Any]], say: Say) -> dict[str, Any]: ...  # in a process of its own
    def noise(self, setup: Any, facts: Mapping[str, Any]) -> Sequence[str]: ...  # against a verdict, by what `measure` returned


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A part of the lecture that runs here."""

    name: str
    title: str
    claims: tuple[str, ...]  # that it tests
    runs: str  # what is run, in a sentence
    axis: str  # what its points lie along
    axis_unit: str = ""
    setup: LabSetup
    main: str  # quantity that its picture draws
    module: str  # that runs it

    @property
    def flags(self) -> frozenset[str]:
        """Flags that it reads: the fields of its setup, and the sizes of a decoder where it has one."""
        names = {field.name for field in dataclasses.fields(self.setup)}
        return frozenset(names | set(SIZES)) - {"shape"} if "shape" in names else frozenset(names)

    @property
    def code(self) -> ExperimentModule:
        """The module that runs it, which loads numpy."""
        return cast("ExperimentModule", importlib.import_module(self.module))


@dataclass(slots=True, kw_only=True)
class LabRun:
    """An experiment as it was run."""

    experiment: Experiment
    setup: Any  # of the experiment's own class
    calibration: Calibration
    predictions: Sequence[PredictedPoint]
    digest: str  # SHA-256 of the predictions
    date: str
    machine: str
    noise: Noise
    points: dict[int, MeasuredPoint] = field(default_factory=dict)  # by the place of their prediction
    facts: dict[str, Any] = field(default_factory=dict)  # what the process that measured says at its end
    is_running: bool = True
    interrupted: bool = False

    def is_inside(self, place: int) -> bool | None:
        """Whether a point lies in its interval; None where it was not measured."""
        point, prediction = self.points.get(place), self.predictions[place]
        return None if point is None else bool(prediction.low <= point.value <= prediction.high)

    def document(self) -> dict[str, Any]:
        """The run as it is kept in a file."""
        points = [
            prediction.plain() | ({"measured": point.value, "spread": point.spread} if (point := self.points.get(place)) else {})
            for place, prediction in enumerate(self.predictions)
        ]
        return {
            "experiment": self.experiment.name, "date": self.date, "machine": self.machine, "setup": asdict(self.setup),
            "predictions_sha256": self.digest, "calibration": dict(self.calibration), "noise": asdict(self.noise), "facts": self.facts,
            "interrupted": self.interrupted, "points": points,
        }  # fmt: skip


def calibrated(name: str, setup: LabSetup, child: Child) -> Calibration:
    """What the `calibration` of an experiment's module says of this machine, in a process with the setup's threads."""
    return child(CHILD, {"experiment": name, "job": "calibrate", "setup": asdict(setup)}, setup.threads)


def digest(predictions: Sequence[PredictedPoint]) -> str:
    """SHA-256 of predictions."""
    return hash_of([prediction.plain() for prediction in predictions])


def hash_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """SHA-256 of rows, which says later that none was changed after measuring."""
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()


def sharp(predictions: Iterable[PredictedPoint]) -> list[PredictedPoint]:
    """Predictions whose interval says something; a note names those that are left out."""
    points = list(predictions)
    wide = [point for point in points if point.high > point.low * WIDEST * (1 + 1e-9)]
    if wide:
        names = ", ".join(f"{point.quantity} at {point.at:g}" for point in wide)
        note(f"without a prediction, as so few scatter by more than a factor of {WIDEST:g}: {names}")
    return [point for point in points if point not in wide]


Keep = Callable[[Mapping[str, Any]], None]


def run(
    experiment: Experiment, setup: LabSetup, about: Mapping[str, Any], keep: Keep, child: Child = threads.in_child,
    follow: Callable[[LabRun], None] = lambda run: None,
) -> LabRun:  # fmt: skip
    """Calibrate, predict, write the prediction down, measure; an interrupt keeps the points so far.

    `about` are date, machine and noise of the run; `keep` is told of the run before its first point and after its last, `follow` of the
    run at every point.
    """
    request = {"experiment": experiment.name, "setup": asdict(setup)}
    tell(f"{experiment.name}: the machine first, before the prediction")
    calibration = experiment.code.calibrate(setup, child)
    predictions = sharp(experiment.code.predict(setup, calibration))
    lab_run = LabRun(
        experiment=experiment, setup=setup, calibration=calibration, predictions=predictions, digest=digest(predictions), **about
    )
    keep(lab_run.document())
    follow(lab_run)
    tell(f"{len(predictions)} points predicted before the first is measured: sha256 {lab_run.digest}")

    def hear(part: Sequence[Number]) -> None:
        lab_run.points[int(part[0])] = MeasuredPoint(value=part[1], spread=part[2])
        follow(lab_run)

    try:
        plan = [prediction.plain() for prediction in predictions]
        lab_run.facts = child(CHILD, request | {"job": "measure", "plan": plan}, setup.threads, hear)
    except KeyboardInterrupt:
        lab_run.interrupted = True
    lab_run.is_running = False
    return lab_run

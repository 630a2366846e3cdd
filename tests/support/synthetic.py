"""Tables of measured rows made in a test: what known engine numbers predict, with seeded noise, as the text of a CSV."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from headway.evidence.fit.result import PriorNumber
from headway.evidence.rows.row import read_rows
from headway.evidence.rows.tasks import Task, Unpredictable, tasks
from headway.evidence.serving.engine_fit import numbers, table_at
from headway.evidence.serving.predict import Prediction, predict
from headway.performance.achieved import Efficiencies, efficiencies

# What each mode publishes: the column, the prediction it is made of, and its factor.
SEEN = {
    "decode_step": (("tpot_ms", "tpot", 1e3),),
    "prefill": (("tok_s_per_chip", "per_chip", 1.0),),
    "serving_concurrency": (("tpot_ms", "tpot", 1e3), ("ttft_ms", "ttft", 1e3)),
    "offline_throughput": (("tok_s_per_chip", "per_chip", 1.0),),
    "disagg": (("tpot_ms", "tpot", 1e3), ("ttft_ms", "ttft", 1e3)),
}
Line = Mapping[str, str]
Scatter = Callable[[Task], float]


@dataclass(frozen=True)
class Rig:
    """One way of serving one model, as a row names it."""

    model: str
    hardware: str
    chips: int
    engine: str
    tp: int
    weights: str = "bf16"
    more: tuple[tuple[str, str], ...] = ()

    def line(self, name: str, mode: str, prompt: int, output: int, users: int, source: str, reliability: str = "A") -> dict[str, str]:
        """A row of it without a measurement."""
        stated = {
            "id": name, "model": self.model, "hardware": self.hardware, "n_chips": str(self.chips), "engine": self.engine,
            "tp": str(self.tp), "weight_precision": self.weights, "kv_precision": "bf16", "mode": mode, "isl": str(prompt),
            "osl": str(output), "batch_or_concurrency": str(users), "source_key": source, "reliability": reliability,
        }  # fmt: skip
        return stated | dict(self.more)


def csv_text(lines: Sequence[Line]) -> str:
    """The lines as the text of a CSV."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(key for line in lines for key in line)), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return out.getvalue()


def tasks_of(text: str) -> list[Task]:
    """The tasks of a CSV; every row has to be one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        path.write_text(text, encoding="utf-8")
        rows, bad = read_rows(path)
    found = tasks(rows)
    assert not bad
    assert not [task.why for task in found if isinstance(task, Unpredictable)]
    return [task for task in found if isinstance(task, Task)]


def prior() -> Efficiencies:
    """Shipped kernels, engines as believed before any row."""
    return true_table({})


def true_table(values: Mapping[str, float], every: Sequence[PriorNumber] | None = None) -> Efficiencies:
    """Shipped kernels, engines at their priors but for `values`, by place: `engine.vllm.step_overhead_s`."""
    known = every or numbers()
    names = [f"{number.section}.{number.key}" for number in known]
    assert set(values) <= set(names)
    return table_at(efficiencies(), known, [values.get(name, number.prior) for name, number in zip(names, known, strict=True)])


def measured(lines: Iterable[Line], table: Efficiencies, scatter: float | Scatter, seed: int) -> str:
    """The lines with what `table` predicts, times lognormal noise, in the columns that their mode publishes."""
    rng, plain = np.random.default_rng(seed), list(lines)
    known = tasks_of(csv_text(plain))
    found = [
        dict(line) | _seen(task, made, scatter(task) if callable(scatter) else scatter, rng)
        for line, task, made in zip(plain, known, predict(known, table), strict=True)
    ]
    return csv_text(found)


def _seen(task: Task, made: Prediction, sigma: float, rng: np.random.Generator) -> dict[str, str]:
    return {
        column: repr(getattr(made, name).expected * factor * float(np.exp(sigma * rng.standard_normal())))
        for column, name, factor in SEEN[task.row.mode]
    }


def remeasured(task: Task, factor: float) -> Task:
    """A task whose every measurement is so many times what it was."""
    names = [name for name in ("tpot_s", "ttft_s", "tok_per_s_chip") if getattr(task.row, name) is not None]
    return replace(task, row=replace(task.row, **{name: getattr(task.row, name) * factor for name in names}))

"""What the shipped numbers leave of classes of measured rows: the mean of cluster means of ln(predicted / measured) times, and its error.

A class is of one key. It says something from LEAST_ROWS rows on whose clusters are of two models, chips, engines or sources at least
twice; where its mean is beyond the limit of its quantity and twice its own error, a law is missing.
"""

from __future__ import annotations

import csv
import functools
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from importlib.resources import files

import numpy as np

from headway.core.records import record_of
from headway.evidence.rows.tasks import Task
from headway.evidence.serving.remainder import Leftovers, differ
from headway.evidence.serving.score import quarter
from headway.performance.achieved import chip_kind, weight_class
from headway.performance.nearest import ENGINES

LEAST_ROWS = 30
LIMITS = {"tpot": 0.05, "offline": 0.05, "decode": 0.05, "prefill": 0.05, "ttft": 0.15}  # of a mean that says nothing of a law
FILE = "remainder.csv"


def model_family(name: str) -> str:
    """Family of a model: the letters with which its name begins.

    >>> model_family("llama-3.1-70b"), model_family("gpt-oss-120b"), model_family("qwen2.5-7b")
    ('llama', 'gpt-oss', 'qwen')
    """
    match = re.match(r"[a-z]+(?:-oss)?", name.lower())
    return match[0] if match else name


KEYS: dict[str, Callable[[Task], str]] = {
    "weights": lambda task: weight_class(task.setup.formats.labels[0]),
    "engine": lambda task: ENGINES[task.setup.engine],
    "chip": lambda task: task.setup.system.chip.name,
    "kind of chip": lambda task: chip_kind(task.setup.system.chip),
    "model family": lambda task: model_family(task.setup.model.name),
    "quarter": lambda task: quarter(task.row),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassMean:
    """What is left of the rows of one class: times are predicted too long, or rates too low, where the mean is above 0."""

    quantity: str
    key: str
    name: str
    rows: int
    clusters: int
    mean: float
    error: float  # standard error between clusters


def class_means(rest: Leftovers, tasks: Sequence[Task], error: np.ndarray) -> tuple[ClassMean, ...]:
    """Means of every class that says something; `tasks` and `error` are those of the measurements of `rest`."""
    classes = []
    for key, label in KEYS.items():
        labels = np.array([label(task) for task in tasks], dtype=str)
        for quantity in LIMITS:
            for name in np.unique(labels[rest.quantity == quantity]):
                at = (rest.quantity == quantity) & (labels == name)
                clusters = np.unique(rest.cluster[at])
                if name and at.sum() >= LEAST_ROWS and differ(clusters):
                    means = [error[at & (rest.cluster == cluster)].mean() for cluster in clusters]
                    classes.append(ClassMean(
                        quantity=quantity, key=key, name=str(name), rows=int(at.sum()), clusters=len(clusters),
                        mean=round(float(np.mean(means)), 3), error=round(float(np.std(means, ddof=1)) / len(means) ** 0.5, 3),
                    ))  # fmt: skip
    return tuple(sorted(classes, key=lambda mean: (list(LIMITS).index(mean.quantity), list(KEYS).index(mean.key), mean.name)))


def text(means: Sequence[ClassMean]) -> str:
    """CSV text of means."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([field.name for field in fields(ClassMean)])
    writer.writerows([astuple(mean) for mean in means])
    return out.getvalue()


@functools.cache
def shipped() -> tuple[ClassMean, ...]:
    """What the numbers that ship with the package leave."""
    lines = files("headway").joinpath(f"data/{FILE}").read_text(encoding="utf-8")
    return tuple(record_of(ClassMean, row) for row in csv.DictReader(io.StringIO(lines)))

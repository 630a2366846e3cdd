"""What runs of one's own give on measured rows: python bench/calibration.py serving_measured.csv.

Deployments of four rows and more: one run (fewest users; of offline rows the middle length) or three (fewest, middle, most users) of every
one as one profile, the rest predicted. Then runs of other layouts, models and chips alone; one half of each against its other half; 40
simulated servers; and 150 deployments of three rows in CPU-seconds. Medians of abs ln(predicted / measured), in percent.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from headway.evidence.calibration.observe import observe
from headway.evidence.rows.row import read_rows
from headway.evidence.rows.run_keys import task_key
from headway.evidence.rows.tasks import Task, tasks
from headway.evidence.serving.predict import Prediction, predict
from headway.evidence.serving.score import measured
from headway.performance.calibration.key import RunKey
from headway.performance.calibration.observation import Observation
from support.own_runs import inside, simulated

SERVED, OFFLINE = ("serving",), ("offline", "static")
QUANTITIES = {"served TPOT": (SERVED, ("tpot",)), "served TTFT": (SERVED, ("ttft",)), "throughput": (OFFLINE, ("per_chip", "rate"))}
TARGETS = {("served TPOT", 1): 6.5, ("served TPOT", 3): 4.5, ("served TTFT", 1): 14, ("served TTFT", 3): 12,
           ("throughput", 1): 9, ("throughput", 3): 8.5}  # fmt: skip
LEAST, UNSCORED, WORSE, SERVERS, MANY = 4, "C", 0.10, 40, 150


@dataclass(frozen=True)
class Errors:
    """Of one quantity: ln(predicted / measured), the deployment of each row, and its interval."""

    log: np.ndarray
    deployment: np.ndarray
    covered: np.ndarray
    width: np.ndarray  # high over low

    @property
    def figures(self) -> tuple[float, float, float]:
        """Median, mean of deployments' medians, and 90th percentile, in percent."""
        size = 100 * np.abs(self.log)
        macro = np.mean([np.median(size[self.deployment == name]) for name in np.unique(self.deployment)])
        return float(np.median(size)), float(macro), float(np.quantile(size, 0.9))


def errors(predictions: Iterable[tuple[Task, Prediction]], quantity: str) -> Errors | None:
    """Errors of a quantity in the rows that have it."""
    kinds, names = QUANTITIES[quantity]
    lines = []
    for task, prediction in predictions:
        name = next((name for name in names if measured(task.row, name) and getattr(prediction, name)), None)
        if task.kind in kinds and name:
            estimate, value = getattr(prediction, name), measured(task.row, name)
            lines.append((np.log(estimate.expected / value), str(task_key(task)), estimate.low <= value <= estimate.high,
                          estimate.high / estimate.low))  # fmt: skip
    return Errors(*map(np.array, zip(*lines, strict=True))) if lines else None


def order(group: Sequence[Task]) -> list[Task]:
    """Rows of a deployment by load: users, else a rate, else length."""
    return sorted(group, key=lambda task: (task.row.concurrency or 0, task.rate or 0, (task.prompt or 0) + (task.output or 0)))


def chosen(group: Sequence[Task], count: int) -> list[Task]:
    """Runs of a deployment: one of the fewest users, or of the middle length; or the first, the middle and the last."""
    rows = order(group)
    middle = rows[len(rows) // 2]
    if count == 1:
        return [rows[0] if rows[0].row.concurrency or rows[0].rate else middle]
    return [rows[0], middle, rows[-1]]


def observed(runs: Sequence[Task]) -> tuple[Observation, ...]:
    """Runs as a profile has them."""
    return observe(runs, [f"own:{task.row.id}" for task in runs])


def line(label: str, before: Errors, after: Errors) -> str:
    """Figures before and after, in a line."""
    pairs = zip(("median", "macro", "90th"), before.figures, after.figures, strict=True)
    return f"  {label:12} {len(after.log):5} rows  " + "  ".join(f"{name} {old:5.1f} -> {new:5.2f}" for name, old, new in pairs)


def own(deployments: Sequence[Sequence[Task]], usual: Callable[[Sequence[Task]], list[Prediction]]) -> None:
    """The first bullet: rows of deployments of which one or three runs are known."""
    for count in (1, 3):
        runs = [task for group in deployments for task in chosen(group, count)]
        known = set(map(id, runs))
        rest = [task for group in deployments for task in group if id(task) not in known]
        predictions = predict(rest, runs=observed(runs))
        print(f"{count} run{'s' if count > 1 else ''} of each of {len(deployments)} deployments")
        for quantity in QUANTITIES:
            before, after = (errors(zip(rest, some, strict=True), quantity) for some in (usual(rest), predictions))
            assert before and after
            coverage, ratio = 100 * after.covered.mean(), np.median(after.width)
            target = TARGETS[quantity, count]
            print(f"{line(quantity, before, after)}  (at most {target})  covered {coverage:.0f} %, hi/lo {np.median(before.width):.2f} "
                  f"-> {ratio:.2f}")  # fmt: skip


def differ(first: RunKey, second: RunKey) -> str:
    """In what two deployments of an engine differ first: layout, model or chip; "" where in more or in nothing."""
    if first.engine != second.engine or first == second:
        return ""
    return {(True, True): "layout", (False, True): "model", (True, False): "chip"}.get(
        (first.model == second.model, first.chip == second.chip), ""
    )


def transfers(deployments: Sequence[Sequence[Task]], usual: Callable[[Sequence[Task]], list[Prediction]]) -> None:
    """The second half of that bullet: runs of other deployments alone."""
    runs = observed([task for group in deployments for task in chosen(group, 3)])
    for what in ("layout", "model", "chip"):
        pairs: list[tuple[Task, Prediction]] = []
        for group in deployments:
            key = task_key(group[0])
            others = tuple(run for run in runs if differ(run.key, key) == what)
            if others:
                pairs += [pair for pair in zip(group, predict(group, runs=others), strict=True) if pair[1].posterior.runs]
        print(f"runs of another {what} of the engine")
        for quantity in QUANTITIES:
            rows = [task for task, _ in pairs]
            before, after = errors(zip(rows, usual(rows), strict=True), quantity), errors(pairs, quantity)
            if before and after:
                print(line(quantity, before, after))


def halves(deployments: Sequence[Sequence[Task]], usual: Callable[[Sequence[Task]], list[Prediction]]) -> None:
    """Runs of one half of a deployment: how often the other half gets worse by over a tenth."""
    random = np.random.default_rng(0)
    worse: dict[str, list[bool]] = collections.defaultdict(list)
    points: dict[str, list[bool]] = collections.defaultdict(list)
    for group in deployments:
        places = random.permutation(len(group))
        runs, rest = ([group[place] for place in part] for part in np.array_split(places, 2))
        predictions = predict(rest, runs=observed(runs))
        for quantity in QUANTITIES:
            before, after = (errors(zip(rest, some, strict=True), quantity) for some in (usual(rest), predictions))
            if before and after:
                worse[quantity].append(np.median(np.abs(after.log)) > (1 + WORSE) * np.median(np.abs(before.log)))
                points[quantity].append(np.median(np.abs(after.log)) > WORSE + np.median(np.abs(before.log)))
    print("one random half of a deployment against the other: medians worse by over a tenth of themselves, and by over ten points")
    for quantity, cases in worse.items():
        shares = (f"{100 * np.mean(some):.0f} %" for some in (cases, points[quantity]))
        print(f"  {quantity}: of {len(cases)} deployments {' and '.join(shares)}")


def cost(deployments: Sequence[Sequence[Task]]) -> None:
    """CPU-seconds of 150 deployments with three rows each, and of predicting their rows."""
    some = sorted(deployments, key=len)[-MANY:]
    start = time.process_time()
    runs = observed([task for group in some for task in chosen(group, 3)])
    calibrated = time.process_time()
    rest = [task for group in some for task in group]
    predict(rest)
    plain = time.process_time()
    predict(rest, runs=runs)
    end = time.process_time()
    times = end - plain, plain - calibrated
    print(f"{len(some)} deployments with three rows: {calibrated - start:.1f} CPU-s to calibrate (at most 60)")
    print(f"{len(rest)} rows: {times[0]:.1f} CPU-s with runs, {times[1]:.1f} without: {times[0] / times[1]:.2f} times (at most 2)")


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", help="measured rows, as serving_measured.csv")
    rows, _ = read_rows(parser.parse_args().rows)
    known = [task for task in tasks(rows) if isinstance(task, Task) and task.kind in SERVED + OFFLINE and task.row.reliability != UNSCORED]
    groups: dict[RunKey, list[Task]] = collections.defaultdict(list)
    for task in known:
        groups[task_key(task)].append(task)
    deployments = [group for group in groups.values() if len(group) >= LEAST]
    served = sum(group[0].kind in SERVED for group in deployments)
    print(f"{served} served and {len(deployments) - served} offline deployments of {LEAST} rows or more")
    without = {id(task): prediction for task, prediction in zip(known, predict(known), strict=True)}

    def usual(some: Sequence[Task]) -> list[Prediction]:
        return [without[id(task)] for task in some]

    own(deployments, usual)
    transfers(deployments, usual)
    halves(deployments, usual)
    names = simulated(SERVERS)
    print("simulated servers, each factor inside its 90 % interval (32 to 40 of 40): "
          + ", ".join(f"{name} {count}" for name, count in inside(names).items()))  # fmt: skip
    cost(deployments)


if __name__ == "__main__":
    main()

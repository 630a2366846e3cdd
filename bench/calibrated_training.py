"""How far off training rows are with one run of their model and chip, which is no row that is scored: dense, routed and memory.

    HEADWAY_TRAINING=training_measured.csv python bench/calibrated_training.py

Each run in turn stands alone and predicts all other rows of its model and chip. Prints medians without and with it, coverage and widths.
"""

from __future__ import annotations

import math
import os
import statistics
from collections import defaultdict
from dataclasses import dataclass

from headway.evidence.calibration.training import GIB, observations_of
from headway.evidence.training.predict import TrainingPrediction, predict, predicted
from headway.evidence.training.row import read_training_rows
from headway.evidence.training.setup import measured_speed
from headway.training.work import is_routed

MOST_RUNS = 8  # of a model and chip, each of which stands alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """A measured quantity over its prediction, and the ends of the interval."""

    ratio: float
    low: float
    high: float

    @property
    def error(self) -> float:
        return abs(1 / self.ratio - 1)


def misses(prediction: TrainingPrediction) -> dict[str, Miss]:
    """Quantities of a row beside what was measured; none where it has no prediction."""
    if prediction.setup is None:
        return {}
    speed, row = measured_speed(prediction.setup), prediction.row
    pairs = {"speed": (speed, prediction.speed), "memory": (row.memory_gb_per_chip and row.memory_gb_per_chip * GIB, prediction.memory)}
    return {
        name: Miss(ratio=value / estimate.expected, low=estimate.low / estimate.expected, high=estimate.high / estimate.expected)
        for name, (value, estimate) in pairs.items() if value and estimate
    }  # fmt: skip


def line(name: str, found: list[Miss]) -> str:
    ratios = [miss.ratio for miss in found]
    inside = sum(miss.low <= miss.ratio <= miss.high for miss in found) / len(found)
    width = statistics.median(miss.high / miss.low for miss in found)
    middle, far = statistics.median(miss.error for miss in found), sorted(abs(math.log(ratio)) for ratio in ratios)[int(0.9 * len(found))]
    return f"{name:24s} {len(found):6d} {middle:7.1%} {far:7.3f} {inside:7.1%} {width:6.2f}"


def main() -> None:
    rows, _ = read_training_rows(os.environ["HEADWAY_TRAINING"])
    groups = defaultdict(list)
    for prediction in predict(rows):
        if misses(prediction) and prediction.setup:
            groups[prediction.setup.model.name, prediction.setup.case.system.chip.name].append(prediction)
    before, after = defaultdict(list), defaultdict(list)
    for group in groups.values():
        kind = "routed" if group[0].setup and is_routed(group[0].setup.case.work) else "dense"
        for run in group[:: max(1, len(group) // MOST_RUNS)] if len(group) > 1 else ():
            observations = observations_of(run, "bench:run")
            for other in group:
                if other is run:
                    continue
                again = predicted(other.row, other.setup or "", runs=observations)
                learnt = misses(run).keys()
                for name, miss in misses(other).items():
                    if name in learnt:
                        key = name if name == "memory" else kind
                        before[key].append(miss)
                        after[key].append(misses(again)[name])
    print(f"{'':24s} {'rows':>6s} {'median':>7s} {'p90 ln':>7s} {'inside':>7s} {'hi/lo':>6s}")
    for key in sorted(before):
        print(line(f"{key}, without", before[key]))
        print(line(f"{key}, one run", after[key]))


if __name__ == "__main__":
    main()

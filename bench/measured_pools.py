"""Prefill apart over together, measured against predicted: python bench/measured_pools.py SERVING_MEASURED.CSV [-v].

A pair is a measured row of two pools beside the row of one pool of its model, chip, engine, format and lengths whose TPOT is nearest, at
most a quarter away. Its ratio is that of output per chip, which follows from users, TTFT and TPOT (a user asks again once answered).
Then by TPOT limit: the best measured row of two pools over the best of one, and the ratio of `plan`, which is free to choose layouts.
"""

import csv
import sys
from collections import defaultdict
from math import exp, log
from pathlib import Path

import numpy as np

import headway as hw
from headway.performance.workload import Load
from headway.serving.plan.plan import plan

NEAR = 1.25  # most ratio of the TPOT of a pair
MEAN_LENGTH = 0.9  # of the nominal lengths, which are drawn evenly from 0.8 to 1.0 of them (column notes)
CHIPS = 64  # of the machine that is planned
LIMITS_S = (0.015, 0.025, 0.035, 0.050)
MACHINES = {"B200-SXM-180GB": f"{CHIPS}xb200-sxm", "H200-SXM-141GB": f"{CHIPS}xh200-sxm"}
KEY = ("model", "hardware", "engine", "weight_precision", "isl", "osl")


def key(row):
    """What the rows of a pair share."""
    return tuple(row[name] for name in KEY)


def per_chip(row, times):
    """Output tokens per second and chip of a closed loop of users."""
    output = float(row["osl"]) * MEAN_LENGTH
    answer_s = (float(times["ttft_ms"]) + float(times["tpot_ms"]) * (output - 1)) / 1e3
    return float(row["batch_or_concurrency"]) * output / answer_s / float(row["n_chips"])


def read(path):
    """Measured rows of two pools, and of one pool with as many kinds, each beside its prediction."""
    rows = list(csv.DictReader(Path(path).read_text(encoding="utf-8").splitlines()))
    told = {row["id"]: row for row in hw.predict(path).rows()}
    timed = [(row, told[row["id"]]) for row in rows if row["tpot_ms"] and row["ttft_ms"]]
    apart = [entry for entry in timed if entry[0]["prefill_workers"] and entry[1]["tpot_ms"] is not None]
    keys = {key(row) for row, _ in apart}
    return apart, [entry for entry in timed if not entry[0]["prefill_workers"] and key(entry[0]) in keys]


def pairs(apart, together):
    """(two pools, one pool) of each pair, each a row beside its prediction."""
    for row, prediction in apart:
        alike = [(at, float(other["tpot_ms"])) for at, (other, _) in enumerate(together) if key(other) == key(row)]
        distance = {at: abs(log(tpot / float(row["tpot_ms"]))) for at, tpot in alike}
        nearest = min(distance, key=distance.get, default=None)
        if nearest is not None and distance[nearest] <= log(NEAR):
            yield (row, prediction), together[nearest]


def of_pairs(apart, together, verbose):
    """Print the error of the ratio, by chip and engine."""
    errors, ratios = defaultdict(list), defaultdict(list)
    for two, one in pairs(apart, together):
        measured, predicted = (per_chip(two[0], two[at]) / per_chip(one[0], one[at]) for at in (0, 1))
        for group in ("all", f"{two[0]['hardware']} {two[0]['engine']}"):
            errors[group].append(log(predicted / measured))
            ratios[group].append((measured, predicted))
        if verbose:
            print(f"  {two[0]['id']} over {one[0]['id']}: measured {measured:.2f}, predicted {predicted:.2f}")
    for group, logs in errors.items():
        sizes = np.abs(logs)
        measured, predicted = np.array(ratios[group]).T
        agree = ((measured > 1) == (predicted > 1)).mean()
        line = f"median error {np.expm1(np.median(sizes)):.1%}, p90 {np.expm1(np.percentile(sizes, 90)):.0%}, bias {np.median(logs):+.2f}"
        middles = f"middle ratio {np.median(measured):.2f} measured, {np.median(predicted):.2f} predicted"
        print(f"{group:34}{len(logs):4} pairs: {line}; {middles}; same side of 1 in {agree:.0%}")


def planned(kind, limit_s):
    """The ratio of output per chip that `plan` gives, with the best layouts of its own."""
    _, hardware, _, weights, prompt, output = kind
    load = Load(prompt=round(int(prompt) * MEAN_LENGTH), output=round(int(output) * MEAN_LENGTH))
    ways = [
        plan("deepseek-v3", MACHINES[hardware], load, tpot=limit_s, weights=weights, disaggregate=way, elasticities=False, frontier=False)
        for way in (True, False)
    ]
    first, second = (None if way.infeasible else way.rows()[0]["tok_per_s_chip"] for way in ways)
    return first / second if first and second else None


def of_limits(apart, together):
    """Print the ratio of the bests under TPOT limits: measured, and of a plan."""
    over = []
    kinds = sorted({key(row) for row, _ in apart} & {key(row) for row, _ in together})
    for kind in kinds:
        for limit_s in LIMITS_S:
            first, second = (
                max((per_chip(row, row) for row, _ in rows if key(row) == kind and float(row["tpot_ms"]) <= limit_s * 1e3), default=None)
                for rows in (apart, together)
            )
            ratio = planned(kind, limit_s) if first and second else None
            if ratio:
                over.append(log(ratio / (first / second)))
                print(f"{' '.join(kind[1:]):46} TPOT <= {limit_s * 1e3:.0f} ms: measured {first / second:.2f}, planned {ratio:.2f}")
    print(f"{len(over)} limits: a plan's ratio over the measured one: {exp(np.median(over)):.2f} in the middle")


if __name__ == "__main__":
    measured_rows = read(next(word for word in sys.argv[1:] if not word.startswith("-")))
    of_pairs(*measured_rows, "-v" in sys.argv)
    of_limits(*measured_rows)

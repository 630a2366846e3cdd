"""Forty drawn questions of `train`, each answer held against what was not searched by it.

Drawn with a frozen seed: model, machine or bare chip, lengths, batch, objective, deadline, budget, confidence. Checked: the first row is
the best of its table by the objective; no layout drawn from the rules alone is faster; no count of chips drawn beside the answer's keeps
the limits and is better; a missed limit is in the first sentence; each of the Helps is what its own command gives.

    python bench/train_questions.py [SEED]
"""

from __future__ import annotations

import itertools
import re
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import headway as hw
from headway.core.listing import format_value
from headway.hardware.system import system
from headway.models.config import model
from headway.training.estimate import estimate
from headway.training.recipe import Recipe, TrainingLayout, TrainingRun
from headway.training.run import USUAL, case_of
from headway.training.search import NAMES, bounds_of, legal, rows, with_recipe
from headway.training.train import TrainingQuestion, cases

QUESTIONS, LAYOUTS, COUNTS, SEED = 40, 4000, 6, 42
MODELS = ("llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "qwen3-30b-a3b", "deepseek-v3", "gpt-oss-120b", "qwen2.5-7b", "mistral-7b")
CHIPS = ("h100-sxm", "h200", "b200", "a100-sxm-80", "mi300x")
DAY = 86400.0
BETTER = 0.02  # share by which another count may be better for money or time, of which coarse counts are weighed


def draw(random: np.random.Generator) -> dict[str, Any]:
    """One question as keywords of hw.train."""
    name, chip = str(random.choice(MODELS)), str(random.choice(CHIPS))
    count, seq = 8 * 2 ** int(random.integers(1, 9)) + 8 * int(random.integers(0, 5)), int(random.choice((2048, 4096, 8192)))
    question: dict[str, Any] = {"model": name, "on": f"{count}x{chip}", "seq": seq, "global_batch": seq * 2 ** int(random.integers(6, 12))}
    question["tokens"] = f"{int(random.integers(1, 30)) * 100}G"
    kind = random.choice(("step", "cost", "deadline", "budget", "both", "chips"))
    if kind in ("deadline", "both"):
        question["deadline"] = f"{int(random.choice((5, 15, 30, 90, 200)))}d"
    if kind in ("budget", "both"):
        question["budget"] = f"{int(random.choice((50, 300, 1000, 5000)))}kUSD"
    if kind in ("cost", "chips"):
        question["objective"] = str(kind)
    if kind in ("deadline", "budget", "both") and random.random() < 0.5:
        question["on"] = chip
    if kind in ("deadline", "budget", "both") and random.random() < 0.3:
        question["confidence"] = float(random.choice((0.5, 0.9)))
    return question


def command(question: dict[str, Any]) -> str:
    """The question as people type it."""
    flags = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in question.items() if name != "model")
    return f"train {question['model']} {flags}"


def objective(question: dict[str, Any]) -> str:
    """The column that is made least."""
    word = question.get("objective") or ("chips" if "deadline" in question else "step")
    return {"step": "run_s", "chips": "chips", "cost": "run_usd"}[word]


def ask(question: dict[str, Any], **values: Any) -> Any:
    """The answer to a question with some values changed."""
    question = question | values
    return hw.train(question["model"], question["on"], **{name: value for name, value in question.items() if name not in ("model", "on")})


def faults(question: dict[str, Any], random: np.random.Generator, tally: Counter[str]) -> Iterator[str]:
    """What is wrong with an answer."""
    found = ask(question)
    table = list(found)
    best, key = table[0], objective(question)
    over = best["kind"] == "over a limit"
    tally["missed" if over else best["kind"]] += 1
    keeping = [row for row in table if row["kind"] in ("best", "next", "ladder") and "misses" not in row["why"]]
    if best["kind"] == "best" and min(row[key] for row in keeping) < best[key] * (1 - 1e-9):
        yield f"a row of the table has a better {key}"
    if over != ("misses the" in found.answer) or (over and "chance" not in found.answer):
        yield f"the first sentence does not say what is missed: {found.answer}"
    if len({tuple(row[name] for name in ("chips", "recompute", *NAMES)) for row in table}) < len(table):
        yield "two rows are one layout"
    if best["fits"]:
        yield from _faster(question, best, random)
    if best["kind"] == "best":
        yield from _counts(question, best, key, random, tally)
    yield from _helps(question, found, tally)


def _faster(question: dict[str, Any], best: dict[str, Any], random: np.random.Generator) -> Iterator[str]:
    """Legal layouts drawn from the rules alone that are faster on the chips of the answer."""
    run = {name: question[name] for name in ("seq", "global_batch")}
    whole = system(question["on"])
    machine = whole if best["system"] == whole.name else system(f"{best['chips']}x{whole.chip.name}")
    request = cases([model(question["model"])], [machine], TrainingQuestion(records={TrainingRun: run, Recipe: {}}))[0]
    case = case_of(request)
    of, powers = bounds_of(request.model, case), 2 ** random.integers(0, 12, size=(LAYOUTS, len(NAMES)))
    columns = {name: powers[:, place] for place, name in enumerate(NAMES)} | {"cp": np.ones(LAYOUTS, int), "zero": 1 + powers[:, 7] % 3}
    drawn = TrainingLayout(**columns)
    found = rows(drawn, np.flatnonzero(legal(drawn, of) & (drawn.tp <= int(case.system.scale_up_domain))))
    for mode, schedule in itertools.product(USUAL, ("1f1b", "interleaved")):
        some = rows(found, np.flatnonzero((found.vpp > 1) == (schedule == "interleaved")))
        if len(some.tp):
            numbers = estimate(with_recipe(case, request.model, replace(case.recipe, recompute=mode, schedule=schedule)), some)
            step = float(np.where(numbers.fits, numbers.time.step, np.inf).min())
            if step < best["step_s"] * (1 - 1e-9):
                yield f"a drawn layout takes {step:.3f} s, the best {best['step_s']:.3f} s"


def _counts(question: dict[str, Any], best: dict[str, Any], key: str, random: np.random.Generator, tally: Counter[str]) -> Iterator[str]:
    """Counts of chips drawn up to twice the answer's that keep the limits and are better."""
    if not ({"deadline", "budget", "objective"} & set(question)):
        return
    machine = system(question["on"])
    most = 4 * best["chips"] if not machine.fixed_count else int(machine.chips)
    counts = {8 * int(random.integers(1, max(most // 8, 1) + 1)) for _ in range(COUNTS)} | {best["chips"] // 2, best["chips"] - 8}
    for chips in sorted(count for count in counts if 0 < count <= most and count != best["chips"]):
        limits = {name: value for name, value in question.items() if name not in ("objective", "on")}
        row = next(iter(ask(limits, on=f"{chips}x{machine.chip.name.lower().replace('_', '-')}")))
        tally["counts"] += 1
        if row["kind"] == "best" and row[key] < best[key] * (1 - (0 if key == "chips" else BETTER)):
            tally["counts better"] += 1
            yield f"{chips} chips have {key} {row[key]:.6g}, the answer's {best['chips']} have {best[key]:.6g}"


def _helps(question: dict[str, Any], found: Any, tally: Counter[str]) -> Iterator[str]:
    """Helps whose command gives another run than they print."""
    for change in found.helps:
        flags = re.search(r"\((--.+)\)$", change.change)
        values: dict[str, Any] = {}
        words = shlex.split(flags[1]) if flags else []
        for name, value in zip(words[::2], words[1::2], strict=True):
            key = name.removeprefix("--").replace("-", "_")
            values[key] = (*values.get(key, ()), value) if key == "set" else tuple(map(int, value.split(","))) if key == "cp" else value
        row = next(iter(ask(question, **values)))
        printed = re.search(r"-> ([^,]+)", change.effect)
        tally["helps"] += 1
        if not printed or printed[1] != format_value(row["run_s"], "s"):
            yield f"{change.change} prints {change.effect}; its command gives {format_value(row['run_s'], 's')}"


def main(seed: int = SEED) -> int:
    """Print each question with its faults, and how many there are."""
    random, wrong, tally = np.random.default_rng(seed), 0, Counter[str]()
    for number in range(1, QUESTIONS + 1):
        question, start = draw(random), time.process_time()
        try:
            reasons = list(faults(question, random, tally))
        except hw.HeadwayError as error:
            reasons, tally["refused"] = [f"refused: {error}"], tally["refused"] + 1
        wrong += bool(reasons)
        print(f"{number:2} {time.process_time() - start:5.1f} s  {command(question)}")
        for reason in reasons:
            print(f"      {reason}")
    print(f"{wrong} of {QUESTIONS} questions with a fault; " + ", ".join(f"{name} {count}" for name, count in tally.items()))
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main(*map(int, sys.argv[1:])))

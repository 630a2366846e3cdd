"""README's plan and 20 drawn problems, prefill apart and together: auto against the better of both, rows below the best, CPU time.

`python bench/both_ways.py [PROBLEMS]`; problems are drawn by a frozen seed.
"""

import random
import sys
import time

from headway.core.errors import HeadwayError
from headway.performance.workload import Load
from headway.serving.plan.plan import plan, row_cost

SEED, PROBLEMS = 20261126, 20
MODELS = ("deepseek-v3", "llama-3.1-70b", "qwen3-235b-a22b", "gpt-oss-120b", "qwen3-32b", "llama-3.1-8b", "qwen3-30b-a3b", "kimi-k2")
MACHINES = ("gb200-nvl72", "8xh200-sxm", "16xh100-sxm", "8xb200", "8xmi300x", "4xl40s", "32xh800-sxm", "2xh100-sxm")
READMES = ("deepseek-v3", "gb200-nvl72", {"prompt": 8000, "output": 1000}, {"ttft": 2.0, "tpot": 0.05}, "cost")


def drawn(count):
    """README's problem and others: model, machine, lengths, limits, objective."""
    dice = random.Random(SEED)
    problems = [READMES]
    while len(problems) <= count:
        lengths = {"prompt": round(10 ** dice.uniform(2, 4.5)), "output": round(10 ** dice.uniform(1, 3.5))}
        limits = {"tpot": dice.choice((None, 0.02, 0.05, 0.1)), "ttft": dice.choice((None, 0.5, 2.0))}
        limits["e2e"] = dice.choice((None, None, 30.0))
        problem = dice.choice(MODELS), dice.choice(MACHINES), lengths, limits, dice.choice(("cost", "cost", "throughput", "latency"))
        if holds(problem):
            problems.append(problem)
    return problems


def holds(problem):
    """Whether one pool or two keep the limits: others have no best."""
    try:
        return not planned(problem, "auto", elasticities=False, frontier=False)[0].fails
    except HeadwayError:
        return False


def planned(problem, way, **sections):
    """A plan, and the CPU seconds that it takes."""
    model, machine, lengths, limits, objective = problem
    start = time.process_time()
    answer = plan(model, machine, Load(**lengths), **limits, objective=objective, disaggregate=way, **sections)
    return answer, time.process_time() - start


def badness(answer):
    """The objective of a plan that keeps its limits, less is better; infinite for one that does not."""
    if answer.fails:
        return float("inf")
    return answer.answer["value"] * (-1 if answer.objective in ("throughput", "latency") else 1)


def below(answer):
    """Rows that keep every limit and are better by the objective than the first."""
    keys = {"cost": row_cost, "throughput": lambda row: -row["tok_per_s_chip"], "latency": lambda row: -(row["tok_per_s_user"] or 0)}
    key, rows = keys[answer.objective], answer.rows()
    kept = [row for row in rows if row["kind"] in ("together", "apart", "frontier") and row["fits"] and not row["why"]]
    return [row for row in kept if key(row) < key(rows[0]) - 1e-9 * abs(key(rows[0]))]


def main():
    """A line for each problem, and what all of them come to."""
    times, missed, lower = {"auto": 0.0, "never": 0.0}, 0, 0
    for problem in drawn(int(sys.argv[1]) if len(sys.argv) > 1 else PROBLEMS):
        for way in times:
            planned(problem, way)  # caches of the model and the machine
            times[way] += planned(problem, way)[1]
        answers = {way: planned(problem, way)[0] for way in ("auto", "never", "only")}
        best = min(badness(answers["never"]), badness(answers["only"]))
        missed += abs(badness(answers["auto"]) - best) > 1e-9 * abs(best)
        lower += len(below(answers["auto"]))
        way = "apart" if answers["auto"].best.prefill is not None else "together"
        other = next((row["gain"] for row in answers["auto"].rows() if row["kind"] in ("together", "apart")), None)
        print(f"{way:8}  {'-' if other is None else f'{other:.3g}':>5} times  {problem}", flush=True)
    print(f"not the better of both: {missed}; rows below the best: {lower}; CPU of auto over never: {times['auto'] / times['never']:.2f}")


if __name__ == "__main__":
    main()

"""Sentences and Helps of `serve` beside what their own commands print: python bench/drawn_helps.py [HOW MANY] [SEED].

Each draw is a machine with a layout that engines load, a model of the catalogue, formats and a load; some sweep one input. Of a point each
Help is asked as the command that it names: the figures that it prints must be those, and better; of a sweep the sentence's winner must be
the best row that the table prints. The exit status is 1 where one differs.
"""

import random
import shlex
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from headway.models.config import catalogue_index
from support.command import Answer
from support.helps import checked_serve, checked_winner

ONE = ("h100-sxm", "l40s", "a100-sxm", "dgx-spark-gb10", "rtx-4090")
MACHINES = (*ONE, "2xh100-sxm", "8xh100-sxm", "4xl40s", "8xh200-sxm", "8xb200-sxm", "8xmi300x")


def drawn(rng, names):
    """A command of `serve`, and whether it sweeps an input."""
    machine = rng.choice(MACHINES)
    chips = int(machine.split("x")[0]) if machine[0].isdigit() else 1
    flags = {"--tp": str(rng.choice([degree for degree in (1, 2, 4, 8) if degree <= chips]))}
    load = rng.choice(("context", "lengths", "lengths", "rate"))
    prompt, output = str(int(10 ** rng.uniform(1.5, 4))), str(int(10 ** rng.uniform(0, 3)))
    if load == "context":
        flags |= {"--context": str(int(10 ** rng.uniform(2, 5)))}
    else:
        flags |= {"--prompt": prompt, "--output": output}
    flags |= {"--rate": f"{10 ** rng.uniform(-1, 2):.3g}"} if load == "rate" else {"--batch": str(int(10 ** rng.uniform(0, 2.3)))}
    if rng.random() < 0.3:
        flags["--weights"] = rng.choice(("fp8", "int4", "bf16"))
    if rng.random() < 0.3:
        flags["--kv"] = rng.choice(("fp8", "bf16"))
    sweeps = rng.random() < 0.4
    if sweeps:
        axis = rng.choice([name for name in ("--batch", "--rate", "--context") if name in flags])
        flags[axis] = ",".join(f"{float(flags[axis]) * factor:.6g}" for factor in (1, 3, 10))
    words = ["serve", rng.choice(names), "--on", machine, *(word for pair in flags.items() for word in pair)]
    return words, sweeps


def main(count, seed):
    """Print the seed first, each case that differs, and the counts."""
    print(f"seed {seed}, {count} questions that have an answer", flush=True)
    rng, names = random.Random(seed), [row["name"] for row in catalogue_index()]
    asked = refused = helps = wrong = 0
    while asked < count:
        words, sweeps = drawn(rng, names)
        answer = Answer.of([*words, "-o", "json"])
        if answer.status:
            refused += 1
            continue
        asked += 1
        try:
            if sweeps:
                helps += checked_winner(shlex.join(words), answer.json)
            else:
                helps += checked_serve(words, answer.json["rows"][0], answer.json["helps"])
        except AssertionError as difference:
            wrong += 1
            print("DIFFERS", shlex.join(words), str(difference)[:400].replace("\n", " "), flush=True)
    print(f"{count - wrong} of {count} as their own commands print, with {helps} Helps; {refused} questions were refused")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 500, int(sys.argv[2]) if len(sys.argv) > 2 else 20261130))

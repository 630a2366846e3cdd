"""Measured files with one spoiled cell, thousands of them: no traceback, no hang, no NaN, and a bad line changes nothing but the notes.

python bench/fuzz_files.py [CASES] [SEED]        make fuzz: 2,500 cases; the seed is printed first and gives the same cases again
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.file_fuzz import Judge, draw, kinds

RARE = 20  # one case in so many is of a kind whose answer takes seconds


def main() -> int:
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 2500
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(10**6)
    print(f"seed {seed}, {cases} cases", flush=True)
    rng, every, start = random.Random(seed), kinds(), time.perf_counter()
    slow = [kind for kind in every if kind.name in ("prices", "sizes") or kind.name.endswith("sim")]
    quick = [kind for kind in every if kind not in slow]
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        judge = Judge(Path(folder))
        for at in range(cases):
            case = draw(rng, quick[at % len(quick)] if at % RARE else slow[at // RARE % len(slow)])
            counts[case.kind.name] += 1
            verdict = judge.verdict(case)
            if verdict:
                wrong.append(f"{case}: {verdict}")
                print(wrong[-1][:300], flush=True)
            if at % 500 == 499:
                print(f"{at + 1} cases, {len(wrong)} wrong, {time.perf_counter() - start:.0f} s", flush=True)
    for name, count in counts.items():
        print(f"{count:6d}  {name}")
    print(f"{cases} cases of {len(every)} kinds, seed {seed}: {len(wrong)} wrong, {time.perf_counter() - start:.0f} s")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

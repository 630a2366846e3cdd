"""Winners of lists beside the cheapest of their members asked alone: python bench/list_winners.py [HOW MANY] [SEED].

Each draw is a `plan` of 2 to 4 machines, of models or of formats, at a rate, for users or under limits alone, some with --launch; it is
asked in both orders, and each member alone. The exit status is 1 where one differs.
"""

import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.lists import disagreement, drawn


def main(count, seed):
    """Print the seed first, a line for each list, and the count of those that agree."""
    print(f"seed {seed}, {count} lists", flush=True)
    rng, wrong = random.Random(seed), 0
    for number in range(count):
        question = drawn(rng, loaded=rng.random() < 0.75)
        began = time.process_time()
        text = disagreement(question)
        wrong += bool(text)
        verdict = f"DIFFERS {text}" if text else " ".join(question.command(question.members)[1:-2])
        print(f"{number + 1}: {time.process_time() - began:.0f} s: {verdict}", flush=True)
    print(f"{count - wrong} of {count} winners are the cheapest of the single asks, in both orders")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 30, int(sys.argv[2]) if len(sys.argv) > 2 else 20261125))

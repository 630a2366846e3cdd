"""2,000 price sheets read backwards, one in ten with context tiers: wall time and sheets per second, and the ratio to 5 s."""

import random
import time

from headway.economics.inversion.answer import invert
from headway.economics.sheets.sheet import ContextTier, PriceSheet, Rates

BUDGET_S = 5.0
SHEETS = 2000
RUNS = 3


def sheet(number, rng):
    """A sheet with rates of the range that is sold."""
    rate = 10 ** rng.uniform(-8, -5)
    output = rate * rng.choice((1, 2, 3, 4, 5, 6, 8))
    rates = Rates(input=rate, output=output, cache_read=0.1 * rate)
    dearer = Rates(input=2 * rate, output=1.5 * output)
    tiers = (ContextTier(above=200_000, rates=dearer),) if number % 10 == 0 else ()
    return PriceSheet(provider="made", model=f"m{number}", as_of="2026-11-20", source="drawn", rates=rates, tiers=tiers, context_limit=1e6)


if __name__ == "__main__":
    rng = random.Random(1)
    sheets = [sheet(number, rng) for number in range(SHEETS)]
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        answers = invert(sheets)
        times.append(time.perf_counter() - start)
    middle = sorted(times)[RUNS // 2]
    identified = sum(row.verdict == "identified" for one in answers for row in one.rows)
    print(f"{SHEETS:,} sheets, {identified:,} quantities identified: median {middle:.2f} s of {RUNS} runs, min {min(times):.2f} s")
    print(f"{SHEETS / middle:,.0f} sheets per second")
    print(f"ratio to budget: {middle / BUDGET_S:.2f} (below 1 is within)")

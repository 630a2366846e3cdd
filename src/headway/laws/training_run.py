"""What a training run takes beside its steps: failures and restarts, money, energy."""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Joule, Number, PerSecond, Second, Usd, UsdPerSecond, Watt

YOUNG = "Young 1974, CACM 17(9); Daly 2006, FGCS 22(3): half an interval is lost with each failure"


@formula(source="definition: failures of independent chips add up")
def failure_rate(chips: Number, chip_mtbf: Second) -> PerSecond:
    """Interruptions of a run per second (Llama 3: 419 in 54 days of 16,384 chips, one chip in 51,000 h).

    >>> round(failure_rate(16384, 51000 * 3600) * 54 * 86400)
    416
    """
    return chips / chip_mtbf


@formula(source=YOUNG + ": sqrt(2 c / lambda)")
def best_interval_s(checkpoint: Second, failures: PerSecond) -> Second:
    """Time between checkpoints that loses least.

    >>> round(float(best_interval_s(60, 16384 / (51000 * 3600))) / 60)
    19
    """
    return np.sqrt(2 * checkpoint / failures)


@formula(source=YOUNG)
def goodput_share(checkpoint: Second, interval: Second, failures: PerSecond, restart: Second) -> Number:
    """Share of the wall time that advances the run: checkpoints, restarts, and work lost with each failure taken off.

    >>> round(goodput_share(60, 1160, 16384 / (51000 * 3600), 900), 3)
    0.825
    """
    return 1 / (1 + checkpoint / interval) * (1 - failures * (restart + interval / 2))


@formula(source="definition")
def wall_s(work: Second, goodput: Number) -> Second:
    """Calendar time of a run.

    >>> wall_s(80.0, 0.8)
    100.0
    """
    return work / goodput


@formula(source="definition: a system is rented whole, idle chips too")
def run_usd(price: UsdPerSecond, chips: Number, wall: Second) -> Usd:
    """Cost of a run (DeepSeek-V3: 2.788 M H800 hours at 2 USD).

    >>> round(run_usd(2 / 3600, 2048, 2.788e6 / 2048 * 3600) / 1e6, 3)
    5.576
    """
    return price * chips * wall


@formula(source="definition")
def chip_power_w(power: Watt, chips: Number) -> Watt:
    """Power of so many chips.

    >>> chip_power_w(700.0, 8)
    5600.0
    """
    return power * chips


@formula(source="definition")
def run_energy_j(power: Watt, wall: Second) -> Joule:
    """Energy of a run.

    >>> run_energy_j(5600.0, 3600) / 3.6e6
    5.6
    """
    return power * wall

"""Half of a 90 % interval as a factor: fitted, wider the less like the measured rows a question is, and under load.

One place for every verb: rows of a file (evidence/serving/predict.py) and deployments (performance/estimate.py) grow by the same shares.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from headway.core.quantity import default, known
from headway.core.units import Number
from headway.hardware.chip import Chip
from headway.laws.serving.request import interval_factor, queued_width_share, seats_width_share
from headway.performance.achieved import FLAT, Efficiencies, efficiencies
from headway.performance.assumptions import Assumptions
from headway.performance.nearest import QuestionSubject, unlike

SPREAD = default(1.6, "spread", "", FLAT)
UNLIKE, EXPERTS = "unlike", "experts"
QUEUED = "queued"  # the circumstance of TTFT alone
SLOWER = "limited"  # the circumstance that widens the slow end alone: fewer seats than predicted make nothing faster
WIDER = (UNLIKE, EXPERTS, SLOWER, QUEUED)
DISTANCE = "steps to the nearest rows of data/evidence.csv over those to a new kind"


WAITS = ("ttft",)  # quantities made of waits more than of steps: other users widen them, and neither experts nor distance does


def widens(circumstance: str, quantity: str) -> bool:
    """Whether a circumstance widens the interval of a quantity.

    >>> widens("queued", "ttft"), widens("experts", "ttft"), widens("unlike", "tpot")
    (True, False, True)
    """
    return circumstance == SLOWER or (circumstance == QUEUED) == (quantity in WAITS)


def half(table: Efficiencies, quantity: str, shares: Mapping[str, Number]) -> Any:
    """Half of an interval as a factor; `shares`: how far each circumstance holds, 0 to 1, of which some widen other quantities alone."""
    growth = [table.interval(name) ** share for name, share in shares.items() if widens(name, quantity)]
    return interval_factor(table.interval(quantity), functools.reduce(operator.mul, growth, 1))


def spread(about: QuestionSubject, assumptions: Assumptions, quantity: str, chip: Chip, seats: Number = None, queued: Number = None) -> Any:
    """Half of the 90 % interval of a quantity, as a factor: fitted; or the user's.

    `seats`, the share of the seats in use, is given for the slow end alone; `queued` is the share of a TTFT that other users add.
    """
    if assumptions.spread is not None or assumptions.overlap != "fitted":
        return SPREAD if assumptions.spread is None else assumptions.spread
    far = unlike(about)
    shares = {UNLIKE: far if np.ndim(far) else known(float(far), "unlike", "", "derived", DISTANCE)}
    shares |= {EXPERTS: known(1, "experts", "", "constant", "a model with routed experts")} if about.routed else {}
    shares |= {} if seats is None else {SLOWER: seats_width_share(seats)}
    shares |= {} if queued is None else {QUEUED: queued_width_share(queued)}
    return half(efficiencies(chip), quantity, shares)

"""One measured quantity of a run, beside its prediction and how that follows from the factors."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headway.core.units import Number
from headway.performance.calibration.key import RunKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A measured quantity, made linear about the factors that its run is best explained by."""

    run: str  # PROFILE:ID, by which answers name it
    key: RunKey
    month: str  # of the run, 2026-11 or 2026-11-20; "" where nobody says
    quantity: str  # ttft, tpot or rate; step or memory of training
    slopes: tuple[Number, ...]  # d ln(quantity) / d ln(factor), in the order of PARAMETERS
    excess: Number  # ln(measured / predicted without factors), less what the linear form misses
    aged: Number = 0.0  # ln of the prediction over that of the newest engine, of which a question is that names no version

    @property
    def over_newest(self) -> Observation:
        """The same beside a prediction of the newest engine."""
        return replace(self, excess=self.excess + self.aged, aged=0.0)


def profile_of(run: str) -> str:
    """The profile of a run by its name in observations.

    >>> profile_of("mine:a")
    'mine'
    """
    return run.partition(":")[0]


def id_of(run: str) -> str:
    """The id of a run in its profile.

    >>> id_of("mine:a")
    'a'
    """
    return run.partition(":")[2]

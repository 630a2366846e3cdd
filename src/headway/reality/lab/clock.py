"""Clocks of the experiments: this machine's, or one that a test moves."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What an experiment asks of time, in seconds from any beginning."""

    def now(self) -> float: ...
    def sleep_until(self, moment: float) -> None: ...


class RealClock:
    """This machine's clock, and real sleep."""

    def now(self) -> float:
        """Seconds of the performance counter."""
        return time.perf_counter()

    def sleep_until(self, moment: float) -> None:
        """Sleep; a moment that has passed takes no time."""
        if (seconds := moment - time.perf_counter()) > 0:
            time.sleep(seconds)


REAL = RealClock()

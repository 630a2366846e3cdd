"""Work, counted: a bound on calls holds on every machine, a bound on seconds does not."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

SUSPICIOUS_S = 2.0
MOST_CALLS = 20_000_000  # of one question


def calls(run: Callable[[], Any]) -> int:
    """How many Python functions are called while `run` runs: work that arrays do at once counts once."""
    count = 0

    def tally(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event == "call"

    previous = sys.getprofile()
    sys.setprofile(tally)
    try:
        run()
    finally:
        sys.setprofile(previous)
    return count


def bounded(run: Callable[[], Any]) -> Any:
    """What `run` gives; where it seemed long it runs again and its work is counted, so that a slow machine is no failure."""
    start = time.process_time()
    result = run()
    if time.process_time() - start > SUSPICIOUS_S:
        assert calls(run) < MOST_CALLS
    return result

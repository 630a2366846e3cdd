"""Parts that workers of the rack hold in tests; a worker imports them."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any

from headway.reality.lab.workers import WorkerDesk


@dataclass(kw_only=True)
class Sleeper:
    """A part that goes on for as long as anybody lets it."""

    def run(self, desk: WorkerDesk, request: Any) -> Any:
        time.sleep(600)


@dataclass(kw_only=True)
class Faulty:
    """A part that fails as it is asked to."""

    def run(self, desk: WorkerDesk, request: str) -> Any:
        if request == "raise":
            raise ValueError("a fault")
        if request == "end":
            os._exit(3)
        if request == "wait" and desk.rank == 0:
            return desk.bells[1].recv()
        return request

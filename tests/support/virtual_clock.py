"""A clock that a test moves: sleep takes no time."""

from __future__ import annotations


class VirtualClock:
    """Time stands still but for sleep."""

    def __init__(self) -> None:
        self.moment = 0.0

    def now(self) -> float:
        return self.moment

    def sleep_until(self, moment: float) -> None:
        self.moment = max(self.moment, moment)

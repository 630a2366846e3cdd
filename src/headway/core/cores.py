"""Cores that this process may use: those it is bound to, at most what its container grants."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path

LIMIT_FILE = "/sys/fs/cgroup/cpu.max"  # "150000 100000": a core and a half; "max 100000": no limit
OLDER_FILES = ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us")

Reader = Callable[[str], str]  # the text of a file of the system; "" where there is none


def read_system(path: str) -> str:
    """A file in which the system tells of itself; "" where it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def cores(read: Reader = read_system) -> int:
    """Cores that this process may use, a part of one counted as one."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(bound, granted(read) or bound)


def granted(read: Reader) -> int:
    """Cores that the container's limit is worth, rounded up; 0 where it has none.

    >>> granted(lambda path: "150000 100000"), granted(lambda path: "max 100000")
    (2, 0)
    """
    quota, _, period = (read(LIMIT_FILE) or " ".join(read(path).strip() for path in OLDER_FILES)).strip().partition(" ")
    return math.ceil(int(quota) / int(period)) if quota.isdigit() and period.isdigit() and int(period) else 0

"""Rules of the tests: none asserts a time, and none is given one."""

from __future__ import annotations

import re

from support.paths import TESTS

CLOCKS = re.compile(r"\b(perf_coun" r"ter|process_ti" r"me|mono" r"tonic|thread_ti" r"me)\b")
DEADLINES = re.compile(r"\bsettings\([^)]*dead" r"line=(?!None)")
COUNTED = {"support/work.py"}  # where a clock decides only whether work is counted again


def test_tests__read_no_clock() -> None:
    offenders = []
    for path in sorted(TESTS.rglob("*.py")):
        place, text = path.relative_to(TESTS).as_posix(), path.read_text(encoding="utf-8")
        if place not in COUNTED and (CLOCKS.search(text) or DEADLINES.search(text)):
            offenders.append(place)
    assert offenders == []

"""Words that no file may hold."""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path

import pytest

from support.paths import ROOT

# Spelled in two halves, so that this file does not contain them.
BANNED = {
    "the place where it was written": r"(?<![\w.\-])/wo" r"rk(?![\w])|/ro" r"ot/|(?<![\w])/tm" r"p/|\.\./sha" r"red",
    "who wrote it": r"\bhel" r"pers?\b|\bsess" r"ions?\b|\bsub" r"agents?\b",
    "unfinished work": r"\bTO" r"DO\b|\bFIX" r"ME\b|\bX" r"XX\b",
}


@functools.cache
def tracked() -> tuple[Path, ...]:
    """Every text file of the project: what git tracks, or without git what is there."""
    try:
        names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
        paths = [ROOT / name for name in names if name]
    except (OSError, subprocess.CalledProcessError):
        paths = [path for folder in ("src", "tests", "docs", "bench") for path in (ROOT / folder).rglob("*")]
        paths += list(ROOT.glob("*.*"))
    return tuple(path for path in paths if path.is_file() and path.suffix not in (".png", ".svg", ".pyc"))


@pytest.mark.parametrize("subject", BANNED)
def test_words__that_no_file_holds(subject: str) -> None:
    offenders = []
    banned = re.compile(BANNED[subject])
    for path in tracked():
        text = path.read_text(encoding="utf-8", errors="replace")
        if banned.search(text):
            lines = enumerate(text.splitlines(), 1)
            offenders += [f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}" for number, line in lines if banned.search(line)]
    assert offenders == [], f"say it in other words, or leave it out: {subject}"

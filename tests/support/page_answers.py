"""Whole answers on pages: `<!-- answer: COMMAND -->` stands above a block that shows what the command prints.

`python tests/support/page_answers.py` prints them anew after a change of numbers; a test compares.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "serve.md")
COLUMNS = 120
BLOCK = re.compile(r"(<!-- answer: (.+?) -->\n+```\n(?:\$ [^\n]*\n)?)(.*?)(```)", re.DOTALL)


def answer(command: str) -> str:
    """What a command prints, with lines of at most 120 columns."""
    from headway.cli.main import main

    printed = io.StringIO()
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(COLUMNS)
    try:
        with contextlib.redirect_stdout(printed):
            main(shlex.split(command))
    finally:
        os.environ.pop("COLUMNS") if before is None else os.environ.update(COLUMNS=before)
    lines = (folded for line in printed.getvalue().splitlines() for folded in _folded(line.rstrip()))
    return "\n".join(lines) + "\n"


def _folded(line: str) -> list[str]:
    """A line that is too long as several, those after the first below the first word of its text."""
    if len(line) <= COLUMNS:
        return [line]
    head = re.match(r"(note: |\w+: +|)", line)
    indent = " " * (head.end() if head else 0)
    return textwrap.wrap(line, COLUMNS, subsequent_indent=indent, drop_whitespace=True)


def renewed(page: Path) -> str:
    """The text of a page with every answer printed now."""
    return BLOCK.sub(lambda block: block[1] + answer(block[2]) + block[4], page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(renewed(page), encoding="utf-8")

"""Answers on pages: `<!-- answer: COMMAND -->` stands above a block that shows all that the command prints,
`<!-- answer, cut: COMMAND -->` above one that shows its sentence, three rows, what binds and what helps.

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
BLOCK = re.compile(r"(<!-- answer(?P<cut>, cut)?: (?P<command>.+?) -->\n+```\n(?:\$ [^\n]*\n)?)(?P<answer>.*?)(```)", re.DOTALL)
CUT_ROWS, CUT_HELPS = 3, 2  # of the table, of what helps


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
    head = re.match(r"(note: |\w+: +| +\d\. |)", line)
    indent = " " * (head.end() if head else 0)
    return textwrap.wrap(line, COLUMNS, subsequent_indent=indent, drop_whitespace=True, break_on_hyphens=False)


def cut(text: str) -> str:
    """The sentence, the first rows, what binds and the first of what helps of a printed answer; the last line says what is left out."""
    lines = text.splitlines()
    rule = next(at for at, line in enumerate(lines) if set(line) == {"─"})
    end = next(at for at, line in enumerate(lines) if at > rule and line.startswith(("...", "Binds:", "Helps:")))
    after = next((at for at, line in enumerate(lines) if at >= end and re.match(rf"note: | +{CUT_HELPS + 1}\. ", line)), len(lines))
    advice = [line for line in lines[end:after] if not line.startswith("...")]
    starts = [*(at for at in range(rule + 1, end) if not lines[at].startswith(" ")), end]  # a long cell takes several lines
    left_out = f"... {max(len(starts) - 1 - CUT_ROWS, 0)} more rows, and notes"
    return "\n".join([*lines[: starts[: CUT_ROWS + 1][-1]], *advice, left_out]) + "\n"


def renewed(page: Path) -> str:
    """The text of a page with every answer printed now."""

    def block(match: re.Match[str]) -> str:
        printed = answer(match["command"])
        return match[1] + (cut(printed) if match["cut"] else printed) + match[5]

    return BLOCK.sub(block, page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(renewed(page), encoding="utf-8")

"""Answers on pages: `<!-- answer: COMMAND -->` stands above a block that shows all that the command prints,
`<!-- answer, cut: COMMAND -->` above one that shows its sentence, three rows, what binds and what helps,
`<!-- answer, sentence: COMMAND -->` above one that shows its sentence alone. Tables of figures: page_figures.py.

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

from support.environment import compile_loop
from support.page_figures import FIGURES

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("tutorial", "serve", "simulator", "bill", "prices", "find", "training", "accuracy_checks")
PAGES = (ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in NAMES))
COLUMNS = 120
BLOCK = re.compile(r"(<!-- answer(?P<part>, cut|, sentence)?: (?P<command>.+?) -->\n+```\n(?:\$ [^\n]*\n)?)(?P<answer>.*?)(```)", re.DOTALL)
FIGURE_BLOCK = re.compile(r"(<!-- figures: (?P<name>.+?) -->\n\n)(.*?)(\n<!-- figures end -->)", re.DOTALL)
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
    beyond = max(len(starts) - 1 - CUT_ROWS, 0)
    left_out = f"... {beyond} more rows, and notes" if beyond else "... and notes"
    return "\n".join([*lines[: starts[: CUT_ROWS + 1][-1]], *advice, left_out]) + "\n"


def sentence(text: str) -> str:
    """The lines of a printed answer above its table."""
    lines = text.splitlines()
    rule = next((at for at, line in enumerate(lines) if set(line) == {"─"}), len(lines) + 1)
    return "\n".join(lines[: rule - 1]) + "\n"


def renewed(page: Path) -> str:
    """The text of a page with every answer printed now."""
    compile_loop()

    def block(match: re.Match[str]) -> str:
        printed = answer(match["command"])
        shown = {", cut": cut, ", sentence": sentence}.get(match["part"], str)(printed)
        return match[1] + shown + match[5]

    text = FIGURE_BLOCK.sub(lambda match: match[1] + FIGURES[match["name"]]() + match[4], page.read_text(encoding="utf-8"))
    return BLOCK.sub(block, text)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(renewed(page), encoding="utf-8")

"""Pages that a reader follows step by step: the files that they name, the commands with their answers, their Python examples."""

from __future__ import annotations

import doctest
import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.paths import ROOT

FENCE = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
FILE = re.compile(r"`([\w./-]+\.(?:toml|json|csv))`")
FILES = ("toml", "json", "csv")  # languages of the blocks that are files, each named last in the text above it


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command, and the beginning of its answer."""

    argv: tuple[str, ...]
    beginning: str


def text_of(page: str) -> str:
    """The text of a page of docs/."""
    return (ROOT / "docs" / page).read_text(encoding="utf-8")


def write_files(page: str, folder: Path) -> list[str]:
    """Write the files of a page into a folder; their names."""
    text, names, end = text_of(page), [], 0
    for fence in FENCE.finditer(text):
        if fence[1] in FILES:
            names.append(FILE.findall(text[end : fence.start()])[-1])
            path = folder / names[-1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(fence[2], encoding="utf-8")
        end = fence.end()
    return names


def steps(page: str) -> list[Step]:
    """The commands of a page."""
    listed = []
    for fence in FENCE.finditer(text_of(page)):
        if fence[1] == "console":
            for part in re.split(r"^\$ headway ", fence[2], flags=re.MULTILINE)[1:]:
                line, _, beginning = part.partition("\n")
                listed.append(Step(argv=tuple(shlex.split(line)), beginning=beginning.rstrip("\n")))
    return listed


def examples(page: str) -> doctest.DocTest:
    """The Python examples of a page, which share their names."""
    blocks = [fence[2] for fence in FENCE.finditer(text_of(page)) if fence[1] == "python"]
    return doctest.DocTestParser().get_doctest("".join(blocks), {}, page, page, 0)


def cells(notebook: str) -> list[str]:
    """The code cells of a notebook of docs/."""
    document: dict[str, Any] = json.loads(text_of(notebook))
    return ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "code"]

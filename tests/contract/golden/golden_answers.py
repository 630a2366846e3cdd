"""What a command answers, without the names that may change: run in process through `headway.cli.main.main`, as JSON and as text.

Left out on purpose, since they hold names of laws, modules or fitted keys: of explained trees all but the numbers at their leaves and how
often each is there; of `list laws` all but that it is answered; of `lecture ID` the lines under "how"; of `fit` the sections, the
keys and what they mean. Times that a run took are left out too. Of what is long the beginning is stored, and a digest of the rest.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import datetime
import hashlib
import io
import json
import math
import os
import re
import shlex
import shutil
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from headway import QUESTIONS as VERBS
from headway.cli.main import main
from headway.core.quantity import LITERALS
from headway.report import output
from support.environment import compile_loop

HERE = Path(__file__).resolve().parent
INPUTS = HERE / "inputs"
COLOURS = ("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "NO_COLOR", "HEADWAY_CATALOG", "HEADWAY_DEBUG")
TIMINGS = ("wall_s", "compile_s")
RENAMED = {"fit": ("section", "key", "meaning")}  # columns of names, by verb
HOW = "how (all of it with --explain recomputed):"
LONGEST_TEXT = 40  # letters of a cell
SHORT_TEXT = 24  # of a table within a cell
MOST_WITHIN = 10  # rows of such a table
MOST_LINES = 24  # of the text of an answer
NUMBERS = ("value", "unit", "error", "rows", "low", "high")


class Today(datetime.date):
    """A day that does not pass."""

    @classmethod
    def today(cls) -> Today:
        """The day on which the answers were stored."""
        return cls(2026, 11, 22)


def commands() -> list[str]:
    """Every command of commands.txt."""
    lines = [line.strip() for line in (HERE / "commands.txt").read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def verb_of(line: str) -> str:
    """The verb of a command; `program` where it has none."""
    word = line.split()[0]
    return word if word in VERBS else "program"


# -- running --------------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """An empty folder with inputs/ and out/ as the current one, and an environment that colours, catalogues and dates leave alone."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        shutil.copytree(INPUTS, folder / "inputs")
        (folder / "out").mkdir()
        plain = {key: value for key, value in os.environ.items() if key not in COLOURS}
        stack.enter_context(mock.patch.dict(os.environ, plain | {"XDG_CONFIG_HOME": str(folder / "none")}, clear=True))
        stack.enter_context(contextlib.chdir(folder))
        yield folder


def run(argv: list[str], heard: list[output.Answer] | None = None) -> tuple[int, str, str]:
    """Exit status, standard output, standard error; the answer that was printed is added to `heard`."""
    out, err = io.StringIO(), io.StringIO()
    write = output.write

    def hear(answer: output.Answer, how: str, command: Sequence[str]) -> None:
        write(answer, how, command)
        if heard is not None:
            heard.append(answer)

    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        stack.enter_context(mock.patch.object(output, "write", hear))
        if argv[0] == "fit":
            stack.enter_context(mock.patch("datetime.date", Today))
        status = main(argv)
    return status, out.getvalue(), err.getvalue()


def as_text(answer: output.Answer) -> str:
    """The lines of an answer for a person, without what --explain prints and notes that not every run has."""
    out, notes = io.StringIO(), [note for note in answer.notes if steady(note)]
    with contextlib.redirect_stdout(out):
        output.write(dataclasses.replace(answer, trees=None, notes=notes), "text", ())
    return out.getvalue()


def answer(line: str) -> dict[str, Any]:
    """All of one command's answer that is compared."""
    compile_loop()
    argv = shlex.split(line)
    stored: dict[str, Any] = {"status": 0}
    with workplace() as folder:
        if argv[0].startswith("-") or "-o" in argv:
            stored["status"], out, err = run(argv)
            return stored | {"text": cut(out.splitlines()), "stderr": err}
        heard: list[output.Answer] = []
        stored["status"], out, err = run([*argv, "-o", "json"], heard)
        if stored["status"] == 0:
            stored |= data(argv[0], json.loads(out))
            stored |= files(folder / "out")
        if stored["status"] == 0 and not heard[0].dialogue:  # the same answer as text: computed again it would take as long again
            text = as_text(heard[0])
        else:
            status, text, err = run(argv)
            if status != stored["status"]:
                raise AssertionError(f"{line}: exit status {stored['status']} as JSON, {status} as text")
        return stored | {"text": cut(lines_for_a_person(argv, text)), "stderr": err}


# -- from JSON ------------------------------------------------------------------------------------------------------------------


def data(verb: str, document: dict[str, Any]) -> dict[str, Any]:
    """Columns with their units, rows, notes and the leaves of trees."""
    columns, rows = document["columns"], document["rows"]
    undescribed = [key for key, column in columns.items() if not column["doc"]]
    if undescribed:
        raise AssertionError(f"declare the keys in the columns.py of the package that computes them: {', '.join(undescribed)}")
    if verb == "list" and "equation" in columns:
        return {"columns": {}, "rows": [], "notes": document["notes"]}
    keys = [key for key in columns if key not in RENAMED.get(verb, ()) + TIMINGS]
    stored: dict[str, Any] = {"columns": {key: columns[key]["unit"] for key in keys}}
    stored |= {"rows": [[slim(row[key]) for key in keys] for row in rows], "notes": [note for note in document["notes"] if steady(note)]}
    trees = {key: counted(leaves(tree)) for key, tree in document.get("explain", {}).items()}
    return stored | ({"explain": trees} if trees else {})


def steady(note: str) -> bool:
    """Whether a note says the same at every run: how long the first run on a machine compiled does not."""
    return not note.removeprefix("note: ").startswith("compiled in ")


def slim(value: Any) -> Any:
    """A cell without what makes it long: a table within it names its keys once, a long text is cut."""
    if isinstance(value, list) and value and all(isinstance(row, dict) and list(row) == list(value[0]) for row in value):
        return {"keys": list(value[0]), "rows": within([[slim(item) for item in row.values()] for row in value])}
    if isinstance(value, list):
        return [slim(item) for item in value]
    if isinstance(value, dict):
        return {key: slim(item) for key, item in value.items()}
    return f"{value[:LONGEST_TEXT]} ... {digest(value)}" if isinstance(value, str) and len(value) > LONGEST_TEXT else value


def within(rows: list[list[Any]]) -> list[list[Any]]:
    """A table within a cell: its texts cut shorter, and of a long one the first rows and the sums of the others."""
    short = [[digest(item) if isinstance(item, str) and len(item) > SHORT_TEXT else item for item in row] for row in rows]
    if len(short) <= 2 * MOST_WITHIN:
        return short
    others = zip(*short[MOST_WITHIN:], strict=True)
    sums = [math.fsum(part for part in column if isinstance(part, int | float)) for column in others]
    return [*short[:MOST_WITHIN], [f"{len(short) - MOST_WITHIN} more", *sums]]


def digest(text: str) -> str:
    """A short sum of a text: another text has another one."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def leaves(node: Any) -> Iterator[float]:
    """The numbers at the leaves of a tree in JSON: what has a kind and no equation."""
    if isinstance(node, list):
        for part in node:
            yield from leaves(part)
    elif isinstance(node, dict) and "equation" not in node and "kind" in node and "value" in node:
        value = node["value"]
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield value
    elif isinstance(node, dict):
        for part in node.values():
            yield from leaves(part)


def counted(values: Iterator[float]) -> list[list[float]]:
    """Each number once, in order, and how often it is there; without the smallest, which code writes as literals."""
    return [[value, count] for value, count in sorted(collections.Counter(map(float, values)).items()) if value not in LITERALS]


# -- from text ------------------------------------------------------------------------------------------------------------------


def lines_for_a_person(argv: list[str], text: str) -> list[str]:
    """The lines for a person, without those that name laws or fitted keys."""
    lines = [line.rstrip() for line in text.splitlines() if steady(line)]
    if argv[:2] == ["list", "laws"]:
        return []
    if argv[0] == "fit":
        return lines[:1] + [line for line in lines[1:] if line.startswith(("written:", "note:"))]
    if argv[0] == "lecture" and HOW in lines:
        start = lines.index(HOW)
        return lines[:start] + [line for line in lines[start + 1 :] if not line.startswith("  ")]
    return lines


def cut(lines: list[str]) -> list[str]:
    """The first lines, and a digest of the others; of a rule of a table how long it is."""
    plain = [f"{line[0]} x {len(line)}" if set(line) == {"\u2500"} else line for line in lines]
    rest = plain[MOST_LINES:]
    return plain[:MOST_LINES] + ([f"{len(rest)} more lines: {digest(chr(10).join(rest))}"] if rest else [])


# -- from files -----------------------------------------------------------------------------------------------------------------


def files(folder: Path) -> dict[str, Any]:
    """What a command wrote under out/: numbers of tables, size of a timeline, what a figure says."""
    stored: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.suffix in (".toml", ".csv"):
            stored[name] = entries(path)
        elif path.suffix == ".json":
            numbers = list(numbers_of(json.loads(path.read_text(encoding="utf-8"))))
            stored[name] = [[len(numbers), math.fsum(numbers)]]
        elif path.suffix == ".svg":
            drawn = path.read_text(encoding="utf-8")
            stored[name] = [["paths", drawn.count("<path")], *([text] for text in re.findall(r"<text[^>]*>([^<]*)</text>", drawn))]
    return {"files": stored} if stored else {}


def numbers_of(node: Any) -> Iterator[float]:
    """Every number of a document."""
    if isinstance(node, dict | list):
        for part in node.values() if isinstance(node, dict) else node:
            yield from numbers_of(part)
    elif isinstance(node, int | float) and not isinstance(node, bool):
        yield node


def entries(path: Path) -> list[list[Any]]:
    """The numbers of a table in file order, without keys and sections: value, unit, error, rows; of a CSV the cells of each line."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".csv":
        return [line.split(",") for line in text.splitlines()[1:]]
    return list(numbered_lines(tomllib.loads(text)))


def numbered_lines(node: Any) -> Iterator[list[Any]]:
    """Every line of a table that states a number, or a flag that an engine knows with the values it takes."""
    if isinstance(node, dict) and "value" in node:
        line = [node.get(key) for key in NUMBERS]
        while line and line[-1] is None:
            line.pop()
        yield line
    elif isinstance(node, dict) and "date" in node and "source" in node:
        yield ["flag", *node.get("values", ())]
    elif isinstance(node, dict | list):
        for part in node.values() if isinstance(node, dict) else node:
            yield from numbered_lines(part)

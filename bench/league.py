"""The league: every tool's errors on measured rows, by cluster (engine x chip x model) and by the quarter in which they were measured."""

from __future__ import annotations

import argparse
import collections
import csv
import datetime
import importlib.metadata
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import headway
from headway.evidence.rows.row import MeasuredRow, read_rows
from headway.evidence.rows.tasks import Task, tasks
from headway.evidence.serving.score import MEASURES, ORDER, UNSCORED, measure, measured, quarter

HELP = """\
A month: append its rows to a CSV with the columns of docs/measured_rows.md (`date` as YYYY-MM says the quarter), and run

  python bench/league.py serving_measured.csv new_month.csv --into docs/league.md

A tool: an adapter is a command that reads such a CSV and writes another to its output, with a line for each row that it was asked and
the columns

  id, ttft_ms, tpot_ms, output_tok_s_total, tok_s_per_chip, why

the times and rates also with _lo and _hi at the end where it gives intervals, `why` where it has no answer. Where {rows} stands in the
command, the path of the CSV is put, whose measured cells are empty. It exits with 69 where its tool is not installed. Add it by

  --tool 'aiconfigurator=OTHER_VENV/bin/python bench/league_aiconfigurator.py {rows}'   (an adapter to copy)
  --tool 'mine=cat predictions.csv'                                                        (what was computed elsewhere)

headway is one of the tools: `headway predict {rows} -o csv`. Nothing is fitted here. With --every N the other tools are asked every Nth
row only.
"""
HEADWAY = "headway"
KNOWN = ("aiconfigurator", "vidur", "genz-llm", "llm-analysis", "llmcompass")  # asked of the Python at hand where no command is given
MEASURED = ("ttft_ms", "tpot_ms", "output_tok_s_total", "input_tok_s_total", "tok_s_per_chip", "mfu", "notes")
CELLS = {"ttft": ("ttft_ms", 1e-3), "tpot": ("tpot_ms", 1e-3), "rate": ("output_tok_s_total", 1.0), "per_chip": ("tok_s_per_chip", 1.0)}
NOT_INSTALLED = 69
COMPUTES = """\
## What the others compute and headway does not

Of aiconfigurator 0.12, read in its own interface; the other tools were not here. Its column is what bench/league_aiconfigurator.py
writes: our adapter, with its defaults (a budget of one prompt of context a step, the current tables of an engine).

- Kernels measured one operation at a time on the engine's own version (vLLM 0.24, SGLang 0.5.14, TensorRT-LLM 1.3 in its tables), where
  headway has laws with fitted efficiencies. For an engine that is a year older than its tables this is no help.
- The power that a run draws.
- Attention and feed-forward layers of one model on machines apart.
- The files of a Dynamo deployment.

Of these rows it has no tables for consumer cards, AMD, Apple, GH200, H20 and llama.cpp, it wants a batch where an offline run says none,
and it gives no interval. Arrivals at a rate and speculation were not asked of it.
"""


HEAD = """\
# The league by date

Measured rows, and how far every tool that is here was off: by quarter, and by engine x chip x model.

Made on {day} with headway {version} by

```bash title="needs the shared file of measured rows"
{command}
```

{rows:,} rows, {count:,} measurements. Error: |predicted / measured - 1|, its median and its 90th percentile. Of quantities that follow from
each other one counts ([measured_rows](measured_rows.md)). No number is fitted here. **headway's own fit has seen these rows where they are
those of `make refit`, so that its figures on them flatter it**; left out by cluster they are in [accuracy](accuracy.md). A month that is
new to it has no such gain.
"""


@dataclass(frozen=True, slots=True)
class Point:
    """One measured quantity of one row."""

    id: str
    cluster: str
    quarter: str
    measure: str
    quantity: str
    value: float


@dataclass(frozen=True, slots=True)
class Guess:
    """A tool's prediction of a quantity."""

    expected: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Tool:
    """What a tool answered: guesses by row and quantity; the rows that it was asked; or why it is not here."""

    name: str
    guesses: Mapping[tuple[str, str], Guess]
    asked: frozenset[str]
    reasons: Mapping[str, str]
    absent: str = ""


def points(rows: Sequence[MeasuredRow]) -> Iterator[Point]:
    """Every measured quantity that counts: of those that follow from each other the first, as in `headway score`."""
    for row, task in zip(rows, tasks(rows), strict=True):
        if not isinstance(task, Task) or row.reliability == UNSCORED:
            continue
        is_load = task.rate is not None and task.concurrency is None
        cluster = " x ".join((task.setup.engine, task.setup.system.chip.name, task.setup.model.name))
        for names in MEASURES[task.kind]:
            for quantity in names:
                value = measured(row, quantity)
                if value is not None and not (is_load and quantity in ("rate", "per_chip")):
                    yield Point(row.id, cluster, quarter(row) or "undated", measure(task.kind, quantity), quantity, value)
                    break


def ask(name: str, command: str, rows: Path) -> Tool:
    """The answers of a tool, run on the rows."""
    argv = [word.replace("{rows}", str(rows)) for word in shlex.split(command)]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return Tool(name, {}, frozenset(), {}, f"{argv[0]} is not there")
    if done.returncode == NOT_INSTALLED:
        return Tool(name, {}, frozenset(), {}, done.stderr.strip() or "not installed")
    lines = list(csv.DictReader(done.stdout.splitlines()))
    if not lines or "id" not in lines[0]:
        raise SystemExit(f"{name}: wrote no CSV with a column id (exit {done.returncode}): {done.stderr.strip()[-300:]}")
    guesses = {(line["id"], quantity): guess for line in lines for quantity, guess in _guesses(line)}
    return Tool(name, guesses, frozenset(line["id"] for line in lines), {line["id"]: line.get("why") or "" for line in lines})


def _guesses(line: Mapping[str, str]) -> Iterator[tuple[str, Guess]]:
    for quantity, (column, unit) in CELLS.items():
        value, low, high = (float(text) * unit if (text := line.get(column + end) or "") else None for end in ("", "_lo", "_hi"))
        if value is not None and value > 0:
            yield quantity, Guess(value, low, high)


def figures(members: Iterable[Point], tool: Tool) -> tuple[str, str, str, str, str]:
    """Of these measurements: answered, without an answer, median and p90 of the absolute error, share within the tool's interval."""
    asked = [point for point in members if point.id in tool.asked]
    pairs = [(point, guess) for point in asked if (guess := tool.guesses.get((point.id, point.quantity)))]
    if not pairs:
        return "0", str(len(asked)), "-", "-", "-"
    errors = np.abs([guess.expected / point.value - 1 for point, guess in pairs])
    inside = [guess.low <= point.value <= guess.high for point, guess in pairs if guess.low is not None and guess.high is not None]
    coverage = f"{np.mean(inside):.0%}" if inside else "none given"
    return str(len(pairs)), str(len(asked) - len(pairs)), f"{np.median(errors):.1%}", f"{np.quantile(errors, 0.9):.0%}", coverage


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *lines)) + "\n"


FIGURES = ("tool", "rows", "no answer", "median", "p90", "in its interval")


def by(members: Sequence[Point], tools: Sequence[Tool], *fields: str, least: int = 1) -> Iterator[list[str]]:
    """Lines of a table: the groups by these fields, the last `measure`, the newest quarter first; one for each tool that was asked."""
    groups: dict[tuple[str, ...], list[Point]] = collections.defaultdict(list)
    for point in members:
        groups[tuple(getattr(point, field) for field in fields)].append(point)
    order = sorted(groups, key=lambda key: (*key[:-1], ORDER.index(key[-1])))
    if fields[0] == "quarter":
        order = sorted(order, key=lambda key: key[0].replace("undated", ""), reverse=True)
    for key in order:
        for tool in tools:
            if len(groups[key]) >= least and any(point.id in tool.asked for point in groups[key]):
                yield [*key, tool.name, *figures(groups[key], tool)]


def common(members: Sequence[Point], tools: Sequence[Tool]) -> list[Point]:
    """The measurements that every tool answers."""
    return [point for point in members if all((point.id, point.quantity) in tool.guesses for tool in tools)]


def unable(members: Sequence[Point], tool: Tool) -> Iterator[list[str]]:
    """Why a tool has no answer, the most frequent first."""
    counts: dict[str, int] = collections.defaultdict(int)
    for name in {point.id for point in members if point.id in tool.asked and (point.id, point.quantity) not in tool.guesses}:
        counts[tool.reasons[name][:110] or "answers another quantity of the row"] += 1
    for why, count in sorted(counts.items(), key=lambda item: -item[1])[:8]:
        yield [tool.name, str(count), why.replace("|", "/")]


def left_out(rows: Sequence[MeasuredRow]) -> Iterator[list[str]]:
    """Rows that are in no table: what headway cannot set up, so that no measure of theirs is known, and those that never count."""
    reasons = [task.why for task in tasks(rows) if not isinstance(task, Task) and task.row.reliability != UNSCORED]
    for why, count in collections.Counter(why[:110] for why in reasons).most_common(8):
        yield [HEADWAY, str(count), why.replace("|", "/")]
    yield ["none", str(sum(row.reliability == UNSCORED for row in rows)), f"reliability {UNSCORED}, which is never scored"]


def _section(title: str, fields: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return f"## {title}\n\n" + table((*fields, *FIGURES), lines)


def page(rows: Sequence[MeasuredRow], tools: Sequence[Tool], command: str, least: int, every: int) -> str:
    """The league as a page."""
    members = list(points(rows))
    here, absent = [tool for tool in tools if not tool.absent], [tool for tool in tools if tool.absent]
    others = [tool for tool in here if tool.name != HEADWAY]
    both = common(members, here) if others else []
    late = f"The others were asked every {every}th row.\n" if every > 1 and others else ""
    parts = [
        HEAD.format(day=datetime.date.today(), version=headway.__version__, command=command, rows=len({point.id for point in members}),
                    count=len(members)) + late + "".join(f"\nNot here: {tool.name} ({tool.absent}).\n" for tool in absent),
        _section("All rows", ("measured",), by(members, here, "measure")),
    ]  # fmt: skip
    if others:
        parts.append(_section(f"Rows that all of them answer: {len(both):,} measurements", ("measured",), by(both, here, "measure")))
    parts.append(_section("By quarter, the newest first", ("quarter", "measured"), by(members, here, "quarter", "measure")))
    if others:
        parts.append(_section("By quarter, rows that all answer", ("quarter", "measured"), by(both, here, "quarter", "measure")))
    lines = by(members, here, "quarter", "cluster", "measure", least=least)
    parts.append(_section(f"By cluster and quarter, {least} measurements and more", ("quarter", "cluster", "measured"), lines))
    reasons = [line for tool in here for line in unable(members, tool)]
    parts.append("## Rows without an answer\n\n" + table(("tool", "rows", "why"), reasons))
    parts.append("## Rows that no table above has\n\n" + table(("tool", "rows", "why"), left_out(rows)) + "\n" + COMPUTES)
    return "\n".join(parts)


def without_measurements(paths: Sequence[str], into: Path, every: int = 1) -> Path:
    """All rows in one CSV, every Nth of them, their measured cells empty: no tool sees what it is asked."""
    rows = [row for path in paths for row in csv.DictReader(Path(path).read_text(encoding="utf-8").splitlines())]
    names = list(dict.fromkeys(name for row in rows for name in row))
    with into.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows({name: "" if name in MEASURED else row.get(name, "") for name in names} for row in rows[::every])
    return into


def tools_of(commands: Mapping[str, str], paths: Sequence[str], every: int) -> list[Tool]:
    """Every tool's answers; those that are known and have no command are not here."""
    with tempfile.TemporaryDirectory() as folder:
        whole = without_measurements(paths, Path(folder) / "rows.csv")
        thin = without_measurements(paths, Path(folder) / "thin.csv", every)
        tools = [ask(HEADWAY, f"{shlex.quote(sys.executable)} -m headway predict {{rows}} -o csv", whole)]
        tools += [ask(name, command, thin) for name, command in commands.items()]
    installed = {(distribution.metadata["Name"] or "").lower() for distribution in importlib.metadata.distributions()}
    for name in KNOWN:
        if name not in commands:
            why = "installed, and no --tool names its adapter" if name in installed else "not installed, no --tool names it"
            tools.append(Tool(name, {}, frozenset(), {}, why))
    return tools


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, epilog=HELP, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="+", metavar="ROWS.csv", help="measured rows, one file or several")
    parser.add_argument("--tool", action="append", default=[], metavar="NAME=COMMAND", help="another tool's adapter; may be repeated")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="ask the other tools every Nth row only, where they are slow")
    parser.add_argument("--least", type=int, default=5, metavar="N", help="print clusters of so many measurements a quarter (default 5)")
    parser.add_argument("--into", metavar="FILE.md", help="write the page there instead of printing it")
    args = parser.parse_args(argv)
    commands = dict(tool.split("=", 1) for tool in args.tool)
    rows = [row for path in args.rows for row in read_rows(path)[0]]
    words = [*(Path(path).name for path in args.rows), *(word for tool in args.tool for word in ("--tool", tool))]
    command = shlex.join(["python", "bench/league.py", *words]) + (f" --every {args.every}" if args.every > 1 else "")
    text = page(rows, tools_of(commands, args.rows, args.every), command, args.least, args.every)
    if args.into:
        Path(args.into).write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()

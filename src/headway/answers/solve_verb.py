"""`solve` of any verb that prints numbers: its command is answered again and again with other values of one input.

The output is read from the first row, or from the first that meets --where. Only `serve` has a search of its own (answers/solve.py).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

from headway.core import columns, units
from headway.core.errors import BadValue, HeadwayError, UnknownName
from headway.core.listing import Listing, clean
from headway.core.question import Question
from headway.core.schema import Field
from headway.core.table import Axis, Table
from headway.hardware.edit import editable
from headway.report import output
from headway.serving.questions import OF_SOLVE
from headway.serving.solve import Condition, SolveInput, scan, solve

Evaluate = Callable[..., dict[str, Any] | None]  # value of the input, and whether an error is told -> the first row of the answer
COUNT_NAMES = ("N", "TOKENS")  # what whole numbers are called in the help of a flag that declares none
POINTS, POINTS_SLOW = 80, 12  # of the first scan: of a closed form, of a search or simulation
SLOW = ("plan", "train", "sim", "price", "speed", "cache")
CLOSE, CLOSE_SLOW = 1e-12, 1e-6
# Search range by unit, where the command gives none.
RANGES = {
    "": (1e-3, 1e6), "token": (1.0, 1e15), "byte": (1.0, 1e18), "byte/s": (1e6, 1e16), "flop/s": (1e9, 1e19), "s": (1e-9, 1e9),
    "USD/s": (1e-8, 1e-1), "USD": (1e-6, 1e12), "token/s": (1e-3, 1e12), "1/s": (1e-3, 1e6),
}  # fmt: skip
SHARE = (1e-3, 1.0)


def run(args: Any) -> output.Answer:
    """Answer with the rows at each crossing and its neighbours."""
    if args.of == "law":
        name = args.for_.strip().replace("-", "_")
        return args.question(for_=name, so_that=args.so_that.partition("=")[2] or args.so_that).answer()
    sought, evaluate = _input(args)
    name, target, right = _output(args, evaluate, sought)
    at = _table(evaluate, sought.name, name, right)
    solution = solve(at, sought, Condition(name, right or args.so_that.partition("=")[2].strip(), target))
    rows = [_row(mark, sought, evaluate) for mark in solution.table.rows()]
    where = " and at ".join(_text(row["solution"], sought) for row in rows if row["is"] == "crossing")
    headline = f"{args.so_that.strip()} at {sought.name} = {where}." if where else solution.sentence
    people = [{"is": row["is"], sought.name: _text(row["solution"], sought), **_cells(row, (name, right))} for row in rows]
    note = f"the first row of `{args.of}` is solved for" + (f", of those with {args.where}" if args.where else "")
    about = {
        "for": columns.Column("", "the input that is solved for"),
        "is": columns.Column("", "crossing, or the value below or above it"),
    }
    about["solution"] = columns.Column(sought.unit or "", f"value of {sought.name}")
    return output.Answer(Listing(rows, (note,)), output.Summary(headline, (), (), Listing(people)), columns=about)


def _cells(row: dict[str, Any], keys: Sequence[str]) -> dict[str, str]:
    return {key: units.show(row.get(key), columns.unit(key), 4) for key in keys if key and not isinstance(row.get(key), str)}


def _text(value: float, sought: Any) -> str:
    return f"{value:,.7g}" if sought.unit in ("", "token") else units.show(value, sought.unit or "", 6)


# -- the input ------------------------------------------------------------------------------------------------------------------


def _input(args: Any) -> tuple[Any, Evaluate]:
    """The input to search, and the first row of the verb's answer at a value of it."""
    name, _, span = args.for_.partition("=")
    name = name.strip().replace("-", "_")
    flags = args.target.flags()
    flag = flags.get(name)
    flag = flag if flag is not None and flag.spellings and name not in OF_SOLVE else None
    if "." in name:
        if name not in editable():
            raise UnknownName("input to solve for", name, editable())
        field = editable()[name]
    elif flag is not None:
        is_declared = flag.field.is_number or flag.field.choices
        field = flag.field if is_declared else Field(_unit_of(flag.field.word), integer=flag.field.word in COUNT_NAMES)
    elif "values" in flags:
        field = Field()
    else:
        known = [key for key, field_flag in flags.items() if field_flag.spellings]
        raise UnknownName("input to solve for", name, known, f"a flag of {args.of}, or a fact such as chip.hbm_bw")
    if field.choices:
        raise BadValue("--for", name, "an input that is a number")
    typed = getattr(args, name) if flag is not None and not flag.into and isinstance(getattr(args, name), str) else None
    low, high = _range(span or (typed if typed and ".." in typed else ""), field, name)
    slow = args.of in SLOW
    is_count = field.integer or (field.unit in ("", "token") and name in ("batch", "context", "prompt", "output"))
    sought = SolveInput(name=name, low=low, high=high, is_count=is_count, unit=field.unit, points=POINTS_SLOW if slow else POINTS,
                        close=CLOSE_SLOW if slow else CLOSE)  # fmt: skip
    return sought, _evaluator(args, sought, field, flag is not None)


def _unit_of(word: str) -> str:
    return word.lower() if word.lower() in units.SPELLINGS else ""


def _range(text: str, field: Field, name: str) -> tuple[float, float]:
    if text:
        ends = [units.parse(part, field.unit, name) for part in text.split("*")[0].split("+")[0].split("..")]
        if len(ends) != 2 or not ends[0] < ends[1]:
            raise BadValue(f"--for {name}", text, "a range such as 1..512")
        return ends[0], ends[1]
    low, high = SHARE if field.high <= 1 else RANGES.get(field.unit, RANGES[""])
    return max(low, field.low if field.low > 0 else low, 1.0 if field.integer else low), min(high, field.high)


def _evaluator(args: Any, sought: Any, field: Field, is_flag: bool) -> Evaluate:
    rows: dict[float, dict[str, Any] | None] = {}

    def evaluate(value: float, is_told: bool = False) -> dict[str, Any] | None:
        number = float(round(value)) if field.integer else value
        if number not in rows or is_told:
            rows[number] = None
            with contextlib.nullcontext() if is_told else contextlib.suppress(HeadwayError):
                rows[number] = _first(_with(args, sought.name, number, field, is_flag).answer(), args.where)
        return rows[number]

    return evaluate


def _with(args: Any, name: str, value: float, field: Field, is_flag: bool) -> Question:
    """The question of the verb with one value of the input."""
    text = str(int(value)) if field.integer else repr(value)
    text += "USD/s" if field.unit == "USD/s" else field.unit if field.bare or field.bare_least else ""
    if "." in name:
        return args.question(set=(*args.set, f"{name}={text}"))
    if is_flag:
        return args.question(**{name: text})
    words = [word for word in args.values if word.partition("=")[0].strip().replace("-", "_") != name]
    return args.question(values=(*words, f"{name}={text}"))


def _first(answer: output.Answer, where: str | None) -> dict[str, Any] | None:
    rows = answer.rows.where(where) if where else answer.rows
    return next((clean(row) for row in rows), None)


# -- the output -----------------------------------------------------------------------------------------------------------------


def _output(args: Any, evaluate: Evaluate, sought: Any) -> tuple[str, float | None, str]:
    """Output, its target as a number or the other output that it should equal."""
    name, equals, right = (part.strip() for part in args.so_that.replace("==", "=").partition("="))
    name, right_key = name.replace("-", "_"), right.replace("-", "_")
    if not equals or not name or not right:
        raise BadValue("--so-that", args.so_that, "OUTPUT=VALUE or OUTPUT=OUTPUT, such as tpot_s=20ms or compute_s=memory_s")
    points = scan(sought)
    middle = [points[index] for index in sorted(range(len(points)), key=lambda index: abs(index - len(points) // 2))]
    row = next((row for row in map(evaluate, middle) if row is not None), None)
    if row is None:
        evaluate(math.sqrt(sought.low * sought.high), is_told=True)  # its own error says what is wrong with the rest of the command
        raise BadValue("--for", sought.name, f"a command of `{args.of}` that has an answer in its range")
    numbers = {key for key, value in row.items() if not isinstance(value, str | list | dict | bool)}
    if name not in numbers:
        raise UnknownName("output", name, numbers, f"a number that `{args.of}` prints")
    if right_key in numbers:
        return name, None, right_key
    return name, units.parse(right, columns.unit(name), f"--so-that {name}"), ""


def _table(evaluate: Evaluate, sought: str, name: str, right: str) -> Callable[[Sequence[float]], Any]:
    import numpy as np

    def cell(row: dict[str, Any] | None, key: str) -> float:
        value = None if row is None else row.get(key)
        return math.nan if value is None else float(value)

    def at(values: Sequence[float]) -> Any:
        rows = [evaluate(float(value)) for value in values]
        cells = {key: np.array([cell(row, key) for row in rows]) for key in (name, right) if key}
        return Table((Axis(sought, list(values)),), {sought: np.array(values, float), **cells})

    return at


def _row(mark: dict[str, Any], sought: Any, evaluate: Evaluate) -> dict[str, Any]:
    return {"for": sought.name, "is": mark["is"], "solution": mark["solution"], **(evaluate(float(mark["solution"])) or {})}

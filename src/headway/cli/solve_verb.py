"""`solve` of any verb that prints numbers: its command is answered again and again with other values of one input.

The output is read from the first row, or from the first that meets --where. Only `serve` has a search of its own (cli/solve.py).
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

from headway.cli.flag_use import Arguments
from headway.core import columns, units
from headway.core.errors import BadValue, HeadwayError, UnknownName
from headway.core.listing import Listing, clean
from headway.core.schema import Field
from headway.report import output

# They compute no number from an input.
SKIPPED = ("solve", "list", "show", "trend", "fit", "lecture", "predict", "score", "new", "web", "mcp")
OWN_FLAGS = ("--for", "--so-that", "--find")  # the question of a verb that has a search of its own: here it is solve's
COUNT_NAMES = ("N", "TOKENS")  # what whole numbers are called in the help of a flag
POINTS, POINTS_SLOW = 80, 12  # of the first scan: of a closed form, of a search or simulation
SLOW = ("plan", "train", "sim", "price", "speed", "cache")
CLOSE, CLOSE_SLOW = 1e-12, 1e-6
# Search range by unit, where the command gives none.
RANGES = {
    "": (1e-3, 1e6), "token": (1.0, 1e15), "byte": (1.0, 1e18), "byte/s": (1e6, 1e16), "flop/s": (1e9, 1e19), "s": (1e-9, 1e9),
    "USD/s": (1e-8, 1e-1), "USD": (1e-6, 1e12), "token/s": (1e-3, 1e12), "1/s": (1e-3, 1e6),
}  # fmt: skip
SHARE = (1e-3, 1.0)


def verbs() -> dict[str, str]:
    """Verbs that can be solved, each with its module."""
    from headway.cli.main import VERBS

    return {name: module for name, (module, _) in VERBS.items() if name not in SKIPPED}


def add_flags(parser: Any, argv: Sequence[str]) -> None:
    """Flags of the verb that the command line names first; those of serve where it names none."""
    known = verbs()
    name = next((word for word in argv if not word.startswith("-")), "serve")
    if name not in known and argv and not argv[0].startswith("-"):
        raise UnknownName("verb to solve", name, known, "one of " + ", ".join(known))
    module: Any = importlib.import_module(known.get(name, known["serve"]))
    module.add_flags(_WithoutQuestion(parser, parser))
    parser.inputs = {action.dest: action for action in parser._actions}
    parser.set_defaults(inputs=parser.inputs)


class _WithoutQuestion:
    """A parser, or a group of its flags, without those that solve has itself."""

    def __init__(self, parser: Any, target: Any) -> None:
        object.__setattr__(self, "parser", parser)
        object.__setattr__(self, "target", target)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.target, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.target, name, value)

    def add_argument_group(self, title: str) -> Any:
        """A group of flags."""
        return _WithoutQuestion(self.parser, self.target.add_argument_group(title))

    def add_argument(self, *flags: str, **settings: Any) -> Any:
        """A flag; one of solve's own keeps its default alone, which the verb reads."""
        if not set(flags) & set(OWN_FLAGS):
            return self.target.add_argument(*flags, **settings)
        self.parser.set_defaults(**{settings.get("dest") or flags[0][2:].replace("-", "_"): settings.get("default")})
        return argparse.Action(flags, settings.get("dest") or "")


def run(args: Any) -> output.Answer:
    """Answer with the rows at each crossing and its neighbours."""
    from headway.serving.solve import Condition, solve

    module: Any = importlib.import_module(verbs()[args.verb])
    if args.verb == "law":
        name = args.sought.strip().replace("-", "_")
        result = args.wanted.partition("=")[2] or args.wanted
        return module.run(Arguments(**vars(args) | {"sought": name, "wanted": result}))
    sought, evaluate = _input(args, module)
    name, target, right = _output(args, evaluate, sought)
    at = _table(evaluate, sought.name, name, right)
    solution = solve(at, sought, Condition(name, right or args.wanted.partition("=")[2].strip(), target))
    rows = [_row(mark, sought, evaluate) for mark in solution.table.rows()]
    where = " and at ".join(_text(row["solution"], sought) for row in rows if row["is"] == "crossing")
    headline = f"{args.wanted.strip()} at {sought.name} = {where}." if where else solution.sentence
    people = [{"is": row["is"], sought.name: _text(row["solution"], sought), **_cells(row, (name, right))} for row in rows]
    note = f"the first row of `{args.verb}` is solved for" + (f", of those with {args.where}" if args.where else "")
    args.where = None
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


def _input(args: Any, module: Any) -> tuple[Any, Callable[[float], dict[str, Any] | None]]:
    """The input to search, and the first row of the verb's answer at a value of it."""
    from headway.serving.solve import SolveInput

    name, _, span = args.sought.partition("=")
    name = name.strip().replace("-", "_")
    action = args.inputs.get(name)
    words = args.inputs.get("values")
    if "." in name:
        from headway.hardware.edit import editable

        if name not in editable():
            raise UnknownName("input to solve for", name, editable())
        field = editable()[name]
    elif action is not None and action.option_strings:
        field = getattr(action, "field", Field(_unit_of(action), integer=action.metavar in COUNT_NAMES))
    elif words is not None:
        field = Field()
    else:
        flags = [key for key, flag in args.inputs.items() if flag.option_strings]
        raise UnknownName("input to solve for", name, flags, f"a flag of {args.verb}, or a fact such as chip.hbm_bw")
    if field.choices:
        raise BadValue("--for", name, "an input that is a number")
    typed = getattr(args, name, None) if action is not None and isinstance(getattr(args, name, None), str) else None
    low, high = _range(span or (typed if typed and ".." in typed else ""), field, name)
    slow = args.verb in SLOW
    unit = field.unit
    is_count = field.integer or (unit in ("", "token") and name in ("batch", "context", "prompt", "output"))
    sought = SolveInput(name=name, low=low, high=high, is_count=is_count, unit=unit, points=POINTS_SLOW if slow else POINTS,
                        close=CLOSE_SLOW if slow else CLOSE)  # fmt: skip
    return sought, _evaluator(args, module, sought, field, action)


def _unit_of(action: Any) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    return metavar.lower() if metavar.lower() in units.SPELLINGS else ""


def _range(text: str, field: Field, name: str) -> tuple[float, float]:
    if text:
        ends = [units.parse(part, field.unit, name) for part in text.split("*")[0].split("+")[0].split("..")]
        if len(ends) != 2 or not ends[0] < ends[1]:
            raise BadValue(f"--for {name}", text, "a range such as 1..512")
        return ends[0], ends[1]
    low, high = SHARE if field.high <= 1 else RANGES.get(field.unit, RANGES[""])
    return max(low, field.low if field.low > 0 else low, 1.0 if field.integer else low), min(high, field.high)


def _evaluator(args: Any, module: Any, sought: Any, field: Field, action: Any) -> Callable[[float], dict[str, Any] | None]:
    rows: dict[float, dict[str, Any] | None] = {}

    def evaluate(value: float) -> dict[str, Any] | None:
        number = float(round(value)) if field.integer else value
        if number not in rows:
            rows[number] = None
            with contextlib.suppress(HeadwayError):
                rows[number] = _first(module.run(_with(args, sought.name, number, field, action)), args.where)
        return rows[number]

    return evaluate


def _with(args: Any, name: str, value: float, field: Field, action: Any) -> Arguments:
    """Arguments of the verb with one value of the input."""
    text = str(int(value)) if field.integer else repr(value)
    text += "USD/s" if field.unit == "USD/s" else field.unit if field.bare or field.bare_least else ""
    changed = dict(vars(args)) | {"explain": None, "plot": None}
    if "." in name:
        changed["set"] = [*args.set, f"{name}={text}"]
    elif action is not None and action.option_strings:
        changed[name] = text
    else:
        words = [word for word in args.values if word.partition("=")[0].strip().replace("-", "_") != name]
        changed["values"] = [*words, f"{name}={text}"]
    return Arguments(**changed)


def _first(answer: output.Answer, where: str | None) -> dict[str, Any] | None:
    rows = answer.rows.where(where) if where else answer.rows
    return next((clean(row) for row in rows), None)


# -- the output -----------------------------------------------------------------------------------------------------------------


def _output(args: Any, evaluate: Callable[[float], dict[str, Any] | None], sought: Any) -> tuple[str, float | None, str]:
    """Output, its target as a number or the other output that it should equal."""
    from headway.serving.solve import scan

    name, equals, right = (part.strip() for part in args.wanted.replace("==", "=").partition("="))
    name, right_key = name.replace("-", "_"), right.replace("-", "_")
    if not equals or not name or not right:
        raise BadValue("--so-that", args.wanted, "OUTPUT=VALUE or OUTPUT=OUTPUT, such as tpot_s=20ms or compute_s=memory_s")
    points = scan(sought)
    middle = [points[index] for index in sorted(range(len(points)), key=lambda index: abs(index - len(points) // 2))]
    row = next((row for row in map(evaluate, middle) if row is not None), None)
    if row is None:
        raise _refusal(args, evaluate, sought)
    numbers = {key for key, value in row.items() if not isinstance(value, str | list | dict | bool)}
    if name not in numbers:
        raise UnknownName("output", name, numbers, f"a number that `{args.verb}` prints")
    if right_key in numbers:
        return name, None, right_key
    return name, units.parse(right, columns.unit(name), f"--so-that {name}"), ""


def _refusal(args: Any, evaluate: Callable[[float], dict[str, Any] | None], sought: Any) -> HeadwayError:
    """The verb's own error at the middle of the range; it says what is wrong with the rest of the command."""
    module: Any = importlib.import_module(verbs()[args.verb])
    action = args.inputs.get(sought.name)
    field = getattr(action, "field", Field(sought.unit or ""))
    try:
        module.run(_with(args, sought.name, math.sqrt(sought.low * sought.high), field, action))
    except HeadwayError as error:
        return error
    return BadValue("--for", sought.name, f"a command of `{args.verb}` that has an answer in its range")


def _table(evaluate: Callable[[float], dict[str, Any] | None], sought: str, name: str, right: str) -> Callable[[Sequence[float]], Any]:
    import numpy as np

    from headway.core.table import Axis, Table

    def cell(row: dict[str, Any] | None, key: str) -> float:
        value = None if row is None else row.get(key)
        return math.nan if value is None else float(value)

    def at(values: Sequence[float]) -> Any:
        rows = [evaluate(float(value)) for value in values]
        cells = {key: np.array([cell(row, key) for row in rows]) for key in (name, right) if key}
        return Table((Axis(sought, list(values)),), {sought: np.array(values, float), **cells})

    return at


def _row(mark: dict[str, Any], sought: Any, evaluate: Callable[[float], dict[str, Any] | None]) -> dict[str, Any]:
    return {"for": sought.name, "is": mark["is"], "solution": mark["solution"], **(evaluate(float(mark["solution"])) or {})}

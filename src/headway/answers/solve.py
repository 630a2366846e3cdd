"""`headway solve VERB ... --for INPUT --so-that OUTPUT=VALUE`: the input at which an output reaches a value.

`serve` broadcasts over its inputs and takes facts too. Any other verb that prints numbers is answered again and again with other values of
one input; its output is read from the first row, or from the first that meets --where."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headway.answers import arguments
from headway.answers.no_effect import BATCHES, search_notes
from headway.core import columns, quantity, schema, spellings, units
from headway.core.columns import unit
from headway.core.errors import BadValue, HeadwayError, IllegalCombination, UnknownName
from headway.core.listing import Listing, clean, format_value, heading
from headway.core.notes import note
from headway.core.question import Question
from headway.core.schema import Field
from headway.core.table import Axis, Table
from headway.hardware.chip import price_quote
from headway.hardware.chip_price import MARKET
from headway.hardware.edit import edit, editable
from headway.models.precision import Precision
from headway.models.work import work_of
from headway.performance.assumptions import LATENCIES, Assumptions
from headway.performance.compile import halves
from headway.performance.layout import UNHALVED, Layout, expand, shape
from headway.performance.workload import Load
from headway.report import output, serving
from headway.report.pictures import grid
from headway.report.words import sentence
from headway.serving.questions import OF_SOLVE, Solve
from headway.serving.serve import serve as evaluate
from headway.serving.solve import Condition, SolveInput, condition, scan, solve

if TYPE_CHECKING:
    from headway.hardware.system import System
    from headway.models.model import Model
    from headway.report.pictures.frame import Picture, View

MOST_CASES = 200
MOST_WAYS = 4096  # most values tried for an input of the layout
FACT_FACTOR = 1000.0  # search range of a fact: its value divided and multiplied by this factor
# Search range of an input whose flag gives none.
RANGES = {
    "batch": (1.0, 1e6), "context": (1.0, 1e9), "prompt": (1.0, 1e9), "output": (1.0, 1e9), "rate": (1e-3, 1e6),
    **dict.fromkeys(LATENCIES, (1e-9, 1.0)), "fixed": (1e-3, 100.0), "spread": (1.0, 100.0),
    "imbalance": (1.0, 100.0), "accept_length": (1.0, 65.0), "draft_cost": (1e-3, 100.0), "draft_tokens": (1.0, 64.0),
    "hit_rate": (1e-3, 1.0),
    **dict.fromkeys(("activation_bytes", "dispatch_bytes", "state_bytes"), (0.1, 100.0)),
}  # fmt: skip
AROUND = 30.0  # the input is drawn from the answer over this to the answer times this


def run(args: Solve) -> output.Answer:
    """Answer with a row per crossing and its neighbours, for each combination of the other inputs."""
    if args.of != "serve":
        return of_verb(args)
    name, target = _name(args.for_), condition(args.so_that)
    solutions = []
    for case in _cases(args, name):
        at, sought = _problem(args, case, name)
        solutions.append(solve(at, sought, target))
    table = solutions[0].table.concat(*(solution.table for solution in solutions[1:]))
    crossings = sum(solution.crossings for solution in solutions)
    headline = solutions[0].sentence if len(solutions) == 1 else f"{crossings} crossings of {target} in {len(solutions)} cases"
    keys = [target.column] + ([target.right] if target.number is None else [])
    return output.Answer(
        table,
        describe=lambda rows: _describe(rows, headline, keys),
        pictures={"crossing": lambda answers, view: _drawing(args, name, target, list(answers), view)},
    )


def _drawing(args: Solve, name: str, target: Any, answers: list[Any], view: View) -> Picture:
    """Picture of both sides of the question over the range of the input, for the first case."""
    case, *_ = _cases(args, name)
    at, sought = _problem(args, case, name)
    points, left_key = scan(sought), target.column
    centre = next((row["solution"] for row in answers if row.get("solution")), None)
    near = [point for point in points if centre is None or centre / AROUND <= point <= centre * AROUND]
    points = near if len(near) > 2 else points
    rows = list(zip(at(points), points, strict=True))
    lines = [{name: point, left_key: row[left_key], "line": heading(left_key)} for row, point in rows]
    right = {} if target.number is None else {target.right: target.number}
    right_name = heading(target.right) if target.number is None else f"wanted: {format_value(target.number, unit(left_key))}"
    lines += [{name: point, left_key: (row | right)[target.right], "line": right_name} for row, point in rows]
    words = grid.doc(left_key)
    crossing = next((row["solution"] for row in answers if row.get("is") == "crossing" and row.get("solution") is not None), None)
    if crossing is None:
        title = f"{words} against {name}: the lines do not cross"
    elif target.number is None:
        right_words = grid.doc(target.right)
        title = f"{words} equals {right_words[:1].lower()}{right_words[1:]} at {heading(name)} {format_value(crossing, unit(name))}"
    else:
        title = f"{words} is {format_value(target.number, unit(left_key))} at {heading(name)} {format_value(crossing, unit(name))}"
    about = f"{rows[0][0]['model']} on {rows[0][0]['system']}"
    caption = "The answer is the input at which both lines meet; solve computes it, the picture only shows it."
    return grid.picture(lines, name, (left_key,), ("line",), view, title=title, about=about, caption=caption)


def _describe(rows: Table, headline: str, keys: list[str]) -> output.Summary:
    first = rows.row(0)
    varying = [key for key in serving.WHAT if rows.varies(key)]
    view = serving.REQUEST_VIEW if serving.is_request(first) else serving.STEP_VIEW
    columns = dict.fromkeys(["is", "solution", *varying, *keys, *view, "bound", "why"])
    view = list(columns)
    return output.Summary(
        sentence(headline), view, binds=serving.binds(first), remarks=[serving.DEFINED], first=("is", "solution", *varying, *keys)
    )


def _name(text: str) -> str:
    name = text.strip().replace("-", "_")
    name = "chip.price" if name == "chip_price" else name  # as the flag has it
    known = {*schema.fields(Load), *schema.fields(Layout), *editable()}
    known |= {key for key, (q, usual) in schema.fields(Assumptions).items() if q.is_number and not isinstance(usual, str)}
    if name not in known:
        raise UnknownName("input to solve for", text, known)
    return name


def _cases(args: Solve, name: str) -> list[dict[str, Any]]:
    """Values of the other inputs in each of their combinations."""
    lists: dict[str, tuple[Any, ...]] = {
        "model": tuple(arguments.split(args.model, "model")),
        "on": tuple(arguments.split(args.on, "--on")),
    }
    for record, counts in ((Load, arguments.COUNTS), (Layout, ()), (Precision, ()), (Assumptions, ())):
        values = schema.read(args, record, counts)
        lists |= {key: schema.several(value) for key, value in values.items() if key != name}
    load = {key: BATCHES if key == name else lists[key] for key in arguments.COUNTS if key == name or key in lists}
    degrees = {key: lists.get(key, value) for key, value in dataclasses.asdict(Layout()).items() if key != name}
    note(*search_notes(args, load, degrees, skip=(name,)))
    combos = list(itertools.islice(itertools.product(*lists.values()), MOST_CASES + 1))
    if len(combos) > MOST_CASES:
        raise BadValue("solve", "too many combinations of the other inputs", f"at most {MOST_CASES}")
    return [dict(zip(lists, combo, strict=True)) for combo in combos]


def _problem(args: Solve, inputs: dict[str, Any], name: str) -> tuple[Callable[[Sequence[float]], Any], Any]:
    """Function that evaluates a case at values of the input, and the search range."""
    model = arguments.model(inputs["model"], args)
    system = arguments.systems(args, inputs["on"])[0][0]
    parts = ({key: inputs[key] for key in schema.fields(record) if key in inputs} for record in (Load, Layout, Precision, Assumptions))
    load, degrees, formats, assumption_values = parts
    precision, assumptions = Precision(**formats), schema.defaults(Assumptions, assumption_values)
    in_halves = assumptions.communication == "two-batch"

    def table_at(value: float) -> Any:
        machine = edit(system, name, value) if "." in name else system
        changed = assumptions if "." in name else dataclasses.replace(assumptions, **{name: quantity.user_input(value, name)})
        return evaluate(model, machine, Layout(**degrees), **load, precision=precision, assumptions=changed)

    def loads(values: Sequence[float]) -> Any:
        return evaluate(model, system, Layout(**degrees), **load | {name: list(values)}, precision=precision, assumptions=assumptions)

    def layouts(values: Sequence[float]) -> Any:
        candidates = [Layout(**degrees | {name: int(value)}) for value in values]
        return evaluate(model, system, candidates, **load, precision=precision, assumptions=assumptions)

    if name in schema.fields(Load):
        low, high = _range(args, name)
        if in_halves and name == "batch":
            low = max(low, int(2 * degrees.get("dp", 1) * degrees.get("pp", 1)))
        return loads, SolveInput(name=name, low=low, high=high, is_count=name in arguments.COUNTS, broadcasts=True)
    if name in schema.fields(Layout):
        legal = _legal(model, system, degrees, name, precision.weights, load.get("batch", 1) if in_halves else None)
        return layouts, SolveInput(name=name, low=legal[0], high=legal[-1], is_count=True, only=legal, broadcasts=True)
    if name in schema.fields(Assumptions):
        low, high = _range(args, name)
        only = tuple(float(count) for count in range(int(low), int(high) + 1)) if name in WHOLE_NUMBERS else ()
        return _over_values(table_at), SolveInput(name=name, low=low, high=high, is_count=bool(only), only=only)
    return _over_values(table_at), _fact(system, name)


WHOLE_NUMBERS = ("draft_tokens",)  # assumptions that are few whole numbers


def _legal(model: Model, system: System, degrees: dict[str, Any], name: str, weights: str, batch: Any) -> tuple[float, ...]:
    """Legal degrees of one kind of parallelism, at most the number of chips; where a `batch` is given it is computed in halves."""
    all_degrees = tuple(range(1, min(int(system.chips), MOST_WAYS) + 1))
    layouts, _ = expand(shape(work_of(model).blocks, weights), degrees | {name: all_degrees})
    legal = [layout for layout in layouts if batch is None or halves(layout, batch)]
    if not legal:
        raise IllegalCombination("communication", "two-batch", UNHALVED)
    return tuple(float(getattr(layout, name)) for layout in legal)


def _fact(system: System, name: str) -> Any:
    """Fact of the chip or the system, which is the centre of the search range."""
    part, _, key = name.partition(".")
    quote = price_quote(system.chip, MARKET) if name == "chip.price" else None
    value, q = quote.value if quote else (system.chip if part == "chip" else system).need(key), editable()[name]
    low, high = max(value / FACT_FACTOR, q.low), min(value * FACT_FACTOR, q.high)
    if q.integer:
        integers = tuple(float(number) for number in range(max(1, int(low)), int(min(high, 4096)) + 1))
        return SolveInput(name=name, low=integers[0], high=integers[-1], is_count=True, only=integers)
    return SolveInput(name=name, low=low, high=high)


def _over_values(table_at: Callable[[float], Any]) -> Callable[[Sequence[float]], Any]:
    def table(values: Sequence[float]) -> Any:
        tables = [table_at(float(value)) for value in values]
        return tables[0].concat(*tables[1:])

    return table


def _range(args: Solve, name: str) -> tuple[float, float]:
    """Ends of the search range: from the flag if given, else the default of the input."""
    record = Load if name in schema.fields(Load) else Assumptions
    values = schema.read(args, record)
    flag_value = values.get(name)
    if isinstance(flag_value, tuple) and len(flag_value) > 1:
        return float(min(flag_value)), float(max(flag_value))
    if name in RANGES:
        return RANGES[name]
    return 1e-3, 1.0  # range of a share


# Value of the input, whether an error is told, whether every column is wanted -> the first row of the answer.
Evaluate = Callable[..., dict[str, Any] | None]
COUNT_NAMES = ("N", "TOKENS")  # what whole numbers are called in the help of a flag that declares none
POINTS, POINTS_SLOW = 80, 12  # of the first scan: of a closed form, of a search or simulation
SLOW = ("plan", "train", "sim", "price", "speed", "cache")
CLOSE, CLOSE_SLOW = 1e-12, 1e-6
# Search range by unit, where the command gives none.
UNIT_RANGES = {
    "": (1e-3, 1e6), "token": (1.0, 1e15), "byte": (1.0, 1e18), "byte/s": (1e6, 1e16), "flop/s": (1e9, 1e19), "s": (1e-9, 1e9),
    "USD/s": (1e-8, 1e-1), "USD": (1e-6, 1e12), "token/s": (1e-3, 1e12), "1/s": (1e-3, 1e6),
}  # fmt: skip
SHARE = (1e-3, 1.0)


def of_verb(args: Solve) -> output.Answer:
    """Answer with the rows at each crossing and its neighbours."""
    if args.of == "law":
        name = args.for_.strip().replace("-", "_")
        return args.question(for_=name, so_that=args.so_that.partition("=")[2] or args.so_that).answer()
    sought, evaluate = _input(args)
    name, target, right = _output(args, evaluate, sought)
    at = _table(evaluate, sought.name, name, right)
    goal = Condition(name, right or args.so_that.partition("=")[2].strip(), target)
    solution = solve(at, sought, goal)
    rows = [
        {"for": sought.name, "is": mark["is"], "solution": mark["solution"], **(evaluate(float(mark["solution"])) or {})}
        for mark in solution.table.rows()
    ]
    where = " and at ".join(_text(row["solution"], sought) for row in rows if row["is"] == "crossing")
    headline = f"{goal} at {sought.name} = {where}." if where else solution.sentence
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
    text = f"{value:,.7g}" if sought.unit in ("", "token") else units.show(value, sought.unit or "", 6)
    return units.show(value, sought.unit or "", 6) if "e+" in text else text  # a large one as people write it: 10.4423M


# -- the input ------------------------------------------------------------------------------------------------------------------


def _input(args: Solve) -> tuple[Any, Evaluate]:
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
    low, high = _unit_range(span or (typed if typed and ".." in typed else ""), field, name)
    slow = args.of in SLOW
    is_count = field.integer or (field.unit in ("", "token") and name in ("batch", "context", "prompt", "output"))
    sought = SolveInput(name=name, low=low, high=high, is_count=is_count, unit=field.unit, points=POINTS_SLOW if slow else POINTS,
                        close=CLOSE_SLOW if slow else CLOSE)  # fmt: skip
    return sought, _evaluator(args, sought, field, flag is not None)


def _unit_of(word: str) -> str:
    return word.lower() if word.lower() in spellings.SPELLINGS else ""


def _unit_range(text: str, field: Field, name: str) -> tuple[float, float]:
    if text:
        ends = [units.parse(part, field.unit, name) for part in text.split("*")[0].split("+")[0].split("..")]
        if len(ends) != 2 or not ends[0] < ends[1]:
            raise BadValue(f"--for {name}", text, "a range such as 1..512")
        return ends[0], ends[1]
    low, high = SHARE if field.high <= 1 else UNIT_RANGES.get(field.unit, UNIT_RANGES[""])
    return max(low, field.low if field.low > 0 else low, 1.0 if field.integer else low), min(high, field.high)


def _evaluator(args: Solve, sought: Any, field: Field, is_flag: bool) -> Evaluate:
    rows: dict[tuple[float, bool], dict[str, Any] | None] = {}

    def evaluate(value: float, is_told: bool = False, is_whole: bool = True) -> dict[str, Any] | None:
        number = float(round(value)) if field.integer else value
        key = (number, is_whole)
        if key not in rows or is_told:
            rows[key] = None
            with contextlib.nullcontext() if is_told else contextlib.suppress(HeadwayError):
                question = _with(args, sought.name, number, field, is_flag)
                short = None if is_whole or args.where else question.first()
                rows[key] = evaluate(value) if not (is_whole or short) else _first(short or question.answer(), args.where)
        return rows[key]

    return evaluate


def _with(args: Solve, name: str, value: float, field: Field, is_flag: bool) -> Question:
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


def _output(args: Solve, evaluate: Evaluate, sought: Any) -> tuple[str, float | None, str]:
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
        rows = [evaluate(float(value), is_whole=False) for value in values]
        cells = {key: np.array([cell(row, key) for row in rows]) for key in (name, right) if key}
        return Table((Axis(sought, list(values)),), {sought: np.array(values, float), **cells})

    return at

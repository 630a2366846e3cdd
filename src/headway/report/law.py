"""Words and columns of `headway law`: a law described, its results, its solution."""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Sequence
from typing import Any

from headway.core import equation
from headway.core.columns import Column
from headway.core.law_values import spelled, typed
from headway.core.listing import Listing, clean, heading
from headway.core.trace import Law
from headway.report.output import Summary

ABOUT = {
    "name": Column("", "name of the law"),
    "module": Column("", "module of the law"),
    "law": Column("", "the law in a sentence"),
    "unit": Column("", "unit of the result"),
    "equation": Column("", "the law as an equation"),
    "source": Column("", "where the law comes from"),
    "arguments": Column("", "arguments with what each takes and a value of the example"),
    "example": Column("", "a command with the numbers of the law's own example"),
    "example_result": Column("", "result of the example"),
}
SOLVED = {
    "for": Column("", "the argument that is solved for"),
    "solution": Column("", "its value"),
    "is": Column("", "crossing, or the closest value where none is a crossing"),
}


def number(value: Any) -> Any:
    """A law's result as plain Python."""
    if isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b":
        return bool(value)
    return int(value) if type(value) is int else float(value)


def plain(value: Any) -> Any:
    """An input as a cell: numbers as they are, tuples and records as they are typed."""
    return value if isinstance(value, bool | str) else clean(number(value)) if isinstance(value, int | float) else typed(value)


def sentence(law: Law) -> str:
    """What a law says, in its own words."""
    return " ".join((inspect.getdoc(law.run) or "").partition("\n\n")[0].split())


def description(law: Law) -> dict[str, Any]:
    """A law as a row: sentence, equation, arguments with units, source, example."""
    hints = {name: hint for name, hint in _hints(law).items() if name != "return"}
    calls = example_calls(law)
    inputs, result = calls[0] if calls else ({}, None)
    row_list = [{"argument": name, "takes": spelled(hint), "example": _example(inputs.get(name), hint)} for name, hint in hints.items()]
    command = command_of(law, inputs) if inputs else ""
    about = {"name": law.name, "module": law.module, "law": sentence(law), "unit": equation.unit(law), "equation": equation.equation(law)}
    example_text = None if result is None else equation.text_with_unit(number(result), equation.unit(law))
    return about | {"source": law.source, "arguments": row_list, "example": command, "example_result": example_text}


def _example(value: Any, hint: Any) -> str:
    text = typed(value, hint) if value is not None else "-"
    return text if len(text) <= 60 else text[:57] + "..."


def _hints(law: Law) -> dict[str, Any]:
    return typing.get_type_hints(law.run, include_extras=True)


def command_of(law: Law, inputs: dict[str, Any]) -> str:
    """The command that calls a law with these inputs."""
    hints = _hints(law)
    texts = {name: typed(value, hints[name]) for name, value in inputs.items()}
    quoted = (f'"{name}={text}"' if " " in text or "(" in text else f"{name}={text}" for name, text in texts.items())
    return f"headway law {law.name} {' '.join(quoted)}"


def example_calls(law: Law) -> list[tuple[dict[str, Any], Any]]:
    """Inputs and result of each call of a law in its own doctest, scalar calls alone."""
    calls: list[tuple[dict[str, Any], Any]] = []
    signature = inspect.signature(law.run)

    def recorder(*args: Any, **kwargs: Any) -> Any:
        result = law.run(*args, **kwargs)
        inputs = dict(signature.bind(*args, **kwargs).arguments)
        if not any(hasattr(value, "shape") and getattr(value, "shape", ()) for value in (*inputs.values(), result)):
            calls.append((inputs, result))
        return result

    names = dict(vars(sys.modules[law.run.__module__])) | {law.name: recorder}
    for statement in _statements(inspect.getdoc(law.run) or ""):
        exec(compile(statement, "<example>", "exec"), names)
    return calls


def _statements(doc: str) -> list[str]:
    """Statements of a doctest; importing `doctest` would take a tenth of the time of an answer."""
    statements: list[str] = []
    for line in doc.splitlines():
        if line.startswith(">>> "):
            statements.append(line[4:])
        elif line.startswith("... ") and statements:
            statements[-1] += "\n" + line[4:]
    return statements


def about(row: dict[str, Any]) -> Summary:
    """Text of a law's description."""
    lines = [f"{row['name']} [{row['unit'] or 'number'}] = {row['equation']}", f"Source: {row['source']}."]
    lines += [f"Example: {row['example']}", f"         gives {row['example_result']}"] if row["example"] else []
    return Summary(row["law"], (), lines, Listing(row["arguments"]))


def argument(law: Law, name: str, unit: str) -> Column:
    """Column of an argument."""
    return Column(unit, f"argument of {law.name}")


def columns(law: Law, call: Any) -> dict[str, Column]:
    """Columns of a law's results."""
    by_name = {name: argument(law, name, call.unit(name)) for name in call.axes}
    steps = {step.argument: Column(call.unit(step.argument), step.words()) for step in call.steps}
    return {"law": Column("", "name of the law")} | by_name | steps | {"result": Column(call.unit(), sentence(law))}


def results(law: Law, call: Any, rows: Any) -> Summary:
    """Sentence, table and equation of a law's results."""
    row_list = list(rows)
    unit = call.unit()
    title = heading(law.name.removesuffix("_s") if unit == "s" else law.name)
    title = title[:1].upper() + title[1:]
    first = f"{title} is {text(row_list[0]['result'], unit)}" + "s" * (unit == "token")
    varying = [name for name, axis in call.axes.items() if len(axis) > 1]
    headline = first + "." if len(row_list) == 1 else f"{title} at {len(row_list)} points: {_span(row_list, unit)}."
    names = [*(varying or call.axes), *(step.argument for step in call.steps)]
    people = Listing([{name: text(row[name], call.unit(name)) for name in names} | {law.name: text(row["result"], unit)}
                      for row in row_list])  # fmt: skip
    return Summary(headline, (), _basis(law), people)


def _span(rows: Sequence[dict[str, Any]], unit: str) -> str:
    finite = [row["result"] for row in rows if row["result"] is not None]
    return f"from {text(min(finite), unit)} to {text(max(finite), unit)}" if finite else "infinite at all of them"


def _basis(law: Law) -> list[str]:
    return [f"{law.name} = {equation.equation(law)}", f"Source: {law.source}."]


def text(value: Any, unit: str) -> str:
    """A value with its unit, four digits; infinity where the row has none."""
    if value is None:
        return "infinite"
    return ("yes" if value else "no") if isinstance(value, bool) else equation.text_with_unit(value, unit)


def crossing(law: Law, name: str, unit: str, rows: list[dict[str, Any]]) -> str:
    """Sentence of a solution: where the law has the wanted result."""
    places = " and ".join(text(row["solution"], "" if unit == "*" else unit) for row in rows if row["is"] == "crossing")
    return f"{law.name} is {text(rows[0]['result'], equation.unit(law))} at {name} = {places}."


def solved(law: Law, call: Any, rows: list[dict[str, Any]], headline: str) -> Summary:
    """Sentence, table and equation of a solution."""
    hints = call.hints()
    keys = [key for key in rows[0] if key in {*hints, "result"} and key != "return"]
    people = Listing([{key: text(row[key], call.unit() if key == "result" else call.unit(key)) for key in keys} for row in rows])
    return Summary(headline, (), _basis(law), people)


def table_of(law: Law, point: dict[str, Any], name: str, result: Callable[[float], Any]) -> Callable[[Sequence[float]], Any]:
    """Function from values of an argument to a table with a row for each."""
    import numpy as np

    from headway.core.table import Axis, Table

    def at(values: Sequence[float]) -> Any:
        inputs = {key: plain(value) for key, value in point.items()}
        cells = [float(result(float(value))) for value in values]
        columns = {"law": law.name, **inputs, name: np.array(values, float), "result": np.array(cells)}
        return Table((Axis("point", list(values)),), columns, tree=lambda row, key: result(float(values[row])))

    return at

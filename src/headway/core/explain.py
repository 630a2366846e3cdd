"""The tree of equations behind one number, as text for a person and as JSON for a program."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import math
import re
import textwrap
import typing
from collections.abc import Iterable, Iterator
from typing import Any

from headway.core import units
from headway.core.formula import Call, Law, Traced
from headway.core.quantity import Sourced

MOST_FIELDS = 12  # of a record, beyond which it is folded unless all of the tree is asked for
NO_LIMIT = 1e60  # of any unit: only a limit that is not there is so large
_CHOOSING = {"maximum": max, "max": max, "minimum": min, "min": min}


@functools.cache
def unit(law: Law) -> str:
    """The unit of a law's result."""
    hints = typing.get_type_hints(law.run, include_extras=True)
    return next((mark for mark in getattr(hints.get("return"), "__metadata__", ()) if isinstance(mark, str)), "")


@functools.cache
def input_units(law: Law) -> dict[str, str]:
    """Units of a law's numeric inputs, by name."""
    hints = typing.get_type_hints(law.run, include_extras=True)
    return {name: mark for name, hint in hints.items() for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, str)}


@functools.cache
def _body(law: Law) -> tuple[ast.stmt, ...]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(law.run))).body[0]
    return tuple(node for node in getattr(tree, "body", []) if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)))


@functools.cache
def equation(law: Law) -> str:
    """Expression of a law, as in its source file."""
    return _source_line(_body(law))


def _source_line(statements: Iterable[ast.stmt]) -> str:
    lines = (" ".join(ast.unparse(node).split()) for node in statements)
    return "; ".join(line.replace("np.", "").removeprefix("return ") for line in lines)


def _path(step: Call, names: dict[str, Any]) -> Iterator[ast.stmt]:
    """Statements that a call ran; `names` gains the variables they assign."""
    for statement in _body(step.law):
        if isinstance(statement, ast.If):
            branch = statement.body if _value(statement.test, names) else statement.orelse
            yield from branch
            if any(isinstance(node, ast.Return) for node in branch):
                return
            continue
        if isinstance(statement, ast.Assign):
            _assign(statement, names)
        yield statement
        if isinstance(statement, ast.Return):
            return


def _assign(statement: ast.Assign, names: dict[str, Any]) -> None:
    target, value = statement.targets[0], statement.value
    pairs = [(target, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = list(zip(target.elts, value.elts, strict=True))
    for name, part in pairs:
        if isinstance(name, ast.Name):
            names[name.id] = _evaluated(part, names)


@dataclasses.dataclass(frozen=True, slots=True)
class Branch:
    """One max, min or where in an equation: its candidates with their values, and the one that was taken."""

    what: str
    candidates: tuple[tuple[str, float], ...]
    chosen_index: int


def branches(step: Call) -> tuple[Branch, ...]:
    """Branches that a call took, found by evaluating the arguments of each max, min and where with the call's inputs."""
    names = dict(step.law.run.__globals__) | step.inputs
    branch_rows = []
    for statement in _path(step, names):
        for node in ast.walk(statement):
            branch = _branch(node, names) if isinstance(node, ast.Call) else None
            if branch:
                branch_rows.append(branch)
    return tuple(branch_rows)


def equation_of(step: Call) -> str:
    """Equation of one call: for a law with cases, the case that ran."""
    return _source_line(_path(step, dict(step.law.run.__globals__) | step.inputs))


def _branch(node: ast.Call, names: dict[str, Any]) -> Branch | None:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if called in _CHOOSING and len(node.args) > 1:
        values = [_value(argument, names) for argument in node.args]
        if None in values:
            return None
        chosen_index = values.index(_CHOOSING[called](values))
        return Branch(called.replace("imum", ""), _candidates(node.args, values), chosen_index)
    if called == "where" and len(node.args) == 3:
        test, values = _value(node.args[0], names), [_value(argument, names) for argument in node.args[1:]]
        if test is None or None in values:
            return None
        return Branch(f"where {ast.unparse(node.args[0]).replace('np.', '')}", _candidates(node.args[1:], values), 0 if test else 1)
    return None


def _candidates(arguments: list[ast.expr], values: list[Any]) -> tuple[tuple[str, float], ...]:
    return tuple((ast.unparse(argument).replace("np.", ""), float(value)) for argument, value in zip(arguments, values, strict=True))


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    """Value of a part of an equation; None unless it is one number."""
    value = _evaluated(node, names)
    try:
        return None if value is None or math.isnan(float(value)) else value
    except (TypeError, ValueError):
        return None


def _evaluated(node: ast.expr, names: dict[str, Any]) -> Any:
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the other branch may divide by zero
            return eval(compile(ast.Expression(node), "<equation>", "eval"), names)
    except (ArithmeticError, AttributeError, LookupError, NameError, TypeError, ValueError):
        return None


class _VisitedNodes:
    """Sub-trees already in the output; equal sub-trees count as one, even if they are different objects."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}  # structure -> serial number
        self.known: dict[int, tuple[int, Any]] = {}  # id -> serial number, and the object, so that its id is not reused
        self.serials: set[int] = set()

    def again(self, value: Any) -> bool:
        """Whether an equal sub-tree was in the output before; adds this one."""
        serial = self._serial(value)
        is_repeat = serial in self.serials
        self.serials.add(serial)
        return is_repeat

    def _serial(self, value: Any) -> int:
        if id(value) not in self.known:
            self.known[id(value)] = self.numbers.setdefault(self._structure(value), len(self.numbers)), value
        return self.known[id(value)][0]

    def _structure(self, value: Any) -> Any:
        if isinstance(value, Traced):
            return self._structure(value.step)
        if isinstance(value, Call):
            return value.law.name, *((name, self._serial(item)) for name, item in value.inputs.items())
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return type(value), *(self._serial(getattr(value, field.name)) for field in dataclasses.fields(value))
        if isinstance(value, tuple | list):
            return "list", *(self._serial(item) for item in value)
        if isinstance(value, Sourced):
            return value.name, value.kind, value.source, float(value)  # type: ignore[arg-type]
        return type(value), value


# -- JSON -----------------------------------------------------------------------------------------------------------------------


def to_json(value: Any, name: str = "", repeats: _VisitedNodes | None = None, shown_unit: str = "") -> Any:
    """The tree as plain objects: laws {name, value, unit, equation, source, inputs}, leaves {value, unit, kind, name, source, date}.

    A law already in the tree appears without its inputs, marked `"as_above": true`.
    """
    repeats = _VisitedNodes() if repeats is None else repeats
    if isinstance(value, Traced):
        return _step_json(value.step, repeats)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name), field.name, repeats) for field in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [to_json(item, f"{name}[{index}]", repeats, shown_unit) for index, item in enumerate(value)]
    return _leaf_json(value, name, shown_unit)


def _step_json(step: Call, repeats: _VisitedNodes) -> dict[str, Any]:
    law = step.law
    node: dict[str, Any] = {"name": law.name, "value": _finite(step.value), "unit": unit(law)}
    node |= {"equation": equation_of(step), "source": law.source}
    if repeats.again(step):
        return node | {"as_above": True}
    step_branches = branches(step)
    if step_branches:
        node["taken"] = [{"of": branch.what, "is": branch.candidates[branch.chosen_index][0]} for branch in step_branches]
    node["inputs"] = {name: to_json(item, name, repeats, input_units(law).get(name, "")) for name, item in step.inputs.items()}
    if step.working:
        node["working"] = [_step_json(part, repeats) for part in step.working]
    return node


def _leaf_json(value: Any, name: str, shown_unit: str) -> dict[str, Any]:
    if isinstance(value, Sourced):
        number = _finite(value)
        return {"value": number, "unit": value.unit, "kind": value.kind, "name": value.name, "source": value.source, "date": value.date}
    plain = _finite(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    return {"value": plain, "unit": shown_unit, "kind": "choice", "name": name, "source": "", "date": ""}


def _finite(value: Any) -> Any:
    if isinstance(value, int):
        return int(value)
    return float(value) if math.isfinite(value) else None


# -- text -----------------------------------------------------------------------------------------------------------------------


def explain(value: Any, name: str = "", depth: int | None = None) -> str:
    """The number as one line with the numbers in its equation, then the tree as indented lines, `depth` levels of it (None: all)."""
    lines = [f"{name} = {_with_numbers(value.step)}"] if isinstance(value, Traced) and name else []
    return "\n".join([*lines, *_lines(value, name, "", Place(0, depth), _VisitedNodes())])


to_text = explain  # beside to_json


def _with_numbers(step: Call) -> str:
    """The last statement of a call's equation with its numbers in place of names, and what it gives."""
    names = dict(step.law.run.__globals__) | step.inputs
    statements = list(_path(step, names))
    result = text_with_unit(step.value, unit(step.law))
    if not statements:
        return result
    last, marks = statements[-1], input_units(step.law)
    text = _Numbers(names, marks).visit(ast.parse(ast.unparse(last)).body[0])
    return f"{_source_line([text])} = {result}"


class _Numbers(ast.NodeTransformer):
    """Names of numbers as the numbers that they stand for."""

    def __init__(self, names: dict[str, Any], marks: dict[str, str]) -> None:
        self._names, self._marks = names, marks

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """The number, if the name stands for one."""
        value = self._names.get(node.id)
        is_number = isinstance(value, int | float | Traced) or getattr(value, "shape", None) == ()
        if isinstance(value, bool) or not is_number:
            return node
        in_unit = unit(value.step.law) if isinstance(value, Traced) else getattr(value, "unit", "") or self._marks.get(node.id, "")
        return ast.Name(id=text_with_unit(value, in_unit), ctx=node.ctx)


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where in the tree a line stands: its level, and how many levels are printed."""

    level: int
    most: int | None

    def below(self, levels: int = 1) -> Place:
        """A place so many levels further down."""
        return Place(self.level + levels, self.most)

    @property
    def is_last(self) -> bool:
        """Whether what is below is folded."""
        return self.most is not None and self.level >= self.most

    @property
    def pad(self) -> str:
        """Spaces before a line."""
        return "  " * self.level


def _lines(value: Any, name: str, shown_unit: str, at: Place, repeats: _VisitedNodes) -> Iterator[str]:
    if isinstance(value, Traced):
        yield from _step_lines(value.step, name, at, repeats)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from _record_lines(value, name, at, repeats)
    elif isinstance(value, tuple | list):
        if at.is_last and any(isinstance(item, Traced) for item in value):
            yield f"{at.pad}{name}: {len(value)} numbers (--depth {at.level + 1})"
            return
        for index, item in enumerate(value):
            yield from _lines(item, f"{name}[{index}]", shown_unit, at, repeats)
    elif isinstance(value, Sourced):
        yield f"{at.pad}{name} = {text_with_unit(value, value.unit or shown_unit)}   ({_origin(value, name)})"
    else:
        yield f"{at.pad}{name} = {text_with_unit(value, shown_unit)}"


def _record_lines(value: Any, name: str, at: Place, repeats: _VisitedNodes) -> Iterator[str]:
    """A record of numbers, a line for each; folded at the last level."""
    if repeats.again(value):
        yield f"{at.pad}{name}: as above"
        return
    fields = dataclasses.fields(value)
    if at.is_last or (at.most is not None and len(fields) > MOST_FIELDS):
        yield f"{at.pad}{name}: {len(fields)} numbers of {type(value).__name__} (--depth all)"
        return
    yield f"{at.pad}{name}:"
    for field in fields:
        yield from _lines(getattr(value, field.name), field.name, "", at.below(), repeats)


def _step_lines(step: Call, name: str, at: Place, repeats: _VisitedNodes, folded: bool = False) -> Iterator[str]:
    law = step.law
    title = law.name if name in ("", law.name) else f"{name} = {law.name}"
    if repeats.again(step):
        yield f"{at.pad}{title} = {text_with_unit(step.value, unit(law))}   (as above)"
        return
    if folded or at.is_last:
        why = "not taken" if folded else f"--depth {at.level + 1}"
        yield f"{at.pad}{title} = {text_with_unit(step.value, unit(law))}   ({why}; {law.source})"
        return
    yield f"{at.pad}{title} = {text_with_unit(step.value, unit(law))}"
    yield f"{at.pad}  | {equation_of(step)}   [{law.source}]"
    known = branches(step)
    for branch in known:
        candidates = enumerate(branch.candidates)
        parts = [f"{text} = {value:.4g}{' (taken)' * (index == branch.chosen_index)}" for index, (text, value) in candidates]
        yield f"{at.pad}  | {branch.what}: {', '.join(parts)}"
    idle = _only_in_branches_not_taken(step, known) if at.most is not None else set()
    for key, item in step.inputs.items():
        if key in idle and isinstance(item, Traced):
            yield from _step_lines(item.step, key, at.below(), repeats, folded=True)
        else:
            yield from _lines(item, key, input_units(law).get(key, ""), at.below(), repeats)
    if step.working and at.most is not None and at.level + 2 > at.most:
        yield f"{at.pad}  within it: {', '.join(dict.fromkeys(part.law.name for part in step.working))} (--depth {at.level + 2})"
    elif step.working:
        yield f"{at.pad}  within it:"
        for part in step.working:
            yield from _step_lines(part, part.law.name, at.below(2), repeats)


def _only_in_branches_not_taken(step: Call, known: Iterable[Branch]) -> set[str]:
    """Inputs of a call that stand only in candidates of a max, min or where that was not taken."""
    words = re.findall(r"\w+", equation_of(step))
    unused: list[str] = []
    for branch in known:
        for index, (text, _) in enumerate(branch.candidates):
            unused += re.findall(r"\w+", text) if index != branch.chosen_index else []
    return {name for name in step.inputs if name in unused and unused.count(name) >= words.count(name)}


def text_with_unit(value: Any, in_unit: str) -> str:
    """A number with four digits and its unit; texts as they are."""
    if isinstance(value, bool | str) or value is None:
        return str(value)
    if isinstance(value, int) and in_unit in ("", "token") and abs(value) < 1e6:
        return f"{int(value)}{' ' + in_unit if in_unit else ''}"
    if abs(value) > NO_LIMIT:
        return "no limit"
    text = units.show(value, "" if in_unit == "*" else in_unit, 4)
    return f"{text} token" if in_unit == "token" else text


def _origin(value: Sourced, name: str) -> str:
    label = f"{value.name}, " if value.name not in ("", name) else ""
    date = f", {value.date}" if value.date not in ("", "undated", "now") else ""
    return f"{label}{value.kind}: {value.source}{date}"

"""What a law's source says about one of its calls: the equation that ran, its branches, and the same with numbers in place of names."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import math
import re
import textwrap
import types
import typing
from collections.abc import Iterable, Iterator
from typing import Any

from headway.core import units
from headway.core.quantity import Sourced, known
from headway.core.spellings import of_powers, powers, product
from headway.core.trace import Call, Law, Traced

NO_LIMIT = 1e60  # of any unit: only a limit that is not there is so large
INFIX = {"add": ("+", 1), "subtract": ("-", 1), "multiply": ("*", 2), "divide": ("/", 2), "power": ("**", 4)}
PREFIX_RANK, ATOM_RANK = 3, 5
CHOICES = {"maximum": "max", "minimum": "min"}
MOST_KEPT = 2**14  # texts and codes of parts of laws: a tree has the same few hundred laws again and again
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


def unit_of(value: Any) -> str:
    """Unit of a number of a tree: of a law's result, of a fact, or what the units of an operation's operands make."""
    if isinstance(value, tuple | list):
        return next((unit_of(item) for item in value), "")
    if not isinstance(value, Traced) or hasattr(value, "unit"):  # a fact of a model has one beside its law
        return getattr(value, "unit", "")
    step = value.step
    if step.is_operation:
        return unit_of_operation(step, [unit_of(operand) for operand in step.inputs.values()])
    if unit(step.law) != "*":
        return unit(step.law)
    return next((unit_of(step.inputs[name]) for name, mark in input_units(step.law).items() if mark == "*" and name in step.inputs), "")


def input_marks(step: Call) -> dict[str, str]:
    return {} if step.is_operation else input_units(step.law)


def title(step: Call, name: str) -> str:
    """What a call is called: its law beside the name that it has here; arithmetic by that name alone."""
    if step.is_operation:
        return name or "result"
    return step.law.name if name in ("", step.law.name) else f"{name} = {step.law.name}"


def inputs(step: Call) -> dict[str, Any]:
    """Numbers that a call is made of; those at which a chain of operations begins."""
    return Expression(step).inputs if step.is_operation else step.inputs


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


@functools.cache
def _body(law: Law) -> tuple[ast.stmt, ...]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(law.run))).body[0]
    return tuple(node for node in getattr(tree, "body", []) if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)))


@functools.cache
def equation(law: Law) -> str:
    """Expression of a law, as in its source file."""
    return _source_line(_body(law))


def _source_line(statements: Iterable[ast.stmt]) -> str:
    return "; ".join(_line(node) for node in statements)


@functools.lru_cache(maxsize=MOST_KEPT)
def _line(statement: ast.stmt) -> str:
    return " ".join(ast.unparse(statement).split()).replace("np.", "").removeprefix("return ")


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
            law, value = _called_law(part, names), _evaluated(part, names)
            names[name.id] = known(float(value), name.id, unit(law), "derived", law.source) if law and value is not None else value


def _called_law(node: ast.expr, names: dict[str, Any]) -> Law | None:
    """The law that an expression calls, if it is a call of a law."""
    called = names.get(getattr(node.func, "id", "")) if isinstance(node, ast.Call) else None
    return getattr(called, "law", None)


def branches(step: Call) -> tuple[Branch, ...]:
    """Branches that a call took, found by evaluating the arguments of each max, min and where with the call's inputs."""
    if step.is_operation:
        return tuple(Expression(step).branches)
    names = step.law.run.__globals__ | step.inputs
    branch_rows = []
    for statement in _path(step, names):
        for node in _calls(statement):
            branch = _branch(node, names)
            if branch:
                branch_rows.append(branch)
    return tuple(branch_rows)


@functools.lru_cache(maxsize=MOST_KEPT)
def _calls(statement: ast.stmt) -> tuple[ast.Call, ...]:
    return tuple(node for node in ast.walk(statement) if isinstance(node, ast.Call))


def equation_of(step: Call) -> str:
    """Equation of one call: for a law with cases, the case that ran; of a chain of operations, all of it."""
    if step.is_operation:
        return Expression(step).text
    return _source_line(_path(step, step.law.run.__globals__ | step.inputs))


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
            return eval(_code(node), names)
    except (ArithmeticError, AttributeError, LookupError, NameError, TypeError, ValueError):
        return None


@functools.lru_cache(maxsize=MOST_KEPT)
def _code(node: ast.expr) -> types.CodeType:
    return compile(ast.Expression(node), "<equation>", "eval")


def with_numbers(value: Any) -> str:
    """The last statement of a call's equation with its numbers in place of names, and what it gives."""
    step, result = value.step, text_with_unit(value, unit_of(value))
    if step.is_operation:
        names: dict[str, Any] = Expression(step).inputs
        statements = ast.parse(equation_of(step)).body
    else:
        names = step.law.run.__globals__ | step.inputs
        statements = list(_path(step, names))
    if not statements:
        return result
    last, marks = statements[-1], input_marks(step)
    text = _Numbers(names, marks).visit(ast.parse(ast.unparse(last)).body[0])
    return f"{_source_line([text])} = {result}"


class _Numbers(ast.NodeTransformer):
    """Names of numbers as the numbers that they stand for."""

    def __init__(self, names: dict[str, Any], marks: dict[str, str]) -> None:
        self._names, self._marks = names, marks

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """The number, if the name stands for one."""
        value = self._names.get(node.id)
        if not _is_number(value):
            return node
        return ast.Name(id=text_with_unit(value, unit_of(value) or self._marks.get(node.id, "")), ctx=node.ctx)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """The number of a record's field."""
        value = _value(node, self._names)
        if not _is_number(value):
            return node
        return ast.Name(id=text_with_unit(value, unit_of(value) or _field_unit(node, self._names)), ctx=node.ctx)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """The case that holds."""
        return self.visit(node.body if _value(node.test, self._names) else node.orelse)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """The value of a law that the equation calls."""
        law = _called_law(node, self._names)
        value = _value(node, self._names) if law else None
        if law is None or value is None:
            return self.generic_visit(node)
        return ast.Name(id=text_with_unit(value, unit(law)), ctx=ast.Load())


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and (isinstance(value, int | float) or getattr(value, "shape", None) == ())


def _field_unit(node: ast.Attribute, names: dict[str, Any]) -> str:
    """Unit of a record's field, as its class declares it."""
    hints = typing.get_type_hints(type(_evaluated(node.value, names)), include_extras=True)
    return next((mark for mark in getattr(hints.get(node.attr), "__metadata__", ()) if isinstance(mark, str)), "")


@dataclasses.dataclass(frozen=True, slots=True)
class Branch:
    """One max, min or where in an equation: its candidates with their values, and the one that was taken."""

    what: str
    candidates: tuple[tuple[str, float], ...]
    chosen_index: int


class Expression:
    """The operations that lead to a call, as one text over the numbers at which they begin: facts, constants, results of laws."""

    def __init__(self, step: Call) -> None:
        self.inputs: dict[str, Any] = {}
        self.branches: list[Branch] = []
        self.text = self._text(step)[0]

    def _text(self, step: Call) -> tuple[str, int]:
        operands = [self._operand(value) for value in step.inputs.values()]
        name = step.law.name
        if name == "negative":
            return f"-{_enclosed(operands[0], PREFIX_RANK)}", PREFIX_RANK
        if name in CHOICES:
            values = [float(value) for value in step.inputs.values()]
            candidates = tuple((text, value) for (text, _), value in zip(operands, values, strict=True))
            self.branches.append(Branch(CHOICES[name], candidates, values.index(step.value)))
            return f"{CHOICES[name]}({', '.join(text for text, _ in operands)})", ATOM_RANK
        sign, rank = INFIX[name]
        first, second = _enclosed(operands[0], rank + (name == "power")), _enclosed(operands[1], rank + (name != "power"))
        return f"{first} {sign} {second}", rank

    def _operand(self, value: Any) -> tuple[str, int]:
        if isinstance(value, Traced) and value.step.is_operation:
            return self._text(value.step)
        if not isinstance(value, Traced | Sourced):
            return f"{value:g}", ATOM_RANK
        return self._name(value), ATOM_RANK

    def _name(self, value: Any) -> str:
        """Name of a number in this expression: of its law or fact, numbered where two numbers share it."""
        for name, input_ in self.inputs.items():
            if input_ is value or (isinstance(value, Sourced) and isinstance(input_, Sourced) and _same(input_, value)):
                return name
        full = value.step.law.name if isinstance(value, Traced) else value.name.rpartition(".")[2]
        base = _plain_name(full)
        count = sum(_without_number(name) == base for name in self.inputs)
        name = f"{base}_{count + 1}" if count or base in self.inputs else base
        self.inputs[name] = value
        return name


@functools.lru_cache(maxsize=MOST_KEPT)
def _plain_name(full: str) -> str:
    return re.sub(r"\W+", "_", full).strip("_") or "number"


@functools.lru_cache(maxsize=MOST_KEPT)
def _without_number(name: str) -> str:
    return re.sub(r"_\d+$", "", name)


def _same(first: Any, second: Any) -> bool:
    return (first.name, first.source, float(first)) == (second.name, second.source, float(second))


def _enclosed(operand: tuple[str, int], least_rank: int) -> str:
    text, rank = operand
    return text if rank >= least_rank else f"({text})"


def unit_of_operation(step: Call, units: list[str]) -> str:
    """Unit of an operation's result from its operands' units.

    >>> from headway.core.trace import OPERATIONS
    >>> unit_of_operation(Call(OPERATIONS["divide"], {}, 0.0), ["byte", "byte/s"])
    's'
    """
    return _unit_of_result(step.law.name, *units)


@functools.lru_cache(maxsize=MOST_KEPT)
def _unit_of_result(name: str, *units: str) -> str:
    if name in ("multiply", "divide"):
        return of_powers(product(powers(units[0]), powers(units[1]), 1 if name == "multiply" else -1))
    if name == "power":
        return ""
    return next((unit for unit in units if unit), "")

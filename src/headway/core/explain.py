"""The tree of equations behind one number, as text for a person and as JSON for a program."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

from headway.core.equation import Branch, branches, equation_of, input_marks, inputs, text_with_unit, title, unit_of, with_numbers
from headway.core.quantity import Sourced, is_literal
from headway.core.trace import Call, Traced, traced

MOST_FIELDS = 12  # of a record, beyond which it is folded unless all of the tree is asked for


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
        return _step_json(value, name, shown_unit, repeats)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name), field.name, repeats) for field in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [to_json(item, f"{name}[{index}]", repeats, shown_unit) for index, item in enumerate(value)]
    return _leaf_json(value, name, shown_unit)


def _step_json(value: Any, name: str, shown_unit: str, repeats: _VisitedNodes) -> dict[str, Any]:
    step, law = value.step, value.step.law
    node: dict[str, Any] = {"name": name if step.is_operation else law.name, "value": _finite(step.value)}
    node |= {"unit": unit_of(value) or shown_unit.replace("*", ""), "equation": equation_of(step), "source": law.source}
    if repeats.again(step):
        return node | {"as_above": True}
    step_branches = branches(step)
    if step_branches:
        node["taken"] = [{"of": branch.what, "is": branch.candidates[branch.chosen_index][0]} for branch in step_branches]
    marks = input_marks(step)
    node["inputs"] = {key: to_json(item, key, repeats, marks.get(key, "")) for key, item in inputs(step).items()}
    if step.working:
        node["working"] = [_step_json(traced(part), part.law.name, "", repeats) for part in step.working]
    return node


def _leaf_json(value: Any, name: str, shown_unit: str) -> dict[str, Any]:
    if isinstance(value, Sourced):
        number = _finite(value)
        return {"value": number, "unit": value.unit, "kind": value.kind, "name": value.name, "source": value.source, "date": value.date}
    plain = _finite(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    kind, source = ("constant", "by definition") if is_literal(value) else ("choice", "")
    return {"value": plain, "unit": shown_unit, "kind": kind, "name": name, "source": source, "date": ""}


def _finite(value: Any) -> Any:
    if isinstance(value, int):
        return int(value)
    return float(value) if math.isfinite(value) else None


# -- text -----------------------------------------------------------------------------------------------------------------------


def explain(value: Any, name: str = "", depth: int | None = None) -> str:
    """The number as one line with the numbers in its equation, then the tree as indented lines, `depth` levels of it (None: all)."""
    lines = [f"{name} = {with_numbers(value)}"] if isinstance(value, Traced) and name else []
    return "\n".join([*lines, *_lines(value, name, "", Place(0, depth), _VisitedNodes())])


to_text = explain  # beside to_json


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
        yield from _step_lines(value, name, shown_unit, at, repeats)
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


def _step_lines(value: Any, name: str, shown_unit: str, at: Place, repeats: _VisitedNodes, folded: bool = False) -> Iterator[str]:
    step = value.step
    first = f"{at.pad}{title(step, name)} = {text_with_unit(value, unit_of(value) or shown_unit)}"
    if repeats.again(step):
        yield f"{first}   (as above)"
        return
    if folded or at.is_last:
        yield f"{first}   ({'not taken' if folded else f'--depth {at.level + 1}'}; {step.law.source})"
        return
    yield first
    yield f"{at.pad}  | {equation_of(step)}   [{step.law.source}]"
    known = branches(step)
    for branch in known:
        candidates = enumerate(branch.candidates)
        parts = [f"{text} = {number:.4g}{' (taken)' * (index == branch.chosen_index)}" for index, (text, number) in candidates]
        yield f"{at.pad}  | {branch.what}: {', '.join(parts)}"
    idle = _only_in_branches_not_taken(step, known) if at.most is not None else set()
    for key, item in inputs(step).items():
        if key in idle and isinstance(item, Traced):
            yield from _step_lines(item, key, "", at.below(), repeats, folded=True)
        else:
            yield from _lines(item, key, input_marks(step).get(key, ""), at.below(), repeats)
    yield from _working_lines(step, at, repeats)


def _working_lines(step: Call, at: Place, repeats: _VisitedNodes) -> Iterator[str]:
    """Laws called inside a law: by name alone where the tree ends, else each with its own lines."""
    if step.working and at.most is not None and at.level + 2 > at.most:
        yield f"{at.pad}  within it: {', '.join(dict.fromkeys(part.law.name for part in step.working))} (--depth {at.level + 2})"
    elif step.working:
        yield f"{at.pad}  within it:"
        for part in step.working:
            yield from _step_lines(traced(part), part.law.name, "", at.below(2), repeats)


def _only_in_branches_not_taken(step: Call, known: Iterable[Branch]) -> set[str]:
    """Inputs of a call that stand only in candidates of a max, min or where that was not taken."""
    words = re.findall(r"\w+", equation_of(step))
    unused: list[str] = []
    for branch in known:
        for index, (text, _) in enumerate(branch.candidates):
            unused += re.findall(r"\w+", text) if index != branch.chosen_index else []
    return {name for name in inputs(step) if name in unused and unused.count(name) >= words.count(name)}


def _origin(value: Sourced, name: str) -> str:
    label = f"{value.name}, " if value.name not in ("", name) else ""
    date = f", {value.date}" if value.date not in ("", "undated", "now") else ""
    return f"{label}{value.kind}: {value.source}{date}"

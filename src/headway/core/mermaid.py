"""The tree of equations behind a number as a diagram of Mermaid: an arrow from each number to what it is computed into."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from headway.core.equation import inputs, text_with_unit, title, unit_of
from headway.core.quantity import Sourced
from headway.core.trace import Traced


def diagram(value: Any, name: str, depth: int | None = None) -> str:
    """The diagram of a number, `depth` levels of it (None: all)."""
    walk = _Walk(depth)
    walk.add(value, name, 0)
    return "\n".join(["flowchart BT", *walk.lines])


class _Walk:
    """Lines of a diagram, in which an equal number stands once."""

    def __init__(self, depth: int | None) -> None:
        self.lines: list[str] = []
        self._depth, self._numbers, self._values = depth, {}, []

    def add(self, value: Any, name: str, level: int) -> str:
        """The node of a number, and below it those that it is computed from; the node's name."""
        if id(value) in self._numbers:
            return self._numbers[id(value)]
        node = f"n{len(self._numbers)}"
        self._numbers[id(value)] = node
        self._values.append(value)  # so that its id is not reused
        self.lines.append(f"    {node}{_label(value, name)}")
        if isinstance(value, Traced) and (self._depth is None or level < self._depth):
            for key, item in inputs(value.step).items():
                for part_name, part in _numbers_of(item, key):
                    self.lines.append(f"    {self.add(part, part_name, level + 1)} --> {node}")
        return node


def _numbers_of(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Numbers of an input: itself, or those of a list; a record stands for its numbers."""
    if isinstance(value, tuple | list):
        for index, item in enumerate(value):
            yield from _numbers_of(item, f"{name}[{index}]")
    else:
        yield name, value


def _label(value: Any, name: str) -> str:
    if isinstance(value, Traced):
        return _box(title(value.step, name), text_with_unit(value, unit_of(value)), "[", "]")
    if dataclasses.is_dataclass(value):
        return _box(name, type(value).__name__, "[[", "]]")
    if isinstance(value, Sourced):
        return _box(f"{name} = {text_with_unit(value, value.unit)}", value.kind, "([", "])")
    return _box(name, text_with_unit(value, ""), "([", "])")


def _box(first: str, second: str, opening: str, closing: str) -> str:
    text = f"{first}<br>{second}".replace('"', "'")
    return f'{opening}"{text}"{closing}'

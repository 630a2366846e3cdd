"""The grammar of --where: comparisons of columns, joined by and, or, not and brackets. Parsed here, never evaluated as code.

tpot_s <= 20ms and (tp = 8 or bound = weights) and fits and chips != 4
model in llama-3.1-70b, deepseek-v3
"""

from __future__ import annotations

import dataclasses
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from headway.core import columns, spellings, units
from headway.core.errors import BadValue, UnknownName

_TOKEN = re.compile(r"""\s*(?:(?P<op><=|>=|==|!=|=|<|>|\(|\)|,)|(?P<quote>"[^"]*"|'[^']*')|(?P<word>[^\s<>=!(),"']+))""")
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq, "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_SUFFIX = re.compile(r"(?!(?:and|or|in)$)[$A-Za-z%/]+", re.IGNORECASE)
DEEPEST = 50  # nested brackets


class Columns(Protocol):
    """Data that a condition reads: columns by key."""

    def keys(self) -> Any: ...
    def distinct(self, key: str) -> tuple[Any, Any]: ...


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """`key op value`, or `key in values`; a bare `key` is `key = true`."""

    key: str
    op: str
    values: tuple[str, ...]

    def row(self, row: Mapping[str, Any]) -> bool:
        """Whether one plain row meets the condition; null meets none but `!=`."""
        if self.key not in row:
            raise UnknownName("column", self.key, row)
        value = row[self.key]
        if value is None:
            return self.op == "!="
        return any(bool(COMPARE[self.op](_folded(value), _read(text, value, self.key))) for text in self.values)

    def mask(self, table: Columns) -> Any:
        """The condition over a table's columns, as an array of truth values."""
        import numpy as np

        if self.key not in table.keys():  # noqa: SIM118 -- a table is not a mapping
            raise UnknownName("column", self.key, table.keys())
        values, codes = table.distinct(self.key)
        if values.dtype == object:
            return np.array([self.row({self.key: value}) for value in values.ravel()], dtype=bool).reshape(values.shape)[codes]
        example = bool(0) if values.dtype == bool else 0.0
        matches = COMPARE[self.op](values, _read(self.values[0], example, self.key))
        for text in self.values[1:]:
            matches = matches | COMPARE[self.op](values, _read(text, example, self.key))
        return matches[codes]


@dataclasses.dataclass(frozen=True, slots=True)
class Not:
    """`not x`."""

    part: Condition

    def row(self, row: Mapping[str, Any]) -> bool:
        """Whether one plain row meets the condition."""
        return not self.part.row(row)

    def mask(self, table: Columns) -> Any:
        """The condition over a table's columns."""
        return ~self.part.mask(table)


@dataclasses.dataclass(frozen=True, slots=True)
class Conjunction:
    """`x and y and z`, or `x or y or z`."""

    is_conjunction: bool
    parts: tuple[Condition, ...]

    def row(self, row: Mapping[str, Any]) -> bool:
        """Whether one plain row meets the condition."""
        return all(part.row(row) for part in self.parts) if self.is_conjunction else any(part.row(row) for part in self.parts)

    def mask(self, table: Columns) -> Any:
        """The condition over a table's columns."""
        matches = self.parts[0].mask(table)
        for part in self.parts[1:]:
            matches = matches & part.mask(table) if self.is_conjunction else matches | part.mask(table)
        return matches


Condition = Comparison | Not | Conjunction


def _folded(value: Any) -> Any:
    return value.lower().replace("_", "-") if isinstance(value, str) else value


def _read(text: str, value: Any, key: str) -> Any:
    """`text` converted to the type of `value`."""
    if isinstance(value, bool):
        if text.lower() not in ("true", "false", "yes", "no"):
            raise BadValue(f"--where {key}", text, "true or false")
        return text.lower() in ("true", "yes")
    if isinstance(value, str):
        return _folded(text)
    if not isinstance(value, int | float):
        raise BadValue(f"--where {key}", text, "a column of numbers or texts")
    unit = columns.unit(key)
    return units.parse(text, unit if unit in spellings.SPELLINGS else "", f"--where {key}")


def parse(text: str) -> Condition:
    """The condition in `text`.

    >>> parse("tpot_s <= 20ms and not (tp = 8)").row({"tpot_s": 0.018, "tp": 4})
    True
    """
    tokens: list[str] = []
    position, text = 0, text.strip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if not match or len(tokens) > 1000:
            raise BadValue("--where", text[position:], "comparisons such as tpot_s <= 20ms, joined by and, or, not")
        tokens.append(match.group().strip())
        position = match.end()
    parser = _Parser(tokens)
    condition = parser.any_of()
    if parser.peek():
        raise BadValue("--where", parser.peek(), "and or or between two comparisons")
    return condition


class _Parser:
    """Recursive descent over the tokens: or, and, not, comparison."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens, self.at, self.depth = tokens, 0, 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""

    def any_of(self) -> Condition:
        self.depth += 1
        if self.depth > DEEPEST:
            raise BadValue("--where", self.peek(), f"at most {DEEPEST} levels of brackets")
        condition = self._joined("or", lambda: self._joined("and", self.term, True), False)
        self.depth -= 1
        return condition

    def _joined(self, word: str, part: Callable[[], Condition], is_conjunction: bool) -> Condition:
        parts = [part()]
        while self.peek().lower() == word:
            self.next()
            parts.append(part())
        return parts[0] if len(parts) == 1 else Conjunction(is_conjunction, tuple(parts))

    def term(self) -> Condition:
        negated = False
        while self.peek().lower() == "not":
            self.next()
            negated = not negated
        condition = self._bracket() if self.peek() == "(" else self._compare()
        return Not(condition) if negated else condition

    def _bracket(self) -> Condition:
        self.next()
        condition = self.any_of()
        if self.next() != ")":
            raise BadValue("--where", "(", "a closing bracket")
        return condition

    def _compare(self) -> Condition:
        key = self.next()
        if not re.fullmatch(r"[A-Za-z_][\w.-]*", key):
            raise BadValue("--where", key or "nothing", "a column, such as tpot_s, then a comparison")
        key = key.replace("-", "_")
        if self.peek() in COMPARE:
            return Comparison(key, self.next(), (self._value(key),))
        if self.peek().lower() == "in":
            self.next()
            values = [self._value(key)]
            while self.peek() == ",":
                self.next()
                values.append(self._value(key))
            return Comparison(key, "=", tuple(values))
        return Comparison(key, "=", ("true",))

    def _value(self, key: str) -> str:
        value = self.next()
        if not value or value in COMPARE or value in "(),":
            raise BadValue(f"--where {key}", value or "nothing", "a value to compare with")
        if value[0] in "\"'":
            return value[1:-1]
        if re.fullmatch(r"[\d.eE+-]+", value) and _SUFFIX.fullmatch(self.peek()):
            value += self.next()  # "20 ms" with its blank
        return value

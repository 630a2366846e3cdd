"""Blocks of questions: a product of axes or the lines of a list, each question by its place, none written out before it is asked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headway.core.question import Question, question_of

MOST_FUSED = 20_000  # questions of one call over arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionBlock:
    """Questions of one verb: `values` hold for each, `axes` span a grid (the last turns fastest), `lines` are a list instead."""

    place: str  # as messages name it
    verb: str
    values: Mapping[str, Any]
    axes: dict[str, Sequence[Any]]
    fused: tuple[str, ...] = ()  # the last axes, of which one call takes lists
    lines: Sequence[Mapping[str, Any]] | None = None
    numbers: Sequence[int] = ()  # of its questions in the whole sweep

    def __len__(self) -> int:
        return math.prod(map(len, self.axes.values())) if self.lines is None else len(self.lines)

    def differing(self, place: int) -> dict[str, Any]:
        """The values of one question that others of the block have not."""
        if self.lines is not None:
            return dict(self.lines[place])
        values = {}
        for name, axis in reversed(self.axes.items()):
            place, digit = divmod(place, len(axis))
            values[name] = axis[digit]
        return {name: values[name] for name in self.axes}

    def question(self, differing: Mapping[str, Any]) -> Question:
        """The question with these values."""
        return question_with(self.verb, {**self.values, **differing})

    # -- groups: questions of one call --------------------------------------------------------------------------------------------

    def _cut(self) -> tuple[int, int, int, str]:
        """How often a call repeats, members of the axis that calls take in pieces, questions within a member, and that axis."""
        names, inner = list(self.axes), 1
        while names and names[-1] in self.fused:
            size = len(self.axes[names[-1]])
            if inner * size > MOST_FUSED:
                return math.prod(len(self.axes[name]) for name in names[:-1]), size, inner, names[-1]
            inner *= size
            names.pop()
        return math.prod(len(self.axes[name]) for name in names), 1, inner, ""

    @property
    def groups(self) -> int:
        """Calls that answer it, each with the same questions however the chunks are cut."""
        if self.lines is not None:
            return len(self)
        outer, size, inner, _ = self._cut()
        return outer * math.ceil(size / (MOST_FUSED // inner))

    def span(self, group: int) -> range:
        """Places of the questions of a group."""
        if self.lines is not None:
            return range(group, group + 1)
        _, size, inner, _ = self._cut()
        piece = MOST_FUSED // inner
        outer, number = divmod(group, math.ceil(size / piece))
        first = (outer * size + number * piece) * inner
        return range(first, min(first + piece * inner, (outer + 1) * size * inner))

    def shared_axes(self, group: int) -> dict[str, Sequence[Any]]:
        """The axes that one call of the group takes as lists, outermost first."""
        if self.lines is not None:
            return {}
        _, size, inner, cut = self._cut()
        span, axes = self.span(group), dict[str, Sequence[Any]]()
        rest = len(span)
        for name in reversed(self.axes):
            if rest == 1:
                break
            start = span[0] // inner % size
            axes[name] = self.axes[name][start : start + rest] if name == cut else self.axes[name]
            rest //= len(axes[name])
        return dict(reversed(axes.items()))

    def part(self, first: int, last: int) -> QuestionBlock:
        """What the groups from `first` on, up to `last`, need: of a list its lines alone."""
        if self.lines is None:
            return self
        return replace(self, lines=self.lines[first:last], numbers=self.numbers[first:last])


def question_with(verb: str, values: Mapping[str, Any]) -> Question:
    """The question of a verb with these values, each as the command line has it."""
    words = [str(values["of"])] if "of" in values else []
    return question_of(verb).of_words(words).from_values(values)


def grid(place: str, verb: str, values: Mapping[str, Any], axes: Mapping[str, Sequence[Any]], first: int) -> QuestionBlock:
    """A block of a product: axes as they stand, those last that one call takes as a list."""
    fused = [name for name in axes if name in question_of(verb).broadcasts and all(map(_is_single, axes[name]))]
    order = {name: axes[name] for name in (*(name for name in axes if name not in fused), *fused)}
    block = QuestionBlock(place=place, verb=verb, values=values, axes=order, fused=tuple(fused))
    return replace(block, numbers=range(first, first + len(block)))


def _is_single(member: Any) -> bool:
    return not isinstance(member, str) or not ("," in member or ".." in member)

"""The explanation of one number: the tree of laws, inputs and sources behind it."""

from __future__ import annotations

import dataclasses
from html import escape
from typing import Any

from headway.core import explain, formula, mermaid
from headway.report.output import DEPTH


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Explanation:
    """A number and the tree of laws behind it; `repr` is the tree as text."""

    key: str
    tree: Any  # a recorded call, or a fact with its source

    @property
    def value(self) -> float:
        """The number, in SI."""
        return float(self.tree)

    def replay(self) -> float:
        """The number computed again from the leaves of the tree."""
        return float(formula.replay(self.tree))

    def anonymous(self) -> list[str]:
        """Paths of leaves without a source: empty for a complete explanation."""
        return formula.anonymous(self.tree)

    def to_json(self) -> Any:
        """The tree as plain objects, as `-o json --explain` writes it."""
        return explain.to_json(self.tree, self.key)

    def text(self, depth: int | None = None) -> str:
        """The tree as indented lines, `depth` levels of it (None: all)."""
        return explain.explain(self.tree, self.key, depth)

    def to_mermaid(self, depth: int | None = DEPTH) -> str:
        """The tree as a diagram of Mermaid."""
        return mermaid.diagram(self.tree, self.key, depth)

    def __str__(self) -> str:
        return self.text(DEPTH)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

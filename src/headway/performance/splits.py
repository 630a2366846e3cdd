"""What a layout divides among the chips of a replica and what each of them copies, per operator and engine: data/engines/splits.csv.

The one place that decides a share; the arithmetic is in laws/step/layer_terms.py. Published rates of kernels: data/engines/kernels.csv.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from headway.core.catalog import lines
from headway.core.quantity import known
from headway.core.units import Number
from headway.laws.step.layer_terms import block_share, even_share, head_share
from headway.performance.layout import Layout

TABLE, KERNELS = "engines/splits.csv", "engines/kernels.csv"
DEFAULT = "default"  # engine of the lines that hold where an engine has none of its own
ENDS = ("embedding", "head")  # of the model, which are no part of a layer
OTHER_FAMILY, ALL = "other", "all"
DIVIDED, COPIED, HEADS, BLOCKS, TOKENS, SEQUENCES, EXPERTS = "divided", "copied", "heads", "blocks", "tokens", "sequences", "experts"
WORDS = {  # by kind of parallelism: what it can do to an operator
    "tp": (DIVIDED, COPIED, HEADS, BLOCKS), "dp": (DIVIDED, COPIED, SEQUENCES), "cp": (DIVIDED, COPIED, TOKENS, SEQUENCES),
    "ep": (EXPERTS, ""),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Splits:
    """The lines of the table that hold for an engine on a family of chips, by operator."""

    by_operator: dict[str, dict[str, str]]

    def rule(self, operator: str, axis: str) -> str:
        """What a kind of parallelism (tp, dp, cp, ep) does to an operator."""
        return self.by_operator[operator][axis]

    def share(self, operator: str, layout: Layout, heads: Number = 1) -> Any:
        """Share of an operator on the fullest tensor-parallel chip; `heads` are those that it may be divided into."""
        line = self.by_operator[operator]
        if line["tp"] == DIVIDED:
            return even_share(layout.tp)
        if line["tp"] == COPIED:
            return _copy(operator, line["source"], line["date"])
        if line["tp"] == HEADS:
            return head_share(heads, layout.tp)
        return block_share(heads, layout.tp, _block(operator, line))

    @functools.cached_property
    def ranks_divide(self) -> bool:
        """Whether data-parallel ranks divide weights that every token of theirs uses, rather than copy them."""
        return any(line["dp"] == DIVIDED for operator, line in self.by_operator.items() if operator not in (*ENDS, "routed_experts"))

    @property
    def computes_empty_slots(self) -> bool:
        """Whether kernels of sparse attention compute every slot of the top k in prefill, also those that a short context leaves empty."""
        return self.by_operator["sparse_scores"]["slots"] == ALL

    def weight_share(self, operator: str, layout: Layout, heads: Number = 1) -> Any:
        """Share of an operator's weights on the fullest chip: data-parallel ranks copy them, or divide them too."""
        share = self.share(operator, layout, heads)
        return share * even_share(layout.dp) if self.rule(operator, "dp") == DIVIDED else share

    def degree(self, operator: str, axis: str, layout: Layout) -> Any:
        """Chips of a kind of parallelism that divide an operator's cache or its work: 1 where each has it whole."""
        return getattr(layout, axis) if self.rule(operator, axis) in (DIVIDED, TOKENS) else 1


@functools.cache
def splits(engine: str, family: str) -> Splits:
    """The lines for an engine on a family of chips: its own for the family, else its own, else those of most engines."""
    by_operator: dict[str, dict[str, str]] = {}
    for holder in ((DEFAULT, ""), (engine, ""), (engine, family)):
        by_operator |= {line["operator"]: line for line in lines(TABLE) if (line["engine"], line["chips"]) == holder}
    return Splits(by_operator=by_operator)


@functools.cache
def _copy(operator: str, source: str, date: str) -> Any:
    return known(1, f"share of {operator.replace('_', ' ')} on a chip", "", "constant", f"data/{TABLE}: {source}", date)


def _block(operator: str, line: dict[str, str]) -> Any:
    name = f"heads in a block of {operator.replace('_', ' ')}"
    return known(int(line["block"]), name, "", "constant", f"data/{TABLE}: {line['source']}", line["date"])


@functools.cache
def kernel_rate(kernel: str, family: str, number: str) -> Any:
    """A published rate of a kernel that no measured table has, on a family of chips or else on `other`."""
    by_kernel = {(line["kernel"], line["family"], line["number"]): line for line in lines(KERNELS)}
    line = by_kernel.get((kernel, family, number)) or by_kernel[kernel, OTHER_FAMILY, number]
    return known(float(line["value"]), f"{kernel}.{line['family']}.{number}", line["unit"], "measured", line["source"], line["date"])

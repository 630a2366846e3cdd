"""Lightning attention (MiniMax-01): linear attention, with a matrix of state per head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from headway.laws.architecture.attention import lightning_flop
from headway.laws.architecture.params import lightning_params
from headway.models.attention import Mixer


@dataclass(frozen=True, slots=True, kw_only=True)
class Lightning(Mixer):
    """Lightning (linear) attention of MiniMax-01: a head_dim x head_dim state per head."""

    SUMMARY_FIELDS: ClassVar[tuple[str, ...]] = ("heads", "head_dim")
    heads_field: ClassVar[str] = "heads"
    cache_heads_field: ClassVar[str] = "heads"

    hidden: Any
    heads: Any
    head_dim: Any

    def params(self) -> Any:
        """Projections of queries, keys, values, output gates and outputs."""
        return lightning_params(self.hidden, self.heads, self.head_dim)

    def state_elements(self) -> Any:
        """A key x value matrix per head."""
        from headway.laws.architecture.kv import gated_delta_state

        return gated_delta_state(self.heads, self.head_dim, self.head_dim)

    def recurrence_flop_per_token(self) -> Any:
        """Decay, write and query of that matrix."""
        return lightning_flop(self.heads, self.head_dim)

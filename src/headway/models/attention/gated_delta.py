"""Gated DeltaNet (Qwen3-Next) and Kimi delta attention: a matrix of state per value head, corrected by the delta rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from headway.laws.architecture.attention import gated_delta_flop
from headway.laws.architecture.params import gated_delta_params, kimi_delta_full_gate_params, kimi_delta_params
from headway.models.attention import ConvolvedRecurrence


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedDelta(ConvolvedRecurrence):
    """Gated DeltaNet (Qwen3-Next): a key x value state per value head and a short convolution of `kernel` taps."""

    SUMMARY_FIELDS: ClassVar[tuple[str, ...]] = ("value_dim", "key_heads", "value_heads", "key_dim", "kernel")
    heads_field: ClassVar[str] = "value_heads"
    cache_heads_field: ClassVar[str] = "key_heads"
    scanned: ClassVar[bool] = True

    hidden: Any
    key_heads: Any
    value_heads: Any
    key_dim: Any
    value_dim: Any
    gate_rank: Any | None = None  # Kimi delta attention: decay and output gate of each channel, through this rank
    full_gate: bool = False  # Kimi-K3: the output gate has full rank, only the decay goes through `gate_rank`

    def matrix_params(self) -> Any:
        """Projections of queries, keys, values, gates and outputs."""
        if self.gate_rank is not None and self.full_gate:
            return kimi_delta_full_gate_params(self.hidden, self.value_heads, self.value_dim, self.gate_rank)
        if self.gate_rank is not None:
            return kimi_delta_params(self.hidden, self.value_heads, self.value_dim, self.gate_rank)
        return gated_delta_params(self.hidden, self.key_heads, self.value_heads, self.key_dim, self.value_dim)

    def channels(self) -> Any:
        """Queries, keys and values."""
        from headway.laws.architecture.kv import convolution_channels

        return convolution_channels(self.value_heads, self.value_dim, self.key_heads, self.key_dim)

    def recurrent_elements(self) -> Any:
        """A key x value matrix per value head."""
        from headway.laws.architecture.kv import gated_delta_state

        return gated_delta_state(self.value_heads, self.key_dim, self.value_dim)

    def recurrent_flop(self) -> Any:
        """Decay, read, write and query of that matrix."""
        return gated_delta_flop(self.value_heads, self.key_dim, self.value_dim)

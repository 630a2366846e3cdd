"""State spaces: Mamba, whose state is a vector per channel, and Mamba-2, whose state is a matrix per head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from headway.laws.architecture.attention import mamba2_flop, ssm_flop
from headway.laws.architecture.params import mamba2_params, mamba_params
from headway.models.attention import ConvolvedRecurrence


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba(ConvolvedRecurrence):
    """Mamba-1 selective state space: `state` numbers per inner channel and a short convolution of `kernel` taps."""

    SUMMARY_FIELDS: ClassVar[tuple[str, ...]] = ("state", "inner", "kernel")
    heads_field: ClassVar[str] = "inner"
    cache_heads_field: ClassVar[str] = "inner"

    hidden: Any
    inner: Any
    state: Any
    dt_rank: Any

    def matrix_params(self) -> Any:
        """Projections to values, gates, step sizes and the state, and of outputs."""
        return mamba_params(self.hidden, self.inner, self.state, self.dt_rank)

    def channels(self) -> Any:
        """Inner channels."""
        return self.inner

    def recurrent_elements(self) -> Any:
        """`state` numbers per inner channel."""
        from headway.laws.architecture.kv import ssm_state

        return ssm_state(self.inner, self.state)

    def recurrent_flop(self) -> Any:
        """Decay, write and read of those numbers."""
        return ssm_flop(self.inner, self.state)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2(ConvolvedRecurrence):
    """Mamba-2: a head_dim x state matrix per head and a short convolution of `kernel` taps."""

    SUMMARY_FIELDS: ClassVar[tuple[str, ...]] = ("heads", "head_dim", "state", "groups", "kernel")
    heads_field: ClassVar[str] = "heads"
    cache_heads_field: ClassVar[str] = "heads"

    hidden: Any
    heads: Any
    head_dim: Any
    groups: Any
    state: Any

    def matrix_params(self) -> Any:
        """Projections to gates, values, B, C and step sizes, and of outputs."""
        return mamba2_params(self.hidden, self.heads, self.head_dim, self.groups, self.state)

    def channels(self) -> Any:
        """Values of every head, and a B and a C per group."""
        from headway.laws.architecture.kv import convolution_channels

        return convolution_channels(self.heads, self.head_dim, self.groups, self.state)

    def recurrent_elements(self) -> Any:
        """A head_dim x state matrix per head."""
        from headway.laws.architecture.kv import gated_delta_state

        return gated_delta_state(self.heads, self.head_dim, self.state)

    def recurrent_flop(self) -> Any:
        """Decay, write and read of that matrix."""
        return mamba2_flop(self.heads, self.head_dim, self.state)

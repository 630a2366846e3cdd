"""Recurrences in place of attention, whose state has a fixed size: state spaces, delta rules, lightning, RWKV, short convolutions.

Mamba has a state vector per channel, Mamba-2 a matrix per head.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from headway.core.quantity import known
from headway.core.units import Number
from headway.laws.architecture import kv
from headway.laws.architecture.attention import gated_delta_flop, lightning_flop, mamba2_flop, rwkv_flop, ssm_flop
from headway.laws.architecture.params import (
    gated_delta_params,
    kimi_delta_full_gate_params,
    kimi_delta_params,
    lightning_params,
    mamba2_params,
    mamba_params,
    rwkv_params,
    short_convolution_params,
)
from headway.models.attention import AttentionPattern, AttentionSpan, CacheStore, ConvolvedRecurrence, Mixer
from headway.models.attention.grouped_query import Attention


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba(ConvolvedRecurrence):
    """Mamba-1 selective state space: `state` numbers per inner channel and a short convolution of `kernel` taps."""

    SUMMARY_FIELDS = ("state", "inner", "kernel")
    heads_field = "inner"
    cache_heads_field = "inner"

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
        return kv.ssm_state(self.inner, self.state)

    def recurrent_flop(self) -> Any:
        """Decay, write and read of those numbers."""
        return ssm_flop(self.inner, self.state)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2(ConvolvedRecurrence):
    """Mamba-2: a head_dim x state matrix per head and a short convolution of `kernel` taps."""

    SUMMARY_FIELDS = ("heads", "head_dim", "state", "groups", "kernel")
    heads_field = "heads"
    cache_heads_field = "heads"

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
        return kv.convolution_channels(self.heads, self.head_dim, self.groups, self.state)

    def recurrent_elements(self) -> Any:
        """A head_dim x state matrix per head."""
        return kv.gated_delta_state(self.heads, self.head_dim, self.state)

    def recurrent_flop(self) -> Any:
        """Decay, write and read of that matrix."""
        return mamba2_flop(self.heads, self.head_dim, self.state)


# -- gated DeltaNet (Qwen3-Next) and Kimi delta attention: a matrix of state per value head, corrected by the delta rule --------


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedDelta(ConvolvedRecurrence):
    """Gated DeltaNet (Qwen3-Next): a key x value state per value head and a short convolution of `kernel` taps."""

    SUMMARY_FIELDS = ("value_dim", "key_heads", "value_heads", "key_dim", "kernel")
    heads_field = "value_heads"
    cache_heads_field = "key_heads"
    scanned = True

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
        return kv.convolution_channels(self.value_heads, self.value_dim, self.key_heads, self.key_dim)

    def recurrent_elements(self) -> Any:
        """A key x value matrix per value head."""
        return kv.gated_delta_state(self.value_heads, self.key_dim, self.value_dim)

    def recurrent_flop(self) -> Any:
        """Decay, read, write and query of that matrix."""
        return gated_delta_flop(self.value_heads, self.key_dim, self.value_dim)


# -- lightning attention (MiniMax-01): linear attention, with a matrix of state per head ----------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Lightning(Mixer):
    """Lightning (linear) attention of MiniMax-01: a head_dim x head_dim state per head."""

    SUMMARY_FIELDS = ("heads", "head_dim")
    heads_field = "heads"
    cache_heads_field = "heads"

    hidden: Any
    heads: Any
    head_dim: Any

    def params(self) -> Any:
        """Projections of queries, keys, values, output gates and outputs."""
        return lightning_params(self.hidden, self.heads, self.head_dim)

    def state_elements(self) -> Any:
        """A key x value matrix per head."""
        return kv.gated_delta_state(self.heads, self.head_dim, self.head_dim)

    def recurrence_flop_per_token(self) -> Any:
        """Decay, write and query of that matrix."""
        return lightning_flop(self.heads, self.head_dim)


# -- RWKV-4: time mixing with a decay per channel in place of attention; it keeps two sums and the last input, whatever the context 


@dataclass(frozen=True, slots=True, kw_only=True)
class Rwkv(Mixer):
    """Time mixing of RWKV-4, and the receptance gate of its channel mixing."""

    SUMMARY_FIELDS = ("inner",)
    heads_field = "inner"
    cache_heads_field = "inner"

    hidden: Any
    inner: Any

    def params(self) -> Any:
        """Receptance, key, value and output, and the receptance of channel mixing."""
        return rwkv_params(self.hidden, self.inner)

    def state_elements(self) -> Any:
        """Two sums and a maximum per channel, and the last input of both mixings."""
        return kv.rwkv_state(self.hidden, self.inner)

    def recurrence_flop_per_token(self) -> Any:
        """Update and read of the sums."""
        return rwkv_flop(self.inner)


# -- A gated short convolution in place of attention (LFM2): it remembers the last few inputs and nothing else ------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortConvolution(ConvolvedRecurrence):
    """A gated short convolution of `kernel` taps over the hidden state (LFM2)."""

    SUMMARY_FIELDS = ("kernel",)
    heads_field = "hidden"
    cache_heads_field = "hidden"

    hidden: Any

    def matrix_params(self) -> Any:
        """Projections to two gates and a value, and of outputs."""
        return short_convolution_params(self.hidden)

    def channels(self) -> Any:
        """The hidden state."""
        return self.hidden


# -- two mixers side by side in one layer (Falcon-H1): attention and a state space read the same input, and their outputs are added 


FOUR_MATMULS = known(4, "matmuls", "", "constant", "projections in and out of each of two mixers")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelMixer(Mixer):
    """Grouped-query attention beside a recurrence in one layer."""

    matmuls = FOUR_MATMULS
    softmax = True

    attention: Attention
    recurrence: ConvolvedRecurrence

    def params(self) -> Any:
        """Parameters of both."""
        return self.attention.params() + self.recurrence.params()

    def kv_params(self) -> Any:
        """Projections of keys and values."""
        return self.attention.kv_params()

    def query_heads(self) -> Any:
        """Query heads of the attention."""
        return self.attention.query_heads()

    def cache_heads(self) -> Any:
        """KV heads of the attention."""
        return self.attention.cache_heads()

    def head_elements(self) -> Any:
        """Width of a key."""
        return self.attention.head_elements()

    def stores(self) -> tuple[CacheStore, ...]:
        """The KV cache of the attention."""
        return self.attention.stores()

    def spans(self) -> tuple[AttentionSpan, ...]:
        """The reads of the attention."""
        return self.attention.spans()

    def state_elements(self) -> Any:
        """The state of the recurrence."""
        return self.recurrence.state_elements()

    def recurrence_flop_per_token(self) -> Any:
        """The FLOPs of the recurrence."""
        return self.recurrence.recurrence_flop_per_token()

    def summary(self) -> dict[str, Any]:
        """Both mixers: attention first, the fields of the recurrence under `recurrence`."""
        return {**self.attention.summary(), "recurrence": {"kind": type(self.recurrence).__name__, **self.recurrence.summary()}}

    def with_pattern(self, pattern: AttentionPattern) -> Mixer:
        """The layer with another attention pattern."""
        return replace(self, attention=self.attention.with_pattern(pattern))

    def with_kv_share(self, layers: Number) -> Mixer:
        """The layer with one KV cache for so many layers."""
        return replace(self, attention=self.attention.with_kv_share(layers))

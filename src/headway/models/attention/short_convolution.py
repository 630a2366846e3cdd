"""A gated short convolution in place of attention (LFM2): it remembers the last few inputs and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from headway.laws.architecture.params import short_convolution_params
from headway.models.attention import ConvolvedRecurrence


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortConvolution(ConvolvedRecurrence):
    """A gated short convolution of `kernel` taps over the hidden state (LFM2)."""

    SUMMARY_FIELDS: ClassVar[tuple[str, ...]] = ("kernel",)
    heads_field: ClassVar[str] = "hidden"
    cache_heads_field: ClassVar[str] = "hidden"

    hidden: Any

    def matrix_params(self) -> Any:
        """Projections to two gates and a value, and of outputs."""
        return short_convolution_params(self.hidden)

    def channels(self) -> Any:
        """The hidden state."""
        return self.hidden

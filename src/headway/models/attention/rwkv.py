"""RWKV-4: time mixing with a decay per channel in place of attention; it keeps two sums and the last input, whatever the context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from headway.laws.architecture.attention import rwkv_flop
from headway.laws.architecture.params import rwkv_params
from headway.models.attention import Mixer


@dataclass(frozen=True, slots=True, kw_only=True)
class Rwkv(Mixer):
    """Time mixing of RWKV-4, and the receptance gate of its channel mixing."""

    SUMMARY_FIELDS: ClassVar[tuple[str, ...]] = ("inner",)
    heads_field: ClassVar[str] = "inner"
    cache_heads_field: ClassVar[str] = "inner"

    hidden: Any
    inner: Any

    def params(self) -> Any:
        """Receptance, key, value and output, and the receptance of channel mixing."""
        return rwkv_params(self.hidden, self.inner)

    def state_elements(self) -> Any:
        """Two sums and a maximum per channel, and the last input of both mixings."""
        from headway.laws.architecture.kv import rwkv_state

        return rwkv_state(self.hidden, self.inner)

    def recurrence_flop_per_token(self) -> Any:
        """Update and read of the sums."""
        return rwkv_flop(self.inner)

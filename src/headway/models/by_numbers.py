"""Flags of a model by numbers, in place of its name: `--params 30B --active 3B --layers 48 --kv-bytes 100kB`."""

from __future__ import annotations

from collections.abc import Mapping

from headway.core.errors import BadValue, clip
from headway.core.question import FlagGroup, SpelledRecord, declared, field
from headway.core.schema import Field

MOST = 10**9


def _count(help: str) -> Field:
    return Field(word="N", integer=True, low=1, high=MOST, open_low=False, help=help)


class ByNumbers(SpelledRecord):
    """A model by its totals, or a decoder by its shape; `models/numbers.py` makes the model."""

    params = field(
        word="N", low=1e3, high=1e16, help="parameters in all: --params 30B --active 3B --layers 48 --kv-bytes 100kB in place of MODEL"
    )
    active = field(word="N", low=1e3, high=1e16, help="parameters that one token uses (default all)")
    layers = field(word="N", integer=True, low=1, high=100_000, open_low=False, help="layers; of a model by name, write NAME:12layers")
    kv_bytes = field("byte", word="N", low=0, open_low=False, help="KV cache that a token adds, in 2-byte elements")
    hidden = declared(_count("width of the residual stream: --hidden 4096 --layers 32 in place of MODEL is a decoder as Llama"))
    heads = declared(_count("query heads (default hidden / head-dim)"))
    kv_heads = declared(_count("KV heads (default 8, or as many as query heads; beside --params as many as the cache holds)"))
    head_dim = declared(_count("width of a head (default 128)"))
    intermediate = declared(_count("width of the FFN, or of an expert (default 8/3 of hidden)"))
    vocab = declared(_count("rows of the embedding (default 128256)"))
    experts = declared(_count("routed experts"))
    experts_per_token = declared(_count("experts that a token uses (default 8)"))

    leading = ("params", "hidden")  # each describes a model alone

    @staticmethod
    def spelled(parts: Mapping[str, str]) -> str:
        """The one word of a model by numbers.

        >>> ByNumbers.spelled({"params": "8B", "layers": "32"})
        '(params=8B layers=32)'
        """
        for value in parts.values():
            if any(sign in value for sign in "()= ,") or not value:
                raise BadValue("model by numbers", clip(value), "one number a flag, such as --params 30B")
        return f"({' '.join(f'{key}={value}' for key, value in parts.items())})"


BY_NUMBERS = FlagGroup(ByNumbers, "a model by numbers, in place of MODEL", into="model", is_brief=True)

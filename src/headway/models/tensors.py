"""The matrices of a layer by kind and shape: what a file that gives each kind its own number format stores (models/gguf.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """Matrices of one kind in a layer: values | key | query | output | up | down | router | other."""

    kind: str
    width: Any  # numbers in a row, which is what a block of a format divides: the inputs of the matrix
    dims: tuple[Any, ...]  # whose product is the count of parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTensors:
    """Matrices of a layer by part."""

    mixer: tuple[Tensor, ...] = ()
    ffn: tuple[Tensor, ...] = ()
    expert: tuple[Tensor, ...] = ()  # of one routed expert

"""Bytes by which an allocator rounds the matrices of weights up on the fullest chip, of a stage's layers before stages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headway.core.quantity import known
from headway.laws.architecture.params import vector_params
from headway.laws.arithmetic import sum_over_blocks
from headway.laws.step.layer_terms import chip_params, expert_share_held, experts_held
from headway.laws.step.memory import allocator_padding
from headway.models.attention import Tensor
from headway.models.work import LayerWork, ModelWork
from headway.performance.formats import Formats
from headway.performance.layout import Layout
from headway.performance.splits import Splits

NO_BYTES = known(0.0, "nothing", "byte", "constant", "no matrix")
FUSED = ("query", "key", "values")  # one matrix in engines


def padding_bytes(work: ModelWork, layout: Layout, formats: Formats, splits: Splits) -> Any:
    """Bytes beyond those of the weights themselves: each matrix of a layer as engines fuse it, experts of a layer together."""
    layers = []
    for block, (mixer, ffn, expert) in zip(work.blocks, formats.weights, strict=True):
        sizes = [params * mixer.bytes for params in _mixer(block, layout, splits)]
        sizes += [params * ffn.bytes for params in _common(block, layout, splits)]
        sizes += [params * expert.bytes for params in _experts(block, layout, splits)]
        layers.append(sum((allocator_padding(size) for size in sizes), start=NO_BYTES))
    return sum_over_blocks(tuple(block.count for block in work.blocks), tuple(layers))


def _params(tensor: Tensor) -> Any:
    return vector_params((tensor.dims,))


def _mixer(block: LayerWork, layout: Layout, splits: Splits) -> Iterator[Any]:
    """Parameters of the fused projection of queries, keys and values, and of the output projection, on a chip."""
    heads, kv = splits.weight_share("head_projections", layout), splits.weight_share("kv_projections", layout, block.kv_heads)
    shares = {"query": heads, "key": kv, "values": kv}
    fused = [chip_params(_params(tensor), shares[tensor.kind]) for tensor in block.tensors.mixer if tensor.kind in FUSED]
    if fused:
        yield sum(fused)
    yield from (chip_params(_params(tensor), heads) for tensor in block.tensors.mixer if tensor.kind == "output")


def _common(block: LayerWork, layout: Layout, splits: Splits) -> Iterator[Any]:
    """Parameters of the projections of a dense layer, or of shared experts, up with gate and down, on a chip."""
    share = splits.weight_share("shared_experts" if block.experts else "dense_ffn", layout)
    return (chip_params(_params(tensor), share) for tensor in block.tensors.ffn if tensor.kind in ("up", "down"))


def _experts(block: LayerWork, layout: Layout, splits: Splits) -> Iterator[Any]:
    """Parameters of all routed experts of a layer on the fullest chip, up with gate and down."""
    if not block.experts:
        return
    tp, cp, dp = (splits.degree("routed_experts", axis, layout) for axis in ("tp", "cp", "dp"))
    on_chip = experts_held(block.experts, layout.redundant, layout.ep)
    share = expert_share_held(block.experts, on_chip, tp * cp * dp / layout.ep)
    yield from (_params(tensor) * block.experts * share for tensor in block.tensors.expert)

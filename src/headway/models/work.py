"""What a model asks of a machine: each kind of layer (parameters, cache stored and read, FLOPs of scores and state), embedding and head.

Everything is per layer, all heads, unsharded; a layout divides it. A mixer answers for itself (attention/), a feed-forward part here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from headway.core.quantity import known
from headway.core.units import Number
from headway.laws.architecture import params
from headway.models.attention import TWO_MATMULS, AttentionSpan, CacheStore, LayerTensors, Tensor
from headway.models.model import Block, Dense, FeedForward, Model, MoE, Tower

# Families whose query, key and value llama.cpp keeps as one matrix (attn_qkv).
FUSED_QKV = re.compile(r"phi-?[34]|^falcon(-?\d.*)?$|bloom|mpt|gpt_?neox|pythia|gpt-?2|chatglm|dbrx|gpt_bigcode|^qwen(-?1)?$")
ROUTER = known(1, "matmuls", "", "constant", "the router")
INNER_KERNELS = known(0, "inner kernels", "", "constant", "and one for each norm within, rotation and activation")
BESIDE = known(
    2, "matmuls", "", "constant",
    "up and down of the shared experts: on a stream of their own, or as one more routed expert (sgl-project/sglang#4918, "
    "vllm-project/vllm#51754)",
)  # fmt: skip
ROUTER_AND_SHARED = known(3, "matmuls", "", "constant", "the router, and up and down of the shared experts")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWork:
    """What one layer of a block asks for; `count` layers are alike."""

    count: Any
    mixer_params: Any
    mixer_whole_params: Any  # of them, those that tensor parallelism does not split
    mixer_scan_params: Any  # of these, those of an indexer
    mixer_kv_params: Any  # of all, those split as the KV heads are
    dense_ffn_params: Any  # the dense FFN; in an MoE layer the router and the shared experts
    router_params: Any  # of these, the router's
    latent_expert_params: Any  # and the projections to and from the width of latent experts
    expert_params: Any  # one routed expert, 0 where there is none
    experts: Any
    experts_per_token: Any
    expert_groups: Any  # the router's limit: a token's experts lie in `groups_chosen` of so many groups
    groups_chosen: Any
    other_params: Any  # norms, biases and scales: no matmul
    heads: Any
    kv_heads: Any
    spans: tuple[AttentionSpan, ...]
    stores: tuple[CacheStore, ...]
    forming: tuple[CacheStore, ...]  # what engines hold of entries to come
    state_elements: Any
    recurrence_flop_per_token: Any
    mixer_matmuls: Any
    ffn_matmuls: Any  # without those of the routed experts
    wide_matmuls: Any  # of both, those in 16 bits whatever the format of the weights: a router, absorbed products
    beside_matmuls: Any  # and shared experts', which run while the routed ones do
    inner_kernels: Any  # small ones beside the norms: rotation with the write to the cache, norms inside the mixer, the activation
    latent: bool
    scanned: bool  # prompts pass the state in chunks, each after the one before
    head: Any
    tensors: LayerTensors
    mixer_dtype: str
    state_dtype: str
    ffn_dtype: str
    expert_dtype: str
    scale_block: int = 0  # side of the squares of fp8 weights that share a scale
    is_stated: bool = False  # of a model by numbers, whose widths follow from totals


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWork:
    """Work of a model: its layers by kind, with the sums over them."""

    name: str
    hidden: Any
    vocab: Any
    blocks: tuple[LayerWork, ...]
    layers: Any
    ffns: Any  # layers with a dense FFN
    moes: Any
    table_params: Any  # embedding; the output head multiplies equally many
    head_params: Any  # stored in addition to the embedding: 0 when tied
    vector_params: Any  # final norm, learned positions and other vectors
    embedding_dtype: str
    head_dtype: str  # "": as the embedding, or as files of the weights' format have it
    fused_qkv: bool  # GGUF files keep query, key and value as one matrix
    expert_load: tuple[Any, ...] = ()  # tokens per routed expert, where measured
    tower: Tower | None = None
    shares_embedding: bool = False  # with the model for which it drafts


def work_of(model: Model, expert_load: tuple[Any, ...] = ()) -> ModelWork:
    """Work of a model, its layers counted by kind."""
    blocks = works(model)
    table, head = embedding_and_head(model)
    return ModelWork(
        name=model.name, hidden=model.hidden, vocab=model.vocab, blocks=blocks, layers=_count(blocks),
        ffns=_count(tuple(block for block in blocks if block.dense_ffn_params and not block.experts)),
        moes=_count(tuple(block for block in blocks if block.experts)), table_params=table, head_params=head,
        vector_params=other_params(model), embedding_dtype=_engine_format(model.precision.embedding),
        head_dtype=_engine_format(model.precision.head), fused_qkv=bool(FUSED_QKV.search(model.family.lower())),
        expert_load=expert_load, tower=model.tower,
    )  # fmt: skip


def _engine_format(stored: str) -> str:
    """Format in which engines hold a part: 32 bits of a checkpoint become 16 as it is loaded (`--dtype auto` of vLLM and SGLang)."""
    return "bf16" if stored == "fp32" else stored


def _count(blocks: tuple[LayerWork, ...]) -> Any:
    return sum(block.count for block in blocks)


def works(model: Model) -> tuple[LayerWork, ...]:
    """The work of each block of equal layers."""
    return tuple(block_work(block, model) for block in model.blocks)


def embedding_and_head(model: Model) -> tuple[Any, Any]:
    """Parameters of the embedding table, and of the head: 0 where it is the same table."""
    table = model.vocab * model.embedding_dim
    return table, 0 if model.tied else model.vocab * model.embedding_dim


def other_params(model: Model) -> Any:
    """Final norm, learned positions and the like."""
    return params.vector_params(tuple(vector.dims for vector in model.vectors)) if model.vectors else 0


def block_work(block: Block, model: Model) -> LayerWork:
    """What one layer of `block` asks for."""
    mixer = block.attention
    ffn = ffn_work(block.ffn)
    vectors = block.vectors
    return LayerWork(
        count=block.count, mixer_params=mixer.params(), mixer_whole_params=mixer.whole_params(), mixer_scan_params=mixer.scan_params(),
        mixer_kv_params=mixer.kv_params(), dense_ffn_params=ffn[0], router_params=_router_params(block.ffn),
        latent_expert_params=_latent_params(block.ffn), expert_params=ffn[1], experts=ffn[2], experts_per_token=ffn[3],
        expert_groups=block.ffn.groups if isinstance(block.ffn, MoE) else 1,
        groups_chosen=block.ffn.groups_chosen if isinstance(block.ffn, MoE) else 1,
        other_params=params.vector_params(tuple(vector.dims for vector in vectors)) if vectors else 0,
        heads=mixer.query_heads(), kv_heads=mixer.cache_heads(), spans=mixer.spans(), stores=mixer.stores(),
        forming=mixer.forming(), state_elements=mixer.state_elements(), recurrence_flop_per_token=mixer.recurrence_flop_per_token(),
        mixer_matmuls=mixer.matmuls, ffn_matmuls=ffn_matmuls(block.ffn), inner_kernels=inner_kernels(block),
        wide_matmuls=mixer.wide_matmuls + (ROUTER if isinstance(block.ffn, MoE) else 0), beside_matmuls=beside_matmuls(block.ffn),
        latent=mixer.latent, scanned=mixer.scanned, head=mixer.head_elements(),
        tensors=LayerTensors(mixer=mixer.tensors(), **ffn_tensors(block.ffn)),
        mixer_dtype=_engine_format(model.precision.mixer), state_dtype=model.precision.state,
        ffn_dtype=_engine_format(model.precision.ffn), expert_dtype=_engine_format(model.precision.expert),
        scale_block=model.precision.scale_block, is_stated=mixer.is_stated,
    )  # fmt: skip


def ffn_work(ffn: FeedForward) -> tuple[Any, Any, Any, Any]:
    """(what every token uses, one routed expert, experts, experts per token)."""
    if isinstance(ffn, Dense):
        return params.ffn_params(ffn.hidden, ffn.intermediate, ffn.matrices, ffn.biases), 0, 0, 0
    if isinstance(ffn, MoE):
        common = params.moe_common_params(
            ffn.hidden, ffn.experts, ffn.shared_experts, ffn.shared_intermediate, ffn.shared_matrices, ffn.shared_gates
        )
        if ffn.latent:
            common = common + _latent_params(ffn)
        expert = params.ffn_params(ffn.latent or ffn.hidden, ffn.intermediate, ffn.matrices, ffn.biases)
        return common, expert, ffn.experts, ffn.per_token
    return 0, 0, 0, 0


def _router_params(ffn: FeedForward) -> Any:
    return params.moe_common_params(ffn.hidden, ffn.experts, 0, 0, 0, ffn.shared_gates) if isinstance(ffn, MoE) else 0


def _latent_params(ffn: FeedForward) -> Any:
    return params.latent_expert_params(ffn.hidden, ffn.latent) if isinstance(ffn, MoE) and ffn.latent else 0


def ffn_tensors(ffn: FeedForward) -> dict[str, tuple[Tensor, ...]]:
    """Matrices of the feed-forward part that every token uses, and of one routed expert."""
    if isinstance(ffn, Dense):
        return {"ffn": _up_and_down(ffn.hidden, ffn.intermediate, ffn.matrices)}
    if not isinstance(ffn, MoE):
        return {}
    shared = _up_and_down(ffn.hidden, ffn.shared_intermediate, ffn.shared_matrices, ffn.shared_experts) if ffn.shared_experts else ()
    router = Tensor(kind="router", width=ffn.hidden, dims=(ffn.hidden, ffn.experts + ffn.shared_gates))
    return {"ffn": (router, *shared), "expert": _up_and_down(ffn.latent or ffn.hidden, ffn.intermediate, ffn.matrices)}


def _up_and_down(hidden: Number, intermediate: Number, matrices: Number, copies: Number = 1) -> tuple[Tensor, ...]:
    """Projections to the inner width, with the gate where there are three matrices, and the projection back."""
    ups = TWO_MATMULS if int(matrices) == 3 else 1
    return (
        Tensor(kind="up", width=hidden, dims=(copies, ups, hidden, intermediate)),
        Tensor(kind="down", width=intermediate, dims=(copies, intermediate, hidden)),
    )


def inner_kernels(block: Block) -> Any:
    """Small kernels of a layer that are neither matmuls, attention nor the norms before its mixer and its FFN."""
    inner_norms = [1 for vector in block.vectors if "norm" in vector.name and vector.name != "norms"]
    rotation = [1] if block.attention.spans() else []
    activation = [1] if isinstance(block.ffn, Dense) or (isinstance(block.ffn, MoE) and block.ffn.shared_experts) else []
    return sum((*inner_norms, *rotation, *activation), start=INNER_KERNELS)


def ffn_matmuls(ffn: FeedForward) -> Any:
    """Dense matrix multiplications of a feed-forward layer."""
    if isinstance(ffn, MoE):
        return ROUTER_AND_SHARED if ffn.shared_experts else ROUTER
    return TWO_MATMULS if isinstance(ffn, Dense) else 0


def beside_matmuls(ffn: FeedForward) -> Any:
    """Dense matrix multiplications of a feed-forward layer that start beside its routed experts, and cost no time of their own to start."""
    return BESIDE if isinstance(ffn, MoE) and ffn.shared_experts else 0


def kernels_of_layer(layer: LayerWork) -> tuple[Any, Any, Any, Any]:
    """Kernels of a layer but attention and routed experts: matmuls, of them those in 16 bits and those beside the experts, small ones."""
    return layer.mixer_matmuls + layer.ffn_matmuls, layer.wide_matmuls, layer.beside_matmuls, layer.inner_kernels

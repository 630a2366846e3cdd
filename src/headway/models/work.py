"""What one layer of each kind asks of a machine: parameters, cache stored and read, FLOP to look back. Glue: the arithmetic is in laws/.

Everything is per layer, all heads, unsharded. A layout divides it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headway.core.quantity import known
from headway.laws import arithmetic
from headway.laws.architecture import attention as score
from headway.laws.architecture import kv, params
from headway.laws.architecture import params as mixer_params
from headway.models.model import (
    NO_LIMIT,
    NONE,
    UNITY,
    Attention,
    AttentionPattern,
    Block,
    CompressedAttention,
    Dense,
    FeedForward,
    GatedDelta,
    Indexer,
    LatentAttention,
    Lightning,
    Mamba,
    Mamba2,
    Mixer,
    Model,
    MoE,
    NoMixer,
    ShortConvolution,
)

ZERO_FLOP = known(0.0, "no look back", "flop/token", "constant", "the architecture has no such part")
TWO_MATMULS = known(2, "matmuls", "", "constant", "projections in, projections out; up with gate, down")
LATENT_MATMULS = known(
    6, "matmuls", "", "constant", "DeepSeek-V2 (arXiv:2405.04434): query down and up, KV down, two absorbed products, output"
)
ROUTER = known(1, "matmuls", "", "constant", "the router")
ROUTER_AND_SHARED = known(3, "matmuls", "", "constant", "the router, and up and down of the shared experts")
WIDE_HEAD = known(128, "head", "", "constant", "as wide as a tile of the kernels")
ONE_TOKEN = known(1, "one token", "token", "constant", "by definition")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionSpan:
    """One way of looking back: at attended_tokens(context, cap_tokens, sqrt_tokens) tokens."""

    what: str  # kv | index | window | compressed
    cap_tokens: Any
    read_elements_per_token: Any
    decode_score_flop: Any  # per query and token looked at
    prefill_score_flop: Any
    sqrt_tokens: Any = NO_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStore:
    """One kind of cache: elements per token, of `cap_tokens` tokens at most."""

    what: str  # kv | index | window | compressed
    elements_per_token: Any
    cap_tokens: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class MixerWork:
    """What the mixer of one layer asks for."""

    params: Any
    whole_params: Any = NONE  # of them, those that every tensor-parallel chip holds whole: they make what all heads share
    kv_params: Any = NONE  # of them, those split as the KV heads are
    heads: Any = UNITY  # query heads, which tensor parallelism divides
    kv_heads: Any = UNITY  # ways the cache can be split
    spans: tuple[AttentionSpan, ...] = ()
    stores: tuple[CacheStore, ...] = ()
    state_elements: Any = NONE
    recurrence_flop_per_token: Any = ZERO_FLOP
    matmuls: Any = TWO_MATMULS
    latent: bool = False
    head: Any = WIDE_HEAD  # elements of a head


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWork:
    """What one layer of a block asks for; `count` layers are alike."""

    count: Any
    mixer_params: Any
    mixer_whole_params: Any  # of them, those that tensor parallelism does not split
    mixer_kv_params: Any  # of them, those split as the KV heads are
    dense_ffn_params: Any  # the dense FFN; in an MoE layer the router and the shared experts
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
    state_elements: Any
    recurrence_flop_per_token: Any
    mixer_matmuls: Any
    ffn_matmuls: Any  # without those of the routed experts
    latent: bool
    head: Any
    mixer_dtype: str
    ffn_dtype: str
    expert_dtype: str


def block_work(block: Block, model: Model) -> LayerWork:
    """What one layer of `block` asks for."""
    mixer = mixer_work(block.attention)
    ffn = ffn_work(block.ffn)
    vectors = block.vectors
    return LayerWork(
        count=block.count, mixer_params=mixer.params, mixer_whole_params=mixer.whole_params, mixer_kv_params=mixer.kv_params,
        dense_ffn_params=ffn[0], expert_params=ffn[1], experts=ffn[2], experts_per_token=ffn[3],
        expert_groups=block.ffn.groups if isinstance(block.ffn, MoE) else UNITY,
        groups_chosen=block.ffn.groups_chosen if isinstance(block.ffn, MoE) else UNITY,
        other_params=params.vector_params(tuple(vector.dims for vector in vectors)) if vectors else NONE,
        heads=mixer.heads, kv_heads=mixer.kv_heads, spans=mixer.spans, stores=mixer.stores,
        state_elements=mixer.state_elements, recurrence_flop_per_token=mixer.recurrence_flop_per_token,
        mixer_matmuls=mixer.matmuls, ffn_matmuls=ffn_matmuls(block.ffn), latent=mixer.latent, head=mixer.head,
        mixer_dtype=model.precision.mixer, ffn_dtype=model.precision.ffn, expert_dtype=model.precision.expert,
    )  # fmt: skip


def ffn_work(ffn: FeedForward) -> tuple[Any, Any, Any, Any]:
    """(what every token uses, one routed expert, experts, experts per token)."""
    if isinstance(ffn, Dense):
        return params.ffn_params(ffn.hidden, ffn.intermediate, ffn.matrices, ffn.biases), NONE, NONE, NONE
    if isinstance(ffn, MoE):
        common = params.moe_common_params(
            ffn.hidden, ffn.experts, ffn.shared_experts, ffn.shared_intermediate, ffn.shared_matrices, ffn.shared_gates
        )
        expert = params.ffn_params(ffn.hidden, ffn.intermediate, ffn.matrices, ffn.biases)
        return common, expert, ffn.experts, ffn.per_token
    return NONE, NONE, NONE, NONE


def ffn_matmuls(ffn: FeedForward) -> Any:
    """Dense matrix multiplications of a feed-forward layer."""
    if isinstance(ffn, MoE):
        return ROUTER_AND_SHARED if ffn.shared_experts else ROUTER
    return TWO_MATMULS if isinstance(ffn, Dense) else NONE


def mixer_work(mixer: Mixer) -> MixerWork:
    """What the mixer of one layer asks for, by its kind."""
    return MIXERS[type(mixer)](mixer)


def _spans(look: AttentionPattern, read: Any, decode: Any, prefill: Any) -> tuple[AttentionSpan, ...]:
    if look.name == "none":
        return ()
    return (
        AttentionSpan(
            what="kv",
            cap_tokens=look.cap_tokens,
            read_elements_per_token=read,
            decode_score_flop=decode,
            prefill_score_flop=prefill,
            sqrt_tokens=look.sqrt_tokens,
        ),
    )


def _stores(look: AttentionPattern, elements: Any) -> tuple[CacheStore, ...]:
    return () if look.name == "none" else (CacheStore(what="kv", elements_per_token=elements, cap_tokens=look.kept_tokens),)


def _index(indexer: Indexer | None) -> tuple[tuple[AttentionSpan, ...], tuple[CacheStore, ...]]:
    """The indexer scores every token of the context, so it reads every index key."""
    if indexer is None:
        return (), ()
    key, flop = kv.entry_elements(indexer.dim), score.index_score_flop(indexer.heads, indexer.dim)
    span = AttentionSpan(what="index", cap_tokens=NO_LIMIT, read_elements_per_token=key, decode_score_flop=flop, prefill_score_flop=flop)
    return (span,), (CacheStore(what="index", elements_per_token=key, cap_tokens=NO_LIMIT),)


def _index_params(hidden: Any, indexer: Indexer | None) -> tuple[Any, ...]:
    """An index key is one for all heads, so its indexer is not split."""
    if indexer is None:
        return ()
    return (mixer_params.indexer_params(hidden, indexer.query_input, indexer.heads, indexer.dim, indexer.head_weights),)


def _attention(a: Attention) -> MixerWork:
    base = mixer_params.attention_params(a.hidden, a.heads, a.kv_heads, a.head_dim, a.value_dim, a.query_copies, a.stacks, a.kv_share)
    flop = score.score_flop(a.heads, a.head_dim, a.value_dim)
    spans, stores = _index(a.indexer)
    index = _index_params(a.hidden, a.indexer)
    return MixerWork(
        params=arithmetic.total((base, *index)), whole_params=arithmetic.total(index) if index else NONE,
        kv_params=mixer_params.kv_projection_params(a.hidden, a.kv_heads, a.head_dim, a.value_dim, a.stacks, a.kv_share),
        heads=a.heads, kv_heads=a.kv_heads, head=a.head_dim,
        spans=(*_spans(a.look, kv.kv_elements_read(a.kv_heads, a.head_dim, a.value_dim), flop, flop), *spans),
        stores=(*_stores(a.look, kv.kv_elements(a.kv_heads, a.head_dim, a.value_dim, a.kv_share)), *stores) if a.caches else (),
    )  # fmt: skip


def _latent(a: LatentAttention) -> MixerWork:
    if a.query_rank is None:
        base = mixer_params.latent_attention_params_full_query(
            a.hidden, a.heads, a.kv_rank, a.nope_dim, a.rope_dim, a.value_dim, a.kv_share
        )
    else:
        base = mixer_params.latent_attention_params(
            a.hidden, a.heads, a.query_rank, a.kv_rank, a.nope_dim, a.rope_dim, a.value_dim, a.kv_share
        )
    absorbed = score.latent_score_flop_absorbed(a.heads, a.kv_rank, a.rope_dim)
    # Picking tokens query by query leaves no shared keys to expand, so a sparse prefill is absorbed too.
    expanded = absorbed if a.indexer else score.latent_score_flop_expanded(a.heads, a.nope_dim, a.rope_dim, a.value_dim)
    spans, stores = _index(a.indexer)
    index = _index_params(a.hidden, a.indexer)
    down = mixer_params.latent_whole_params(a.hidden, NONE if a.query_rank is None else a.query_rank, a.kv_rank, a.rope_dim, a.kv_share)
    return MixerWork(
        params=arithmetic.total((base, *index)), whole_params=arithmetic.total((down, *index)), heads=a.heads,
        matmuls=LATENT_MATMULS, latent=True,
        spans=(*_spans(a.look, kv.latent_elements_read(a.kv_rank, a.rope_dim), absorbed, expanded), *spans),
        stores=(*_stores(a.look, kv.latent_elements(a.kv_rank, a.rope_dim, a.kv_share)), *stores),
    )  # fmt: skip


def _compressed(a: CompressedAttention) -> MixerWork:
    """A window of uncompressed entries, and behind it compressed ones, all of them or those that an indexer picks."""
    parts = [mixer_params.compressed_attention_params(a.hidden, a.heads, a.head_dim, a.query_rank, a.output_groups, a.output_rank)]
    shared = mixer_params.compressed_whole_params(a.hidden, a.query_rank, a.head_dim)
    flop, entry = score.score_flop(a.heads, a.head_dim, a.head_dim), kv.entry_elements(a.head_dim)
    spans = [
        AttentionSpan(what="window", cap_tokens=a.window, read_elements_per_token=entry, decode_score_flop=flop, prefill_score_flop=flop)
    ]
    stores = [CacheStore(what="window", elements_per_token=entry, cap_tokens=a.window)]
    if a.look is not None:
        spans, stores = list(_spans(a.look, entry, flop, flop)), list(_stores(a.look, entry))
    elif a.ratio is not None:
        parts.append(mixer_params.compressor_params(a.hidden, a.head_dim, a.overlap))
        elements, spread = kv.compressed_elements(a.head_dim, a.ratio), score.compressed_score_flop(flop, a.ratio, ONE_TOKEN)
        cap = NO_LIMIT if a.top_entries is None else kv.compressed_cap(a.top_entries, a.ratio)
        spans.append(
            AttentionSpan(
                what="compressed", cap_tokens=cap, read_elements_per_token=elements, decode_score_flop=spread, prefill_score_flop=spread
            )
        )
        stores.append(CacheStore(what="compressed", elements_per_token=elements, cap_tokens=NO_LIMIT))
    if a.indexer is not None and a.ratio is not None and a.look is None:
        i = a.indexer
        parts.append(mixer_params.compressed_indexer_params(a.hidden, i.query_input, i.heads, i.dim))
        parts.append(mixer_params.compressor_params(a.hidden, i.dim, a.overlap))
        key = kv.compressed_elements(i.dim, a.ratio)
        scan = score.compressed_score_flop(score.index_score_flop(i.heads, i.dim), a.ratio, ONE_TOKEN)
        spans.append(
            AttentionSpan(what="index", cap_tokens=NO_LIMIT, read_elements_per_token=key, decode_score_flop=scan, prefill_score_flop=scan)
        )
        stores.append(CacheStore(what="index", elements_per_token=key, cap_tokens=NO_LIMIT))
    unsplit_params = arithmetic.total((shared, *parts[1:]))
    return MixerWork(
        params=arithmetic.total(tuple(parts)), whole_params=unsplit_params, heads=a.heads, spans=tuple(spans), stores=tuple(stores)
    )


def _gated_delta(a: GatedDelta) -> MixerWork:
    channels = kv.convolution_channels(a.value_heads, a.value_dim, a.key_heads, a.key_dim)
    matrices = mixer_params.gated_delta_params(a.hidden, a.key_heads, a.value_heads, a.key_dim, a.value_dim)
    if a.gate_rank is not None:
        matrices = mixer_params.kimi_delta_params(a.hidden, a.value_heads, a.value_dim, a.gate_rank)
    return _recurrent(
        matrices, a.value_heads, a.key_heads, channels, a.kernel,
        kv.gated_delta_state(a.value_heads, a.key_dim, a.value_dim), score.gated_delta_flop(a.value_heads, a.key_dim, a.value_dim),
    )  # fmt: skip


def _short_convolution(a: ShortConvolution) -> MixerWork:
    matrices = mixer_params.short_convolution_params(a.hidden)
    return _recurrent(matrices, a.hidden, a.hidden, a.hidden, a.kernel, NONE, ZERO_FLOP)


def _lightning(a: Lightning) -> MixerWork:
    return MixerWork(
        params=mixer_params.lightning_params(a.hidden, a.heads, a.head_dim), heads=a.heads, kv_heads=a.heads,
        state_elements=kv.gated_delta_state(a.heads, a.head_dim, a.head_dim),
        recurrence_flop_per_token=score.lightning_flop(a.heads, a.head_dim),
    )  # fmt: skip


def _mamba(a: Mamba) -> MixerWork:
    return _recurrent(
        mixer_params.mamba_params(a.hidden, a.inner, a.state, a.dt_rank), a.inner, a.inner, a.inner, a.kernel,
        kv.ssm_state(a.inner, a.state), score.ssm_flop(a.inner, a.state),
    )  # fmt: skip


def _mamba2(a: Mamba2) -> MixerWork:
    channels = kv.convolution_channels(a.heads, a.head_dim, a.groups, a.state)
    return _recurrent(
        mixer_params.mamba2_params(a.hidden, a.heads, a.head_dim, a.groups, a.state), a.heads, a.heads, channels, a.kernel,
        kv.gated_delta_state(a.heads, a.head_dim, a.state), score.mamba2_flop(a.heads, a.head_dim, a.state),
    )  # fmt: skip


def _recurrent(matrices: Any, heads: Any, kv_heads: Any, channels: Any, kernel: Any, state: Any, flop: Any) -> MixerWork:
    """A recurrence with a short convolution before it."""
    return MixerWork(
        params=arithmetic.total((matrices, mixer_params.convolution_params(channels, kernel))), heads=heads, kv_heads=kv_heads,
        state_elements=kv.state_sum(state, kv.convolution_state(channels, kernel)),
        recurrence_flop_per_token=score.recurrence_flop(flop, score.convolution_flop(channels, kernel)),
    )  # fmt: skip


def _none(_: NoMixer) -> MixerWork:
    return MixerWork(params=NONE, matmuls=NONE)


MIXERS: dict[type, Callable[[Any], MixerWork]] = {
    Attention: _attention, LatentAttention: _latent, CompressedAttention: _compressed, GatedDelta: _gated_delta,
    ShortConvolution: _short_convolution,
    Lightning: _lightning, Mamba: _mamba, Mamba2: _mamba2, NoMixer: _none,
}  # fmt: skip

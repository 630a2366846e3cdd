"""What a whole model asks for, all layers summed: KV bytes per token, parameters, cache and state. The arithmetic is in laws/."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headway.core.quantity import known
from headway.core.units import Byte, Token
from headway.laws import arithmetic
from headway.laws.architecture import kv
from headway.laws.collectives.expert_parallel import distinct_experts
from headway.models import stored
from headway.models.model import Model
from headway.models.work import CacheStore, LayerWork, ModelWork, embedding_and_head, other_params, work_of, works

if TYPE_CHECKING:
    from headway.models.stored import StoredFormats

KV_BYTES = known(2, "bytes per cache element", "byte", "default", "16-bit cache, as published KV figures count")


def kv_bytes_per_token(model: Model, element_bytes: Byte = KV_BYTES) -> Any:
    """KV cache that one more token adds, all layers, before sharding: bytes per token, far beyond every window, index keys apart.

    Each layer's attention says how many cache elements a token adds: 2 * KV heads * head width for GQA, latent + rotary key for MLA, 0
    for a window and for a recurrence. What a decode step reads of the cache is `kv_read_bytes`.

    >>> from headway.models.config import model
    >>> float(kv_bytes_per_token(model("llama-3.1-70b")))  # 80 layers * 2 * 8 KV heads * 128 * 2 bytes
    327680.0
    >>> float(kv_bytes_per_token(model("deepseek-v3")))  # 61 layers * (512 latent + 64 rotary) * 2 bytes
    70272.0
    """
    return _lasting_bytes(model, element_bytes, index=False)


def index_bytes_per_token(model: Model, element_bytes: Byte = KV_BYTES) -> Any:
    """Index keys that one more token adds, all layers, as engines keep them: bytes per token, 0 without an indexer."""
    return _lasting_bytes(model, element_bytes, index=True)


def wide_index_bytes_per_token(model: Model) -> Any:
    """The same in 16 bits, as configs are compared."""
    return _lasting_bytes(model, KV_BYTES, index=True, wide=True)


def cache_bytes_per_token(model: Model) -> Any:
    """KV cache in 16 bits and index keys as engines keep them beside it: bytes that one more token adds.

    >>> from headway.models.config import model
    >>> float(cache_bytes_per_token(model("deepseek-v3.2")))  # 61 layers * (576 * 2 + 132)
    78324.0
    """
    return kv_bytes_per_token(model) + index_bytes_per_token(model)


def _lasting_bytes(model: Model, element_bytes: Byte, index: bool, wide: bool = False) -> Any:
    """Bytes of index keys, or of all other caches, that one more token adds for ever; `wide`: none in a format of its own."""
    per_layer = []
    for block in model.blocks:
        stores = [store for store in block.attention.stores() if (store.what == "index") == index]
        elements = [kv.marginal_elements(store.elements_per_token, store.cap_tokens) for store in stores]
        widths = [element_bytes if wide else store.element_bytes(element_bytes) for store in stores]
        sizes = [kv.kv_bytes(count, size) for count, size in zip(elements, widths, strict=True)]
        per_layer.append(sum(sizes))
    return _sum(model, tuple(per_layer))


def total_params(model: Model) -> Any:
    """All parameters, a tied table once."""
    return _params(model, "experts")


def active_params(model: Model) -> Any:
    """The parameters that one token uses, the input embedding included."""
    return _params(model, "experts_per_token")


def _params(model: Model, experts: str) -> Any:
    """Parameters with as many experts as this field of the work says."""
    sizes = tuple(w.mixer_params + w.dense_ffn_params + getattr(w, experts) * w.expert_params + w.other_params for w in works(model))
    embedding, head = embedding_and_head(model)
    return embedding + head + _sum(model, sizes) + other_params(model)


def matmul_params(model: Model) -> Any:
    """The parameters that one token is multiplied with: the head counts (tied or not), the embedding look-up does not."""
    sizes = tuple(w.mixer_params + w.dense_ffn_params + w.experts_per_token * w.expert_params + 0 for w in works(model))
    return model.vocab * model.embedding_dim + _sum(model, sizes)


def layers(model: Model) -> Any:
    """How many layers there are."""
    return arithmetic.sum_over_blocks(tuple(block.count for block in model.blocks), tuple(1 for _ in model.blocks))


def stored_bytes(model: Model, weights: str = "") -> Any:
    """Bytes of all weights as the checkpoint stores them, or in the format `weights`, a tied table once."""
    work = work_of(model)
    return weights_bytes(work, stored.stored_formats(work, weights))


def loaded_bytes(model: Model, weights: str = "") -> Any:
    """Bytes of everything that an engine loads: all weights, and a vision tower where its kind is known."""
    decoder = stored_bytes(model, weights)
    return decoder if model.tower is None else decoder + model.tower.bytes


def weights_bytes(work: ModelWork, stored: StoredFormats) -> Any:
    """Bytes of all weights, each part in its format."""
    parts = []
    for block, (mixer, ffn, expert) in zip(work.blocks, stored.blocks, strict=True):
        layer = [block.mixer_params * mixer.bytes, block.dense_ffn_params * ffn.bytes]
        layer += [block.expert_params * expert.bytes * block.experts]
        parts.append(sum((*layer, block.other_params * stored.vectors.bytes)) * block.count)
    tables = work.table_params * stored.embedding.bytes, work.head_params * stored.head.bytes
    return sum((*parts, *tables, work.vector_params * stored.vectors.bytes))


def routed_bytes(model: Model, weights: str = "", tokens: Token | None = None) -> Any:
    """Bytes of all routed experts, in their stored format or in `weights`; or of those that so many tokens of a step touch."""
    work = work_of(model)
    formats = stored.stored_formats(work, weights).blocks
    pairs = [(block, form[2]) for block, form in zip(work.blocks, formats, strict=True) if block.experts]
    counts = [b.experts if tokens is None else distinct_experts(b.experts, b.experts_per_token, tokens) for b, _ in pairs]
    return sum(block.expert_params * form.bytes * n * block.count for (block, form), n in zip(pairs, counts, strict=True))


def params_by_part(model: Model) -> dict[str, Any]:
    """Where the parameters are; the parts sum to the total."""
    block_works = works(model)
    table, head = embedding_and_head(model)
    return {
        "embedding": table,
        "head": head,
        "mixers": _sum(model, tuple(w.mixer_params for w in block_works)),
        "dense_ffn_shared_experts_and_routers": _sum(model, tuple(w.dense_ffn_params for w in block_works)),
        "routed_experts": _sum(model, tuple(w.expert_params * w.experts for w in block_works)),
        "norms_and_biases": _sum(model, tuple(w.other_params for w in block_works)) + other_params(model),
    }


def kv_read_bytes(model: Model, context: Token, element_bytes: Byte = KV_BYTES) -> Any:
    """Cache bytes that one decoded token reads at `context`, index keys included."""
    per_layer = []
    for w in works(model):
        tokens = [kv.attended_tokens(context, span.cap_tokens, span.sqrt_tokens) for span in w.spans]
        read = [
            span.read_elements_per_token * count * span.element_bytes(element_bytes) for span, count in zip(w.spans, tokens, strict=True)
        ]
        per_layer.append(sum(read))
    return _sum(model, tuple(per_layer))


def kv_stored_bytes(model: Model, context: Token, element_bytes: Byte = KV_BYTES) -> Any:
    """Cache bytes that one sequence of `context` tokens occupies, index keys included, recurrent state not."""
    return _sum(model, tuple(_stored(w, context, element_bytes) for w in works(model)))


def _stored(work: LayerWork, context: Token, element_bytes: Byte) -> Any:
    """Cache bytes of one sequence in one layer."""
    elements = [kv.stored_elements(store.elements_per_token, context, store.cap_tokens) for store in work.stores]
    return sum([count * store.element_bytes(element_bytes) for count, store in zip(elements, work.stores, strict=True)])


def sequence_bytes(model: Model, context: Token, element_bytes: Byte = KV_BYTES, state_bytes: Byte = KV_BYTES) -> Any:
    """Everything that one sequence of `context` tokens occupies: cache with index keys and windows, and recurrent state."""
    layers_work = works(model)
    states = _sum(model, tuple(w.state_elements * state_bytes for w in layers_work))
    return _sum(model, tuple(_stored(w, context, element_bytes) for w in layers_work)) + states


def state_bytes_per_sequence(model: Model, element_bytes: Byte = KV_BYTES, window_bytes: Byte = KV_BYTES) -> Any:
    """State of fixed size per sequence: recurrence and convolution, and the uncompressed window of DeepSeek-V4, which is cache."""
    return _sum(model, tuple(w.state_elements * element_bytes + _window_state(w.stores, window_bytes) for w in works(model)))


def _window_state(stores: tuple[CacheStore, ...], window_bytes: Byte) -> Any:
    """Bytes of a window that lives beside a compressed cache is a state of fixed size; a plain sliding window is cache."""
    window = next((store for store in stores if store.what == "window"), None)
    if window is None:
        return 0
    return kv.stored_elements(window.elements_per_token, window.cap_tokens, window.cap_tokens) * window.element_bytes(window_bytes)


def _sum(model: Model, values: tuple[Any, ...]) -> Any:
    """A quantity per layer of each block, times the block's layers, added up."""
    return arithmetic.sum_over_blocks(tuple(block.count for block in model.blocks), values)

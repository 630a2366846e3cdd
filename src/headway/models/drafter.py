"""What drafts for a model: its own layer of multi-token prediction (MTP), or an EAGLE head; as a model of one layer.

Both see the hidden state of the model beside the embedding of the last token, joined by a projection, and share its embedding. MTP shares
the output head too; an EAGLE head has one of its own, of a smaller vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headway.core.errors import BadValue
from headway.core.quantity import known
from headway.core.units import Number
from headway.laws.architecture.params import joined_inputs_params
from headway.models.attention import Mixer
from headway.models.attention.grouped_query import Attention
from headway.models.model import Block, Dense, Model, MoE, NoFeedForward, StoredPrecision, Vector
from headway.models.work import ModelWork, work_of

PREDICTION_KEYS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "num_mtp_layers")
ONE_LAYER = known(1, "layers", "", "constant", "a drafting head has one layer")
TWO_NORMS = known(2, "norms of the inputs", "", "constant", "one of the hidden state, one of the embedding")
JOINED = known(1, "matmuls", "", "constant", "the projection that joins both inputs")
GATED = known(3, "matrices", "", "constant", "a gated FFN, as in Llama")
HEAD_DIM = known(128, "head", "", "default", "of an EAGLE head, where the model's own are latents or states")
WIDE = StoredPrecision(mixer="bf16", ffn="bf16", expert="bf16", embedding="bf16")


def prediction_head(model: Model) -> Model:
    """The MTP layer of a model: its last kind of attention and of FFN, experts included; BadValue where it has none."""
    if not model.prediction_layers:
        raise BadValue("--draft", "mtp", f"a model with layers of multi-token prediction: {_in_words(model)}; eagle drafts for any")
    attention = _attention(model)
    ffn = next(block.ffn for block in reversed(model.blocks) if not isinstance(block.ffn, NoFeedForward))
    vectors = next(block.vectors for block in reversed(model.blocks) if block.attention == attention)
    return replace(model, name=f"{model.name}'s MTP layer", blocks=(_layer(model, attention, ffn, vectors),), vectors=(), tower=None)


def _in_words(model: Model) -> str:
    """What the config says of such layers, in words."""
    if model.prediction_layers is None:
        return f"the config of {model.name} has none of {', '.join(PREDICTION_KEYS)}"
    return f"the config of {model.name} has {model.prediction_layers.name.rpartition('.')[2]} = {int(model.prediction_layers)}"


def eagle_head(model: Model, vocabulary: Number, mixture_factor: Number) -> Model:
    """An EAGLE head of a model: one dense layer as wide as it, in 16 bits, and an output head over `vocabulary` tokens."""
    mixer = _attention(model)
    plain = isinstance(mixer, Attention)
    heads, width = mixer.query_heads(), mixer.head_elements() if plain else HEAD_DIM
    attention = Attention(
        hidden=model.hidden, heads=heads, kv_heads=mixer.cache_heads() if plain else heads, head_dim=width, value_dim=width,
    )  # fmt: skip
    dense = next((block.ffn for block in model.blocks if isinstance(block.ffn, Dense)), None)
    ffn = dense or Dense(hidden=model.hidden, intermediate=model.hidden * mixture_factor, matrices=GATED)
    return replace(
        model, name=f"an EAGLE head of {model.name}", vocab=vocabulary, embedding_dim=model.hidden, tied=False,
        blocks=(_layer(model, attention, ffn, ()),), vectors=(), tower=None, precision=WIDE,
    )  # fmt: skip


def _attention(model: Model) -> Mixer:
    """The last attention over the whole context, else the last of any kind."""
    mixers = [block.attention for block in reversed(model.blocks)]
    softmax = [mixer for mixer in mixers if mixer.softmax]
    unbounded = [mixer for mixer in softmax if all(float(span.cap_tokens) == float("inf") for span in mixer.spans() if span.what == "kv")]
    return (unbounded or softmax or mixers)[0]


def _layer(model: Model, attention: Mixer, ffn: Dense | MoE | Any, vectors: Sequence[Vector]) -> Block:
    norms = Vector(name="norms of the inputs", dims=(TWO_NORMS, model.hidden))
    return Block(count=ONE_LAYER, attention=attention, ffn=ffn, vectors=(*vectors, norms))


def head_work(head: Model, *, shares_output: bool) -> ModelWork:
    """Work of a drafting head: its layer with the projection that joins its inputs, which every chip holds whole."""
    work = work_of(head)
    (block,) = work.blocks
    joined = joined_inputs_params(head.hidden)
    layer = replace(
        block, mixer_params=block.mixer_params + joined, mixer_whole_params=block.mixer_whole_params + joined,
        mixer_matmuls=block.mixer_matmuls + JOINED,
    )  # fmt: skip
    return replace(work, blocks=(layer,), shares_embedding=True, head_params=0 if shares_output else work.table_params)

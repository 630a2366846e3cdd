"""Readers of routed decoders with more beside the experts: Arctic's dense path in each layer, Trinity's gated attention."""

from __future__ import annotations

from headway.models.model import Model, Vector
from headway.models.readers.dense import full_every, looks
from headway.models.readers.mixture import mixtral_experts
from headway.models.readers.read import Config
from headway.models.readers.standard import Style, attention, biased, block, dense, finish, mixer_vectors, moe, norms, shape

EXTEND = "--as dense, moe or mla reads the usual keys"


def arctic(config: Config) -> Model:
    """Snowflake Arctic: beside the experts each routed layer has a dense FFN as wide as the model, with a norm of its own."""
    s, style = shape(config), Style()
    if not config.flag("use_residual"):
        raise config.refuse("use_residual", EXTEND)
    config.ignore("parallel_attn_mlp_res", "enc_index", "enable_expert_tensor_parallelism", "moe_token_dropping")
    routed = mixtral_experts(config, s.hidden, shared=1, shared_intermediate=s.hidden)
    dense_block = block(attention(s), dense(config, s.hidden, style), norms(s.hidden, style))
    step, pattern = int(config.count("moe_layer_frequency", default=2)), looks(config, s, True)
    layers = [
        block(attention(s, look), routed, norms(s.hidden, style, 3)) if (layer + 1) % step == 0 else dense_block
        for layer, look in enumerate(pattern)
    ]
    return finish(config, layers, s.hidden, style)


def afmoe(config: Config) -> Model:
    """Arcee's Trinity: a gate on the output of attention, norms around each part, windows in 3 of 4 layers, sigmoid routing with a bias."""
    s, style = shape(config), biased(config, norms=4, qk_norm="head")
    width = config.count("moe_intermediate_size")
    routed = moe(
        s.hidden, experts=config.count("num_experts"), per_token=config.count("num_experts_per_tok"), intermediate=width,
        shared=config.count("num_shared_experts", default=0, low=0), shared_intermediate=width,
    )  # fmt: skip
    first = int(config.count("num_dense_layers", default=0, low=0, high=s.layers))
    plain, vectors = dense(config, s.hidden, style), (norms(s.hidden, style), mixer_vectors(s, style))
    router = (Vector(name="router correction bias", dims=(routed.experts,)),)
    config.ignore("num_expert_groups", "route_norm")
    layers = [
        block(attention(s, look, query_copies=2), plain if layer < first else routed, *vectors, () if layer < first else router)
        for layer, look in enumerate(full_every(config, s.layers, int(config.count("global_attn_every_n_layers", default=4))))
    ]
    return finish(config, layers, s.hidden, style)

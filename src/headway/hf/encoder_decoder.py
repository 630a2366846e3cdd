"""Switch Transformers: an encoder and a decoder, experts in some layers of each."""

from __future__ import annotations

from headway.hf.read import Config
from headway.hf.standard import COPIES, DOUBLE, GATED, PLAIN, DecoderShape, Style, attention, block, dense, finish, layer_count, moe, norms
from headway.model import AttentionPattern, Block, Model, Vector

NO_CACHE = AttentionPattern(name="none")  # an encoder layer caches nothing while the decoder decodes


def switch(config: Config) -> Model:
    """Switch (T5 with experts): decoder layers attend to themselves, which is the KV counted, and to the encoder."""
    heads, hidden = config.count("num_heads"), config.count("d_model")
    style = Style(matrices=GATED if config.flag("is_gated_act") else PLAIN, tied=True)
    encoder, decoder = layer_count(config, "num_layers"), layer_count(config, "num_decoder_layers", "num_layers")
    s = DecoderShape(hidden=hidden, layers=decoder, heads=heads, kv_heads=heads, head_dim=config.count("d_kv"))
    layers = [
        *_stack(config, s, style, encoder, "num_sparse_encoder_layers", encodes=True),
        *_stack(config, s, style, decoder, "num_sparse_decoder_layers", encodes=False),
    ]
    config.notes.append(
        "encoder and decoder are counted as one stack; KV is the decoder's self-attention, the encoder's output is not timed"
    )
    buckets = config.count("relative_attention_num_buckets", default=32)
    final = (*norms(hidden, style, 2), Vector(name="relative position bias of each stack", dims=(DOUBLE, buckets, heads)))
    config.ignore("expert_capacity")
    return finish(config, layers, hidden, style, final)


def _stack(config: Config, s: DecoderShape, style: Style, count: int, key: str, encodes: bool) -> list[Block]:
    sparse = int(config.count(key, default=0, low=0))
    step = max(count // sparse, 1) if sparse else 0
    width, plain = config.count("d_ff"), dense(config, s.hidden, style, "d_ff")
    routed = moe(
        s.hidden,
        experts=config.count("num_experts"),
        per_token=config.count("num_selected_experts", default=1),
        intermediate=width,
        matrices=style.matrices,
    )
    mixer = attention(s, NO_CACHE) if encodes else attention(s, stacks=DOUBLE)
    vectors = (Vector(name="norms", dims=(COPIES[2 if encodes else 3], s.hidden)),)
    return [block(mixer, routed if step and (step == 1 or layer % step == 1) else plain, vectors) for layer in range(count)]

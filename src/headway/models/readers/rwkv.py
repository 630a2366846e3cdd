"""Reader of RWKV-4: a recurrence with a decay per channel in every layer, and a squared-ReLU FFN."""

from __future__ import annotations

from headway.models.attention.rwkv import Rwkv
from headway.models.model import Model, Vector
from headway.models.readers.gpt import four_times
from headway.models.readers.read import Config
from headway.models.readers.standard import COPIES, PLAIN, Style, block, dense, finish, layer_count, norms


def rwkv(config: Config) -> Model:
    """RWKV-4: LayerNorms, a norm before the first layer, an untied head."""
    hidden, layers, style = config.count("hidden_size"), layer_count(config), Style(matrices=PLAIN, norm_parts=2)
    inner = config.count("attention_hidden_size", default=hidden)
    ffn = dense(config, hidden, style, intermediate=four_times(config, hidden, "intermediate_size"))
    vectors = (
        Vector(name="decay and bonus", dims=(2, inner)),
        Vector(name="mix of each input with the last one", dims=(COPIES[5], hidden)),
    )
    layer = block(Rwkv(hidden=hidden, inner=inner), ffn, norms(hidden, style), vectors)
    config.ignore("context_length", "rescale_every")
    return finish(config, [layer] * layers, hidden, style, norms(hidden, style, 2))

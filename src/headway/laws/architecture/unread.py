"""Bounds on what a key of a config.json that no reader knows could change."""

from __future__ import annotations

from headway.core.formula import formula
from headway.core.units import Number

MATRICES = 3  # of a gated network, the most that one width gives a layer


@formula(source="a width gives each layer at most a gated network of that width, three matrices with the hidden state")
def largest_params_share(width: Number, hidden: Number, layers: Number, params: Number) -> Number:
    """Parameters that an unread width could add, as a share of all.

    >>> round(largest_params_share(1024, 4096, 32, 8030261248), 3)  # Llama-3.1-8B
    0.05
    """
    return MATRICES * width * hidden * layers / params


@formula(source="a width is kept at most as a key and a value of its own in every layer")
def largest_cache_share(width: Number, elements: Number) -> Number:
    """KV cache that an unread width could add, as a share of what a token keeps in a layer.

    >>> largest_cache_share(64, 2048)
    0.0625
    """
    return 2 * width / elements

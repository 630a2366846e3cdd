"""Classes of models by structure and size, in which measured runs are looked for that are like a question."""

from __future__ import annotations

import functools

from headway.models.model import Model
from headway.models.totals import total_params
from headway.models.work import works

# Upper bounds of the size classes in total parameters, about a factor of three apart.
SIZES = ((5e9, "3B"), (16e9, "8B"), (50e9, "30B"), (160e9, "70B"), (500e9, "300B"), (float("inf"), "700B"))
NAMES = tuple(name for _, name in SIZES)


def structure(model: Model) -> str:
    """Structure of a model: dense, routed experts, or those beside latent attention.

    >>> from headway.models.config import model
    >>> structure(model("llama-3.1-70b")), structure(model("deepseek-v3")), structure(model("qwen3-30b-a3b"))
    ('dense', 'mla-moe', 'moe')
    """
    blocks = works(model)
    if not any(block.experts for block in blocks):
        return "dense"
    return "mla-moe" if any(block.latent for block in blocks) else "moe"


def size(params: float) -> str:
    """Size class of a parameter count.

    >>> size(8e9), size(72e9), size(671e9)
    ('8B', '70B', '700B')
    """
    return next(name for most, name in SIZES if params < most)


@functools.lru_cache(maxsize=1000)
def model_class(model: Model) -> str:
    """Model class: structure and size.

    >>> from headway.models.config import model
    >>> model_class(model("llama-3.1-70b"))
    'dense 70B'
    """
    return f"{structure(model)} {size(float(total_params(model)))}"

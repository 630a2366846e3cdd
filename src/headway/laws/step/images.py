"""Images of a prompt: what a vision tower computes for each, and what that adds to every token of the prompt."""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import ONE_TOKEN, Byte, Flop, FlopPerSecond, FlopPerToken, Number, Second, SecondPerToken, Token
from headway.laws.step.coefficients import ImageTerm

MATMUL_FLOP: FlopPerToken = 2  # multiply and add
NO_IMAGE: Second = 0.0
SCORE_FLOP: FlopPerToken = 4  # scores and values, of one element of the hidden size


@formula(source="definition")
def tower_params(encoder: Number, projector: Number, tables: Number) -> Number:
    """Parameters of a tower; the Qwen3-VL checkpoint of 8B holds 8,767,123,696 in all, 8,190,735,360 of them in its text decoder.

    >>> f"{tower_params(413237232, 160496896, 2654208):,}", f"{8767123696 - 8190735360:,}"
    ('576,388,336', '576,388,336')
    """
    return encoder + projector + tables


@formula(source="definition")
def tower_bytes(params: Number, element: Byte) -> Byte:
    """Bytes of a tower's weights.

    >>> tower_bytes(576388336, 2) / 1e9
    1.152776672
    """
    return params * element


@formula(source="forward pass of a vision transformer (Dosovitskiy et al. 2020, arXiv:2010.11929): matmuls, and attention without a mask")
def image_flop(
    encoder: Number, projector: Number, hidden: Number, full_layers: Number, window_layers: Number, window: Token, patches: Token,
    tokens: Token,
) -> Flop:  # fmt: skip
    """FLOPs of one image of so many patches, which become so many tokens; both directions of attention count.

    >>> round(float(image_flop(413237232, 160496896, 1152, 27, 0, 1, 4096, 1024)) / 1e12, 2)  # Qwen3-VL-8B, 1,024 by 1,024 pixels
    5.8
    """
    scores = (full_layers * patches + window_layers * np.minimum(window, patches)) / ONE_TOKEN
    return MATMUL_FLOP * (encoder * patches + projector * tokens) + SCORE_FLOP * hidden * patches * scores


@formula(source="definition")
def images_s(images: tuple[ImageTerm, ...], prompt_tokens: Token) -> Second:
    """Time at peak of a tower on the images that come with so many prompt tokens.

    >>> images_s((), 4096.0), float(images_s((ImageTerm(compute=2.86e-6),), 4096.0))
    (0.0, 0.01171456)
    """
    return sum((term.compute * prompt_tokens for term in images), start=NO_IMAGE)


@formula(source="definition; vLLM splits a tower over tensor-parallel chips (--mm-encoder-tp-mode weights, its default)")
def image_s_per_token(flop: Flop, images: Number, prompt: Token, peak: FlopPerSecond, tp: Number) -> SecondPerToken:
    """Time of a prompt's images at peak, spread over all its tokens, so that a chunk of the prompt brings its share.

    >>> round(float(image_s_per_token(5.8e12, 2, 4096, 989.4e12, 1)) * 4096 * 1e3, 1)  # milliseconds of two images on an H100
    11.7
    """
    return flop * images / prompt / peak / tp

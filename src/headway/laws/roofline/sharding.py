"""Arrays split over chips: how many copies there are, which of two ways to multiply them sends less, and how far decode can be split.

Widths are of a feed-forward layer: `hidden` of the model, `intermediate` between its matrices. `element` is bytes of an activation.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import BytePerSecond, BytePerToken, Number

BOOK = "Austin et al. 2025, How to Scale Your Model, "
POPE = "Pope et al. 2022 (arXiv:2211.05102), section 3.2"
SENDS = 2  # of a layer: its input gathered, its output scattered


@formula(
    source=BOOK + "Sharded Matrices: an array is replicated along each mesh axis that does not split it",
    needs="chips % shards == 0, shards >= 1",
)
def array_copies(chips: Number, shards: Number) -> Number:
    """Copies of a sharded array, since chips along mesh axes that do not split it hold the same part.

    >>> array_copies(256, 16)  # Llama-3.1-70B on a TPU v5e pod of 16 x 16, its weights split along one axis
    16.0
    """
    return chips / shards


@formula(source=BOOK + "Sharded Matrices: a contracted dimension split in one array: gather it, or reduce partial sums")
def gather_over_reduce(contracted: Number, width: Number, phases: Number) -> Number:
    """Bytes of gathering an activation over those of reducing the product instead, by width; below 1 the gather sends less.

    `contracted` is the split dimension, `width` that of the result; a reduction is 1 phase (reduce-scatter) or 2 (all-reduce).

    >>> gather_over_reduce(28672, 8192, 2)  # Llama-3.1-70B, down projection: reduce
    1.75
    """
    return contracted / (phases * width)


@formula(source=BOOK + "Inference: weights 2 D F / Y over HBM against activations 2 B D over links: Y = F / (B beta), beta = W_hbm / W_ici")
def decode_tensor_ways(intermediate: Number, matrices: Number, batch: Number, link_bw: BytePerSecond, mem_bw: BytePerSecond) -> Number:
    """Tensor-parallel limit of decode: ways from which links, which send activations, take longer than HBM, which reads weights.

    `matrices` of a feed-forward layer between its one gather and its one scatter: 2, as in the book, or 3 where it is gated.

    >>> round(decode_tensor_ways(28672, 3, 64, 450e9, 3.35e12), 1)  # Llama-3.1-70B, H100
    90.3
    """
    return matrices / SENDS * intermediate * link_bw / (batch * mem_bw)


@formula(source=POPE + ".1: 1D weight-stationary, 2 B L E whatever the number of chips")
def stationary_1d_bytes(hidden: Number, element: BytePerToken) -> BytePerToken:
    """Bytes per token that a chip sends for a layer split along its intermediate width alone (1D weight-stationary).

    >>> stationary_1d_bytes(18432, 2.0)  # PaLM-540B
    73728.0
    """
    return SENDS * hidden * element


@formula(
    source=POPE + ".2: 2D weight-stationary, 2 B L (E / X + F / Y) at the best X Y = n, which is 8 B L E / sqrt(n) where F = 4 E",
    needs="chips * hidden > intermediate, chips * intermediate > hidden",
)
def stationary_2d_bytes(hidden: Number, intermediate: Number, chips: Number, element: BytePerToken) -> BytePerToken:
    """Bytes per token that a chip sends for a layer split along both widths (2D weight-stationary), at the best shape of the mesh.

    The mesh has more than one chip along each axis, so `chips` is above the ratio of the widths.

    >>> float(stationary_2d_bytes(18432, 73728, 64, 2.0))  # PaLM-540B on 64 TPU v4, half of 1D
    36864.0
    """
    return 2 * SENDS * np.sqrt(hidden * intermediate / chips) * element


@formula(source=POPE + ".2: where both send the same, 4 F / E, which is 16 where F = 4 E")
def stationary_2d_chips(hidden: Number, intermediate: Number) -> Number:
    """Chips above which a 2D weight-stationary layer sends less than a 1D one.

    >>> stationary_2d_chips(18432, 73728)  # PaLM-540B
    16.0
    """
    return 4 * intermediate / hidden

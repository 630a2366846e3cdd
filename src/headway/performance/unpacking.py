"""Weights that a chip unpacks with the arithmetic it multiplies with: GGUF's blocks of scaled blocks, on chips without matrix units."""

from __future__ import annotations

import re
from typing import Any

from headway.hardware.chip import Chip
from headway.laws.step.coefficients import UNLIMITED
from headway.laws.step.layer_terms import unpacking_limit
from headway.models.precision import formats

BLOCKS_OF_BLOCKS = re.compile(r"q\d_k")  # whose scales are packed themselves; plain blocks (q8_0, q4_0) stream like 16 bits


def limit_of_unpacking(chip: Chip, weights: str, flop: Any) -> Any:
    """Share of a chip's bandwidth at which unpacking weights of a format takes all its arithmetic, `flop` for each."""
    if not BLOCKS_OF_BLOCKS.match(weights):
        return UNLIMITED
    return unpacking_limit(formats()[weights].bytes, flop, chip.need("peak_bf16"), chip.need("hbm_bw"))

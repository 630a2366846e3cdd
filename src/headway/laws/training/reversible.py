"""Memory and time of training a reversible network: nothing is kept but the two streams behind the last layer.

The backward pass makes each layer's input again from its output, in lockstep, so that the activations of one layer exist at a time.
"""

from __future__ import annotations

from headway.core.formula import formula
from headway.core.units import Byte, BytePerToken, Number, Token

GOMEZ = "Gomez et al. 2017, RevNet (arXiv:1707.04585), section 3"
REFORMER = "Kitaev et al. 2020, Reformer (arXiv:2001.04451), section 3"
STREAMS: Number = 2.0  # each of the full width, as in Reformer: parameters and FLOP stay those of the ordinary network


@formula(source=REFORMER + ": two streams of the model's width")
def stream_bytes(hidden_bytes: BytePerToken) -> BytePerToken:
    """Activation bytes per token that a reversible network keeps at the end of its layers: both streams.

    >>> stream_bytes(2 * 4096)  # Llama-3.1-8B in bf16
    16384.0
    """
    return STREAMS * hidden_bytes


@formula(source=GOMEZ + ", table 1: O(1) in depth where others keep O(L)")
def reversible_bytes_chip(streams: BytePerToken, at_hand: BytePerToken, tokens: Token, micro_batches: Number) -> Byte:
    """Activation bytes on a chip of reversible training: streams of every micro-batch in flight, and one layer at hand.

    >>> reversible_bytes_chip(16384.0, 34.0 * 4096, 8192, 1) / 1e9  # Llama-3.1-8B, one sequence of 8k, whatever its depth
    1.275068416
    """
    return (streams * micro_batches + at_hand) * tokens


@formula(source=GOMEZ + ", section 3.2: one forward more, 33 % in theory; its implementations took 1.5 to 2 times as long")
def reversible_slowdown(passes: Number) -> Number:
    """Compute of reversible training over ordinary training, whose forward and backward cost `passes` forwards.

    >>> round(reversible_slowdown(3), 4)  # any model with all parameters trained: 6ND becomes 8ND
    1.3333
    """
    return (passes + 1) / passes

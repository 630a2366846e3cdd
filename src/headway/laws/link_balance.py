"""Where a link keeps up with the chips behind it: the time of a message, and the most ways that tensor parallelism pays for."""

from __future__ import annotations

from headway.formula import formula
from headway.units import Byte, BytePerSecond, BytePerToken, FlopPerSecond, FlopPerToken, Number, Second

MULTIPLY_ADD: FlopPerToken = 2.0  # one multiply and one add per parameter and token


@formula(source="bytes over bandwidth, without latency: a floor")
def sent_s(message: Byte, bandwidth: BytePerSecond) -> Second:
    """A message on one chip's links (lecture MOE-11: 6.45 MB over NVLink 5).

    >>> round(sent_s(6451200.0, 900e9) * 1e6, 3)
    7.168
    """
    return message / bandwidth


@formula(source="Scaling Book, Training: Y < F / alpha, compute 4 B D F / Y / C against gather and scatter, 2 w B D / W")
def tensor_ways_paid(width: Number, link_bw: BytePerSecond, peak_flops: FlopPerSecond, element: BytePerToken) -> Number:
    """Ways to split a feed-forward layer of this width before sending its activations takes longer than multiplying them.

    Below 1 not even the first split pays. In bf16 on H100: Llama-3.1-70B, one expert of DeepSeek-V3.

    >>> [round(tensor_ways_paid(width, 450e9, 989.4e12, 2.0), 2) for width in (28672, 2048)]
    [13.04, 0.93]
    """
    return MULTIPLY_ADD * width * link_bw / (element * peak_flops)

"""Claims on ciphers and reversible networks (CR): couplings undone, memory and time of reversible training, avalanche."""

from __future__ import annotations

from typing import Any

from headway.core.quantity import known
from headway.evidence.claims.claim import Parts, recomputes
from headway.laws.coupling import coupled, magnitude, random_avalanche, round_trip_bound, uncoupled
from headway.laws.tiers import forward_flop, recompute_s_per_token
from headway.laws.training.memory import activation_bytes_chip, reversible_bytes_chip, reversible_slowdown, stream_bytes
from headway.laws.training.run import hardware_flop_per_token, matmul_flop_per_token, model_flop_per_token, training_passes


@recomputes("CR-01")
def one_coupling(inputs: Any) -> Parts:
    """A coupling with f = |x| undone in whole numbers, and the most that fp32 can be off."""
    added = magnitude(inputs.x)
    sum_half = coupled(inputs.y, added)
    return {
        "z": sum_half,
        "y that comes back, over y": uncoupled(sum_half, added) / inputs.y,
        "largest error in fp32": round_trip_bound(sum_half, inputs.y, inputs.roundoff),
    }


@recomputes("CR-02")
def stacked_layers(inputs: Any) -> Parts:
    """Reversible layers with f = |x| forward and back in whole numbers."""
    first, second = inputs.x, inputs.y
    for _ in range(int(inputs.layers)):
        first, second = coupled(second, magnitude(first)), first
    top = first
    for _ in range(int(inputs.layers)):
        first, second = second, uncoupled(first, magnitude(second))
    return {
        "x after the layers": top,
        "x that comes back, over x": first / inputs.x,
        "y that comes back, over y": second / inputs.y,
    }


def layer_bytes(inputs: Any) -> Any:
    """Activation bytes per token that one layer keeps."""
    return inputs.width * inputs.hidden * inputs.numbers


@recomputes("CR-03")
def ordinary_activations(inputs: Any) -> Parts:
    """Activations of ordinary training at two depths."""
    layer = layer_bytes(inputs)
    deep = activation_bytes_chip(layer, inputs.none, inputs.tokens, inputs.layers * inputs.copies)
    shallow = activation_bytes_chip(layer, inputs.none, inputs.tokens, inputs.half * inputs.copies)
    return {"activations": deep, "64 layers over 32": deep / shallow}


@recomputes("CR-04")
def reversible_activations(inputs: Any) -> Parts:
    """Activations of reversible training, beside ordinary training of the same depth."""
    layer = layer_bytes(inputs)
    kept_bytes = {
        depth: reversible_bytes_chip(stream_bytes(inputs.width * inputs.hidden), layer, inputs.tokens, inputs.copies)
        for depth in ("64 layers", "32 layers")
    }  # the law has no depth to be given
    ordinary = activation_bytes_chip(layer, inputs.none, inputs.tokens, inputs.layers * inputs.copies)
    return {
        "activations": kept_bytes["64 layers"],
        "64 layers over 32": kept_bytes["64 layers"] / kept_bytes["32 layers"],
        "over ordinary training": kept_bytes["64 layers"] / ordinary,
    }


@recomputes("CR-05")
def forward_again(inputs: Any) -> Parts:
    """FLOP per token of training with one forward more, and over ordinary training."""
    forward = matmul_flop_per_token(inputs.active)
    ordinary = model_flop_per_token(forward, inputs.none, training_passes(inputs.trainable))
    reversible = hardware_flop_per_token(ordinary, forward, inputs.again)
    return {"FLOP per token": reversible, "over ordinary training": reversible / ordinary}


@recomputes("CR-06")
def opposite_trades(inputs: Any) -> Parts:
    """Time to make a token's cache again over time to read it, and the time that reversible training pays."""
    again = recompute_s_per_token(forward_flop(inputs.active), inputs.peak, inputs.mfu)
    return {
        "making it again over reading it": inputs.mem_bw / (inputs.kv / again),
        "reversible training, time over ordinary": reversible_slowdown(training_passes(inputs.trainable)),
    }


BLOCK = "SIMON32/64"


@recomputes("CR-07")
def avalanche_and_smoothness(inputs: Any) -> Parts:
    """One flipped bit behind a cipher, and a small change behind a residual network, counted here."""
    from headway.reality.avalanche import changed_bits
    from headway.reality.ciphers.catalogue import cipher
    from headway.reality.demonstrations import flipped_share, key_of, network_sensitivity

    simon, rounds, flips = cipher("simon32"), int(inputs.rounds), int(inputs.flips)
    bits = known(simon.block_bits, "bits of a block", "", "constant", f"{BLOCK}'s definition")
    how = f"taken here: {BLOCK}, {rounds} rounds, {flips} random plaintexts with one random bit flipped"
    changed = known(changed_bits(simon, rounds, key_of(simon, None), flips, 0), "output bits changed", "", "measured", how)
    share = changed / (bits * inputs.flips)
    return {
        "output bits that one flipped bit changes": share,
        "behind a random permutation": random_avalanche(bits),
        "cipher, change out over change in": share / flipped_share(bits),
        "network, change out over change in": network_sensitivity(rounds, 0),
    }

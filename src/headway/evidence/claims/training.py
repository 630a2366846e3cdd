"""Claims on over-training and equal costs (OT), reversible networks and ciphers (CR), and facts from the lecturer's papers (EX)."""

from __future__ import annotations

from typing import Any

from headway.core.quantity import known
from headway.core.units import Number
from headway.evidence.claims.claim import ClaimInputs, Parts, recomputes
from headway.laws.coupling import coupled, magnitude, random_avalanche, round_trip_bound, uncoupled
from headway.laws.economics.cost import charged_usd
from headway.laws.roofline.balance import hardware_ratio, multihead_width_per_chip
from headway.laws.roofline.batch_step import latency_floor_s
from headway.laws.scaling import lifetime as laws
from headway.laws.scaling import power_laws
from headway.laws.tiers import forward_flop, recompute_s_per_token
from headway.laws.training.memory import activation_bytes_chip, reversible_bytes_chip, reversible_slowdown, stream_bytes
from headway.laws.training.run import (
    flop_utilisation,
    hardware_flop_per_token,
    matmul_flop_per_token,
    model_flop_per_token,
    training_passes,
)
from headway.training.scaling import compute
from headway.training.scaling.fits import ScalingFit, fit


def _at_minimum(rising: Number, falling: Number, rising_power: Number, falling_power: Number) -> Any:
    """Rising term over falling term at the minimum of their sum."""
    at = laws.least_at(rising, falling, rising_power, falling_power)
    return rising * at**rising_power / (falling * at ** (-falling_power))


@recomputes("OT-01")
def equal_at_minimum(inputs: ClaimInputs) -> Parts:
    """Ratio of the terms at the minimum: for x and 1/x, and for e^x and e^-x."""
    return {
        "A over B, x and 1/x": _at_minimum(inputs.a, inputs.b, inputs.power, inputs.inverse),
        "A over B, e^x and e^-x": _at_minimum(inputs.a, inputs.b, inputs.rate, inputs.inverse_rate),
    }


@recomputes("OT-02")
def ratio_at_minimum(inputs: ClaimInputs) -> Parts:
    """Ratio of the terms at the numeric minimum, over the ratio of their powers."""
    return {
        "A/B over q/p": _at_minimum(inputs.a, inputs.b, inputs.p, inputs.q) / (inputs.q / inputs.p),
        "A over B, x^2 and 1/x": _at_minimum(inputs.a, inputs.b, inputs.two, inputs.one),
    }


def _per_token(params: Number, trainable: Number, none: Number) -> Any:
    return model_flop_per_token(matmul_flop_per_token(params), none, training_passes(trainable))


@recomputes("OT-03")
def training_cost(inputs: ClaimInputs) -> Parts:
    """6 N D over the FLOPs of a forward pass and a backward pass of twice its work."""
    per_token = _per_token(inputs.active, inputs.trainable, inputs.none)
    return {
        "6 N D over forward and backward": power_laws.training_flop(inputs.active, inputs.tokens) / (per_token * inputs.tokens),
        "forward over the whole": matmul_flop_per_token(inputs.active) / per_token,
    }


@recomputes("OT-04")
def rl_cost(inputs: ClaimInputs) -> Parts:
    """FLOPs per parameter and RL token: generated and discarded, trained on, or both."""
    forward, training_flop = matmul_flop_per_token(inputs.one), _per_token(inputs.one, inputs.trainable, inputs.none)
    return {
        "least": forward,
        "most": training_flop,
        "generated, then trained on": hardware_flop_per_token(training_flop, forward, inputs.once),
    }


@recomputes("OT-05")
def serving_cost(inputs: ClaimInputs) -> Parts:
    """FLOPs per parameter and generated token."""
    forward = matmul_flop_per_token(inputs.one)
    return {
        "FLOP per parameter and token": forward,
        "serving over training": forward / _per_token(inputs.one, inputs.trainable, inputs.none),
    }


@recomputes("OT-06")
def slow_decoding(inputs: ClaimInputs) -> Parts:
    """Cost factor of decoding at its lower MFU."""
    return {
        "factor on the board at first": laws.serving_price(inputs.mfu, inputs.price),
        "by the flashcards": laws.serving_price(inputs.third, inputs.price),
    }


@recomputes("OT-07")
def rl_factor(inputs: ClaimInputs) -> Parts:
    """Cost of an RL token over a pre-training token, with all work at the MFU of decoding."""
    figures = {
        f"{name} FLOPs": laws.decode_token_price(flop, inputs.mfu)
        for name, flop in (("2", inputs.two), ("3", inputs.three), ("6", inputs.six))
    }
    return figures | {"by the flashcards": laws.decode_token_price(inputs.three, inputs.third)}


@recomputes("OT-08")
def serving_factor(inputs: ClaimInputs) -> Parts:
    """Cost of a served token over a pre-training token, at the MFU of decoding."""
    return {
        "at 30 %": laws.decode_token_price(inputs.two, inputs.mfu),
        "by the flashcards": laws.decode_token_price(inputs.two, inputs.third),
    }


@recomputes("OT-09")
def equal_tokens(inputs: ClaimInputs) -> Parts:
    """Ratios of tokens at equal cost, by the flashcards' factors."""
    rl = inputs.tokens / laws.decode_token_price(inputs.three, inputs.third)
    served = inputs.tokens / laws.decode_token_price(inputs.two, inputs.third)
    return {
        "D_pre over D_RL": inputs.tokens / rl,
        "D_pre over D_inf": inputs.tokens / served,
        "D_RL over D_pre": rl / inputs.tokens,
    }


@recomputes("OT-10")
def two_splits(inputs: ClaimInputs) -> Parts:
    """Cost shares of the second split over the first, and the change in over-training by a fit."""
    equal, half = (
        laws.share_of_bill(inputs.part, inputs.part, inputs.part, inputs.part),
        laws.share_of_bill(inputs.double, inputs.part, inputs.part, inputs.double),
    )
    rest = laws.share_of_bill(inputs.part, inputs.part, inputs.part, inputs.double)
    beta = fit("epoch").by.beta
    bills = (inputs.whole / equal, inputs.whole / rest)
    return {
        "inference, the second over the first": half / equal,
        "pre-training, the second over the first": rest / equal,
        "over-training, the second over the first": laws.over_training_of_bill(bills[1], beta) / laws.over_training_of_bill(bills[0], beta),
    }


@recomputes("OT-11")
def tokens_of_a_fleet(inputs: ClaimInputs) -> Parts:
    """Tokens of a fleet in its months of service, by two lengths of a month."""
    return {name: _served(inputs, days) for name, days in (("60 days", inputs.days), ("365.25 / 6 days", inputs.month))}


def _served(inputs: ClaimInputs, days: Number) -> Any:
    return laws.served_tokens(inputs.rate, laws.calendar_s(inputs.months, days), inputs.use, inputs.sure)


@recomputes("OT-12")
def tokens_of_a_model(inputs: ClaimInputs) -> Parts:
    """Tokens of one model of the family in its time of service, and the utilisation that the stated tokens imply."""
    long = _served(inputs, inputs.month)
    return {"60 days": _served(inputs, inputs.days), "365.25 / 6 days": long, "utilisation that 200 T imply": inputs.said / long}


@recomputes("OT-14")
def rule_of_twenty(inputs: ClaimInputs) -> Parts:
    """Compute-optimal tokens by the rule of 20 per parameter, and by three fits at that size."""
    figures = {"20 per parameter": power_laws.tokens_at_ratio(inputs.active, inputs.ratio)}
    names = {"Epoch": "epoch", "Hoffmann, unrounded": "hoffmann", "Hoffmann, printed": "hoffmann-printed"}
    return figures | {name: compute.chinchilla_tokens(fit(key), inputs.active) for name, key in names.items()}


@recomputes("OT-15")
def over_trained(inputs: ClaimInputs) -> Parts:
    """Training tokens over the rule's tokens, for three token counts."""
    usual = power_laws.tokens_at_ratio(inputs.active, inputs.ratio)
    return {name: tokens / usual for name, tokens in (("200 T", inputs.served), ("150 T", inputs.rumour), ("259 T", inputs.unrounded))}


@recomputes("OT-16")
def size_cancels(inputs: ClaimInputs) -> Parts:
    """Training over serving cost at equal-cost tokens, and training over served tokens."""
    tokens = laws.serving_in_training(inputs.served, inputs.kappa)
    training, serving = (
        laws.life_flop(inputs.active, tokens, inputs.none, inputs.none),
        laws.life_flop(inputs.active, inputs.none, inputs.none, tokens),
    )
    return {"training over serving": training / serving, "D_pre over D_inf": tokens / inputs.served}


@recomputes("OT-17")
def perhaps_deployed(inputs: ClaimInputs) -> Parts:
    """Expected served tokens with uncertain deployment, over those with certain deployment."""
    time = laws.calendar_s(inputs.months, inputs.days)
    uncertain, sure = (laws.served_tokens(inputs.rate, time, inputs.use, chance) for chance in (inputs.chance, inputs.sure))
    return {"expected over certain": uncertain / sure}


@recomputes("OT-18")
def by_the_loss(inputs: ClaimInputs) -> Parts:
    """Over-training by the closed form for two fits, needs of a factor of 100, and the optimum on the curve of equal loss."""
    figures: Parts = {}
    for name, key in (("Epoch", "epoch"), ("Hoffmann, unrounded", "hoffmann"), ("Hoffmann, printed", "hoffmann-printed")):
        beta = fit(key).by.beta
        figures[f"equal halves, {name}"] = laws.over_training_of_bill(inputs.halves, beta)
        figures[f"equal thirds, {name}"] = laws.over_training_of_bill(inputs.thirds, beta)
        figures[f"bill that 100 times needs, {name}"] = inputs.hundred**beta
    return figures | {"optimum at equal loss over the closed form": _optimum_over_closed_form(fit("epoch"), inputs)}


def _optimum_over_closed_form(law: ScalingFit, inputs: ClaimInputs) -> Any:
    """Training tokens of the cheapest model at a given loss, over those of the closed form at its size."""
    serving, by = laws.serving_in_training(inputs.served, inputs.kappa), law.by
    tokens = laws.best_tokens(compute.chinchilla_tokens(law, inputs.active), serving, inputs.none, by.beta)
    loss = compute.predicted_loss(law, inputs.active, tokens).total
    return laws.cheapest_tokens(loss, by.irreducible, by.b, by.alpha, by.beta, serving) / tokens


@recomputes("OT-19")
def both_directions(inputs: ClaimInputs) -> Parts:
    """Training tokens from the served rate and from the rounded served tokens; served tokens from the rumoured training tokens."""
    return {
        "D_pre from 50 M tokens/s": laws.serving_in_training(_served(inputs, inputs.days), inputs.kappa),
        "D_pre from 200 T served": laws.serving_in_training(inputs.said, inputs.kappa),
        "D_inf from 150 T trained": laws.served_for(inputs.rumour, inputs.kappa),
    }


@recomputes("CR-01")
def one_coupling(inputs: ClaimInputs) -> Parts:
    """A coupling with f = |x| undone in whole numbers, and the most that fp32 can be off."""
    added = magnitude(inputs.x)
    sum_half = coupled(inputs.y, added)
    return {
        "z": sum_half,
        "y that comes back, over y": uncoupled(sum_half, added) / inputs.y,
        "largest error in fp32": round_trip_bound(sum_half, inputs.y, inputs.roundoff),
    }


@recomputes("CR-02")
def stacked_layers(inputs: ClaimInputs) -> Parts:
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


def layer_bytes(inputs: ClaimInputs) -> Any:
    """Activation bytes per token that one layer keeps."""
    return inputs.width * inputs.hidden * inputs.numbers


@recomputes("CR-03")
def ordinary_activations(inputs: ClaimInputs) -> Parts:
    """Activations of ordinary training at two depths."""
    layer = layer_bytes(inputs)
    deep = activation_bytes_chip(layer, inputs.none, inputs.tokens, inputs.layers * inputs.copies)
    shallow = activation_bytes_chip(layer, inputs.none, inputs.tokens, inputs.half * inputs.copies)
    return {"activations": deep, "64 layers over 32": deep / shallow}


@recomputes("CR-04")
def reversible_activations(inputs: ClaimInputs) -> Parts:
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
def forward_again(inputs: ClaimInputs) -> Parts:
    """FLOP per token of training with one forward more, and over ordinary training."""
    forward = matmul_flop_per_token(inputs.active)
    ordinary = model_flop_per_token(forward, inputs.none, training_passes(inputs.trainable))
    reversible = hardware_flop_per_token(ordinary, forward, inputs.again)
    return {"FLOP per token": reversible, "over ordinary training": reversible / ordinary}


@recomputes("CR-06")
def opposite_trades(inputs: ClaimInputs) -> Parts:
    """Time to make a token's cache again over time to read it, and the time that reversible training pays."""
    again = recompute_s_per_token(forward_flop(inputs.active), inputs.peak, inputs.mfu)
    return {
        "making it again over reading it": inputs.mem_bw / (inputs.kv / again),
        "reversible training, time over ordinary": reversible_slowdown(training_passes(inputs.trainable)),
    }


BLOCK = "SIMON32/64"


@recomputes("CR-07")
def avalanche_and_smoothness(inputs: ClaimInputs) -> Parts:
    """One flipped bit behind a cipher, and a small change behind a residual network, counted here."""
    from headway.reality.attacks import changed_bits
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


@recomputes("EX-01")
def palm_decode(inputs: ClaimInputs) -> Parts:
    """Weight read floor of PaLM's decode step, and the share of it that the measured step reached."""
    floor = latency_floor_s(inputs.total, inputs.weight_byte, inputs.chip_bw * inputs.chips)
    return {"weight floor": floor, "share of the roofline": floor / inputs.measured}


@recomputes("EX-03")
def multiquery_context(inputs: ClaimInputs) -> Parts:
    """KV per chip of multihead attention over multiquery attention split by batch (gain in context)."""
    multihead = multihead_width_per_chip(inputs.heads, inputs.multihead_width, inputs.chips)
    return {"longer context": multihead / (inputs.multiquery_width / inputs.chips)}


@recomputes("EX-04")
def chat_turn(inputs: ClaimInputs) -> Parts:
    """Time of a chat turn: output tokens times the measured step."""
    return {"turn": inputs.step_s * inputs.output}


@recomputes("EX-05")
def quantised_ratio(inputs: ClaimInputs) -> Parts:
    """Hardware ratio (FLOP/s over byte/s) by format of weights and of arithmetic."""
    return {
        "bf16": hardware_ratio(inputs.bf16, inputs.peak_bf16, inputs.mem_bw),
        "int8 weights, bf16 arithmetic": hardware_ratio(inputs.int8, inputs.peak_bf16, inputs.mem_bw),
        "int8": hardware_ratio(inputs.int8, inputs.peak_int8, inputs.mem_bw),
    }


@recomputes("EX-06")
def h100_ratio(inputs: ClaimInputs) -> Parts:
    """Hardware ratio (FLOP/s over byte/s) of H100."""
    return {"H100 bf16": hardware_ratio(inputs.bf16, inputs.peak, inputs.mem_bw)}


@recomputes("EX-07")
def training_mfu(inputs: ClaimInputs) -> Parts:
    """MFU of a training run: 6 N D over peak FLOPs in its chip-hours, by two peaks."""
    per_token = model_flop_per_token(matmul_flop_per_token(inputs.active), inputs.none, training_passes(inputs.trainable))
    rate = inputs.tokens / inputs.chip_time
    peaks = {"MFU": inputs.peak, "MFU by the SXM part's peak": inputs.sxm_peak}
    return {name: flop_utilisation(per_token, rate, peak) for name, peak in peaks.items()}


@recomputes("EX-08")
def cost_of_a_day(inputs: ClaimInputs) -> Parts:
    """Cost of a day of all nodes, idle or not."""
    return {"cost": inputs.nodes * inputs.node * inputs.chip_price * inputs.time}


@recomputes("EX-09")
def revenue_of_a_day(inputs: ClaimInputs) -> Parts:
    """Revenue of a day with every token at its list price."""
    misses = inputs.prompts - inputs.hits
    return {
        "revenue": charged_usd(inputs.hits, inputs.rate_hit)
        + charged_usd(misses, inputs.rate_miss)
        + charged_usd(inputs.outputs, inputs.rate_output)
    }

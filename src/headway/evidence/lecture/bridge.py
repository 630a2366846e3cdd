"""From the board's figures to the machine's, factor by factor: balanced batch, step, drain and the context where KV equals compute.

Each stage is a figure by laws, and its factor is that figure over the stage before. The last stage is the machine's own figure.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from headway.core.quantity import known
from headway.evidence.claims.claim import claims
from headway.evidence.lecture.machine import NO_TOKENS, LectureCase, coefficients, floor, step
from headway.laws.roofline.balance import (
    balanced_batch,
    balanced_batch_with_kv,
    compute_s_per_token,
    crossing_with_attention,
    drain_s,
    kv_balanced_context,
)
from headway.laws.roofline.batch_step import board_balanced_batch, kv_of_crossing, latency_floor_s, machine_s_per_token
from headway.laws.step.coefficients import StepCoefficients
from headway.laws.step.step import compute_s, kv_s, weights_s

BALANCED, STEP, DRAIN, CROSSING = "balanced batch", "step", "drain", "context where KV equals compute"
NO_KV = known(0.0, "no KV", "s/token", "constant", "caches are left out, as on the board")
SEQUENCES_PER_RANK = known(1e6, "sequences per rank", "", "constant", "so many that every expert is read")
BOARD_DRAIN = known(0.02, "drain", "s", "claim", "Reiner Pope, blackboard lecture", "2026-04-29")
ONE_BYTE = known(1.0, "byte per parameter", "byte", "claim", "the board adds parameters to bytes")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BridgeStage:
    """A stage of the walk: the figure after it, its factor on the figure before (None for the first), and what it does."""

    quantity: str
    name: str
    value: Any
    factor: Any
    unit: str
    reason: str


def stages(case: LectureCase) -> list[BridgeStage]:
    """All walks, one after another."""
    return [*_balanced(case), *_step(case), *_drain(case), *_crossing(case)]


def _walk(quantity: str, unit: str, values: Sequence[tuple[str, Any, str]]) -> list[BridgeStage]:
    walk: list[BridgeStage] = []
    for name, value, reason in values:
        factor = value / walk[-1].value if walk else None
        walk.append(BridgeStage(quantity=quantity, name=name, value=value, factor=factor, unit=unit, reason=reason))
    return walk


# -- balanced batch -------------------------------------------------------------------------------------------------------------


def _balanced(case: LectureCase) -> list[BridgeStage]:
    board = claims()["RB-11"].inputs
    experts, active = board["experts"], board["board_experts_per_token"]
    on_one, peak, fitted = coefficients(case)
    attention = f"scores and values at context {int(case.context)} are compute that the board drops"
    return _walk(
        BALANCED, "token",
        [
            ("the board", board_balanced_batch(experts, active), "300 x 256 experts over 32"),
            ("this chip's ratio", balanced_batch(case.ratio, experts, active), "FLOP rate over bandwidth in the format of most weights"),
            ("true sparsity", case.balanced, "total over active parameters instead of 256 over 32"),
            ("formats and parts", knee(case, on_one, None), "formats of each part; the embedding is looked up"),
            ("copies on ranks", knee(case, peak, None), f"{case.layout}: each rank reads all but the experts; fullest chip"),
            ("attention's own FLOPs", knee(case, peak, case.context), attention),
            ("fitted rates", knee(case, fitted, case.context), _rates_reason(case)),
        ],
    )  # fmt: skip


def _rates_reason(case: LectureCase) -> str:
    _, peak, fitted = coefficients(case)
    ratio = float(knee(case, fitted, case.context)) / float(knee(case, peak, case.context))
    if ratio < 1:
        return "the fitted knee, down: kernels and activations cost compute more than weight reads"
    return "the fitted knee, up: kernels cost weight reads more than compute"


def knee(case: LectureCase, terms: StepCoefficients, context: Any) -> Any:
    """Batch at which compute takes as long as weight reads by the step law; `context` None leaves attention's own FLOPs out."""
    return balanced_batch_with_kv(_weights(terms), _per_sequence(case, terms, context), NO_KV)


def _weights(terms: StepCoefficients) -> Any:
    return weights_s(terms, SEQUENCES_PER_RANK * terms.dp)


def _per_sequence(case: LectureCase, terms: StepCoefficients, context: Any) -> Any:
    """Compute time per sequence of the batch; it is linear in the batch, so that one sequence on each rank gives it."""
    ranks = terms.dp
    tokens = NO_TOKENS if context is None else ranks * context
    return machine_s_per_token(compute_s(terms, ranks, tokens), known(1.0, "token per sequence", "token", "constant", "decode") * ranks)


# -- step and drain -------------------------------------------------------------------------------------------------------------


def _step(case: LectureCase) -> list[BridgeStage]:
    on_one, peak, _ = coefficients(case)
    place = f"batch {int(case.batch)}, context {int(case.context)}"
    return _walk(
        STEP, "s",
        [
            ("the board", latency_floor_s(case.total, ONE_BYTE, case.bandwidth), "all parameters at one byte over the bandwidth"),
            ("formats and parts", _weights(on_one) / case.system.chips, "formats of each part; the embedding is looked up"),
            ("copies on ranks", _weights(peak), f"floor of the weights; {case.layout}: the fullest chip's experts and its copy"),
            ("caches and compute", floor(case), f"floor of the step: the longest of compute, memory and network; {place}"),
            ("fitted rates", step(case), "achieved rates, launches, collectives and the engine's own work"),
        ],
    )  # fmt: skip


def _drain(case: LectureCase) -> list[BridgeStage]:
    _, peak, fitted = coefficients(case)
    chip, place = case.system.chip, f"batch {int(case.batch)}, context {int(case.context)}"
    return _walk(
        DRAIN, "s",
        [
            ("the board", BOARD_DRAIN, "some 20 ms for many generations"),
            ("this chip", drain_s(chip.need("hbm"), chip.need("hbm_bw")), "its HBM over its bandwidth"),
            ("what a step reads", _memory(case, peak), f"weights and caches of the step ({place})"),
            ("fitted rates", _memory(case, fitted), "achieved shares of the bandwidth"),
        ],
    )  # fmt: skip


def _memory(case: LectureCase, terms: StepCoefficients) -> Any:
    return weights_s(terms, case.batch) + kv_s(terms, case.batch, case.batch * case.context)


# -- crossing -------------------------------------------------------------------------------------------------------------------


def _crossing(case: LectureCase) -> list[BridgeStage]:
    """Only of models whose cache grows with context for ever: a window's reads do not."""
    if not grows(case):
        return []
    guess = claims()["AP-04"].inputs
    board_kv = kv_of_crossing(guess["active"], guess["weight_byte"], guess["ratio"], guess["crossing"])
    by_params = guess["crossing"] * (case.active / guess["active"])
    by_kv = by_params * (board_kv / case.kv)
    by_ratio = kv_balanced_context(compute_s_per_token(case.active, case.peak), case.kv, case.bandwidth)
    values = [
        ("the board", guess["crossing"], "where Gemini's price steps up, read as the knee"),
        ("active parameters", by_params, "of this model instead of 100 B"),
        ("KV per token", by_kv, "of this model instead of the 1,667 bytes inferred"),
        ("ratio and format", by_ratio, "this machine's ratio and bytes per weight instead of 300 and one"),
    ]
    _, peak, fitted = coefficients(case)
    for name, terms, reason in (
        ("attention's own FLOPs", peak, f"and weights in their formats; {case.layout}"),
        ("fitted rates", fitted, "achieved shares of FLOP rate and bandwidth"),
    ):
        context = machine_crossing(case, terms)
        if math.isinf(float(context)):
            break  # attention computes as long as it reads: KV never catches up
        values.append((name, context, reason))
    return _walk(CROSSING, "token", values)


def grows(case: LectureCase) -> bool:
    """Whether a model reads its whole cache at any context."""
    return float(case.kv) > 0 and all(math.isinf(span.cap) and math.isinf(span.root) for span in case.fitted.step.spans)


def machine_crossing(case: LectureCase, terms: StepCoefficients) -> Any:
    """Context at which KV reads take as long as all arithmetic by the step law; both are straight lines in the context."""
    ranks = terms.dp
    reads = sum(span.read for span in terms.spans)
    scores = sum(span.decode_compute for span in terms.spans)
    return crossing_with_attention(
        compute_s(terms, ranks, NO_TOKENS),
        reads / terms.achieved.decode_memory,
        scores / terms.achieved.decode_compute,
    )

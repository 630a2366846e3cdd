"""Card of a model on a machine: the lecture's quantities there, with the lecture's figure and the reason for the difference beside each."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from headway.core.listing import format_value
from headway.evidence.claims.claim import claims
from headway.evidence.lecture.machine import LectureCase, capacity, floor, rate, step
from headway.laws.architecture.params import sparsity
from headway.laws.rack import fewest_within
from headway.laws.roofline.balance import capacity_context, compute_s_per_token, drain_s, kv_balanced_context
from headway.laws.roofline.batch_step import board_balanced_batch, kv_of_crossing, latency_floor_s
from headway.laws.step.layer_terms import experts_held


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CardFigure:
    """A quantity of the card: here, in the lecture, and why they differ."""

    name: str
    claim_id: str
    value: Any  # None where it does not apply
    unit: str
    lecture: float | None  # None where the lecture gives a formula or nothing
    lecture_text: str
    reason: str


def figures(case: LectureCase) -> list[CardFigure]:
    """All quantities of the card, in the order of the lecture's argument."""
    return [*_balance(case), *_times(case), *_contexts(case), *_service(case)]


def _stated_figure(claim_id: str, part: str) -> float:
    return claims()[claim_id].stated[part]


def _show(value: Any, unit: str) -> str:
    return format_value(None if value is None else float(value), unit)


def _figure(name: str, claim_id: str, value: Any, unit: str, lecture: float | None, text: str, reason: str) -> CardFigure:
    """A figure; infinite ones do not apply."""
    applies = value is not None and math.isfinite(float(value))
    label = text or _show(lecture, unit)
    return CardFigure(
        name=name, claim_id=claim_id, value=value if applies else None, unit=unit, lecture=lecture, lecture_text=label, reason=reason
    )


def _balance(case: LectureCase) -> list[CardFigure]:
    formats, chip = case.formats.labels, case.system.chip
    weights = _show(case.weight_byte, "byte")
    peak, bandwidth = (_show(value, unit) for value, unit in ((case.peak, "flop/s"), (case.bandwidth, "byte/s")))
    board = board_balanced_batch(claims()["RB-11"].inputs["experts"], claims()["RB-11"].inputs["board_experts_per_token"])
    board_sparsity = _stated_figure("SP-01", "total over active")
    multiples = claims()["RB-13"].inputs
    double, triple = case.balanced * multiples["double"], case.balanced * multiples["triple"]
    counts = f"{_show(case.total, '')} of which a token uses {_show(case.active, '')}"
    dense = "all parameters are active" if case.total == case.active else counts
    return [
        _figure("hardware ratio", "RB-08", case.ratio, "", 300.0, "",
                f"{weights} x {peak} {formats[2]} over 2 x {bandwidth} ({chip.name})"),
        _figure("sparsity, total / active", "SP-01", sparsity(case.total, case.active), "", board_sparsity, "",
                f"{dense}; the board counts 32 of 256 experts"),
        _figure("balanced batch", "RB-10", case.balanced, "token", float(board), "", "ratio x sparsity, without caches; see --bridge"),
        _figure("double the balanced batch", "RB-13", double, "token", _stated_figure("RB-13", "double"), "",
                "what the lecture says one runs in practice"),
        _figure("triple the balanced batch", "RB-13", triple, "token", _stated_figure("RB-13", "triple"), "",
                "the upper end of that"),
    ]  # fmt: skip


def _times(case: LectureCase) -> list[CardFigure]:
    batch, context = _show(case.batch, ""), _show(case.context, "token")
    place = f"batch {batch}, context {context}, {case.layout}"
    return [
        _figure("floor of a step: weights", "RB-05", latency_floor_s(case.total, case.weight_byte, case.bandwidth), "s", None, "formula",
                f"{_show(case.total * case.weight_byte, 'byte')} over {_show(case.bandwidth, 'byte/s')}"),
        _figure("drain time of HBM", "TS-01", drain_s(case.system.chip.need("hbm"), case.system.chip.need("hbm_bw")), "s", 0.02, "",
                f"{_show(case.system.chip.need('hbm'), 'byte')} over {_show(case.system.chip.need('hbm_bw'), 'byte/s')} on each chip"),
        _figure("step there, at peak rates", "TS-10", floor(case), "s", None, "-", f"{place}: caches and copies counted"),
        _figure("step there, expected", "TS-01", step(case), "s", 0.02, "", f"{place}: {case.batch.source}; fitted rates"),
    ]  # fmt: skip


def _contexts(case: LectureCase) -> list[CardFigure]:
    guess = claims()["AP-04"].inputs
    board_kv = kv_of_crossing(guess["active"], guess["weight_byte"], guess["ratio"], guess["crossing"])
    weights = case.total * case.weight_byte
    flat = "its cache stops growing with context"
    grows = float(case.kv) > 0
    per_token = compute_s_per_token(case.active, case.peak)
    by_weights = weights / (case.batch * case.kv) if grows else None
    by_compute = kv_balanced_context(per_token, case.kv, case.bandwidth) if grows else None
    longest = capacity_context(case.hbm, weights, case.batch, case.kv) if grows else None
    ranked = f"batch {_show(case.batch, '')}"
    return [
        _figure("KV cache per token", "AP-04", case.kv, "byte/token", float(board_kv), "",
                f"{case.formats.labels[1]} cache, all layers; the lecture infers its own from a price"),
        _figure("context where KV reads equal weight reads", "TS-11", by_weights, "token", None, "-",
                f"{ranked}" if grows else flat),
        _figure("context where KV reads equal compute", "AP-03", by_compute, "token", float(guess["crossing"]), "",
                "beyond it no batch balances; follows from KV per token and active parameters" if grows else flat),
        _figure("longest context", "CW-07", longest, "token", None, "formula",
                f"{ranked}; {_show(case.hbm, 'byte')} less weights, nothing kept free" if grows else flat),
    ]  # fmt: skip


def _service(case: LectureCase) -> list[CardFigure]:
    traffic = claims()["TS-09"].inputs
    served = traffic["october"] / traffic["month"]
    tokens = rate(case)
    room = capacity(case)
    fits = f"caches of {_show(room, '')} sequences fit" if math.isfinite(room) else "caches never fill the memory"
    domain = case.system.scale_up_domain
    needed = fewest_within(case.total * case.weight_byte, domain * case.system.chip.need("hbm"))
    experts = next((block.experts for block in reversed(case.work.blocks) if block.experts), None)
    placed = None if experts is None else experts_held(experts, case.layout.redundant, case.layout.ep)
    return [
        _figure("tokens/s of the machine", "TS-07", tokens, "token/s", _stated_figure("TS-07", "2,000 at 64 steps/s"), "",
                f"batch over the expected step; {fits}"),
        _figure("share of a large service", "TS-08", tokens / served, "", _stated_figure("TS-08", "July 2025"), "",
                "of Gemini's 1.3 quadrillion tokens a month (October 2025)"),
        _figure("scale-up domains that hold the weights", "FS-02", needed, "", None, "-",
                f"domains of {int(domain)} chips, {_show(domain * case.system.chip.need('hbm'), 'byte')} each"),
        _figure("experts on the fullest chip", "MOE-02", placed, "", _stated_figure("MOE-02", "experts per chip"), "",
                "dense: no experts" if experts is None else f"{int(experts)} over {int(case.layout.ep)} chips; the board puts 256 on 64"),
    ]  # fmt: skip

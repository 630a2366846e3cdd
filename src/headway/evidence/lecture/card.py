"""Card of a model on a machine: the lecture's quantities there beside the lecture's figures, and the bridge from the board to the machine.

The bridge goes factor by factor: balanced batch, step, drain and the context where KV equals compute. Each stage is a figure by laws, and
its factor is that figure over the stage before; the last stage is the machine's own figure.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headway.core.errors import BadValue, HeadwayError
from headway.core.listing import format_value
from headway.core.quantity import default, known
from headway.core.schema import defaults
from headway.core.trace import unrecorded
from headway.core.units import Number, Token
from headway.economics.price.price import priced, ways_of
from headway.economics.questions import terms as commercial_terms
from headway.evidence.claims.claim import claims
from headway.hardware.system import System
from headway.laws.architecture.params import sparsity
from headway.laws.economics.cost import usd_per_mtok_out
from headway.laws.rack import fewest_within
from headway.laws.roofline.balance import (
    balanced_batch,
    balanced_batch_with_kv,
    capacity_context,
    compute_s_per_token,
    crossing_with_attention,
    drain_s,
    hardware_ratio,
    kv_balanced_context,
)
from headway.laws.roofline.batch_step import (
    batch_compute_s,
    board_balanced_batch,
    kv_of_crossing,
    latency_floor_s,
    machine_s_per_token,
    roofline_s,
)
from headway.laws.step.coefficients import StepCoefficients
from headway.laws.step.layer_terms import experts_held
from headway.laws.step.memory import rank_sequence_limit, sequence_bytes
from headway.laws.step.step import compute_s, kv_s, step_floor_s, step_s, weights_s
from headway.models.model import Model
from headway.models.precision import Precision
from headway.models.totals import active_params, kv_bytes_per_token, total_params
from headway.models.work import ModelWork, work_of
from headway.performance.achieved import efficiencies
from headway.performance.assumptions import Assumptions
from headway.performance.collectives import system_links
from headway.performance.compile import StepModel, compile_layout
from headway.performance.formats import Formats, main_part, resolve
from headway.performance.layout import UNASKED, Layout, ModelShape, illegal, shape, tensor_why
from headway.performance.room import room_on_chip
from headway.performance.workload import Load
from headway.serving.curves import Curves
from headway.serving.plan.plan import LayoutPlan, plan

CONTEXT = 8192
NO_TOKENS = known(0.0, "no prompt", "token", "constant", "a decode step prefills nothing")
# Every kernel at the datasheet peak, and nothing between kernels.
PEAK_RATES = {"overlap": "full", "eff_compute": 1.0, "eff_memory": 1.0, "eff_network": 1.0, "eff_in_switch": 1.0, "eff_exchange": 1.0,
              "eff_out": 1.0, "t0": 0.0, "alpha": 0.0, "alpha_host": 0.0, "alpha_out": 0.0,
              "alpha_exchange": 0.0, "alpha_exchange_out": 0.0}  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LectureCase:
    """A model on a machine: terms of the lecture's equations, and the layout with its step models."""

    model: Model
    system: System
    work: ModelWork
    formats: Formats
    layout: Layout
    weight_byte: Any  # of the format of most weights
    peak: Any  # of the whole machine, in the format that those weights run in
    bandwidth: Any  # of the whole machine
    hbm: Any  # of the whole machine
    total: Any
    active: Any
    ratio: Any
    balanced: Any
    kv: Any  # bytes per token of context, all layers
    fitted: StepModel
    at_peak: StepModel
    on_one_chip: StepModel  # at peak, on one chip: no weight is copied, none is split unevenly
    batch: Any
    context: Any
    precision: Precision


def lecture_case(model: Model, system: System, precision: Precision, batch: int | None = None, context: Token | None = None) -> LectureCase:
    """Case of a model on a machine; without a batch the balanced one, in whole sequences on each rank, or what fits."""
    work = work_of(model)
    formats = resolve(work, system.chip, precision)
    form = dataclasses.replace(shape(work.blocks), dimensions=())  # a card is about arithmetic, whatever engines load
    layout = usual_layout(form, int(system.chips))
    block, part = main_part(work.blocks)
    chip, chips = system.chip, system.chips
    peak, bandwidth = formats.peaks[block][part] * chips, chip.need("hbm_bw") * chips
    weight_byte, all_params, used_params = formats.weights[block][part].bytes, total_params(model), active_params(model)
    ratio = hardware_ratio(weight_byte, peak, bandwidth)
    expected = system_links(defaults(Assumptions), system)
    why = "the datasheet's peak, without latency"
    rates = {name: value if isinstance(value, str) else default(value, name, "", why) for name, value in PEAK_RATES.items()}
    ideal = defaults(Assumptions, rates)
    case = LectureCase(
        model=model, system=system, work=work, formats=formats, layout=layout, weight_byte=weight_byte, peak=peak, bandwidth=bandwidth,
        hbm=chip.need('hbm') * chips, total=all_params, active=used_params, ratio=ratio,
        balanced=balanced_batch(ratio, all_params, used_params), kv=kv_bytes_per_token(model, formats.kv.bytes),
        fitted=compile_layout(work, system, layout, expected, formats), at_peak=compile_layout(work, system, layout, ideal, formats),
        on_one_chip=compile_layout(work, system, Layout(**UNASKED), ideal, formats), batch=NO_TOKENS, precision=precision,
        context=default(CONTEXT, "context", "token", "default of --context") if context is None else context,
    )  # fmt: skip
    if batch is not None:
        return dataclasses.replace(case, batch=known(batch, "batch", "", "input", "given by the user", "now"))
    ranks, room = int(layout.dp), capacity(case)
    sequences, why = max(int(float(case.balanced) // ranks) * ranks, ranks), "balanced batch, in whole sequences on each rank"
    if room < ranks:
        why = "balanced batch in whole sequences on each rank; its caches do not fit"
    elif room < sequences:
        sequences, why = int(room // ranks * ranks), "most sequences whose caches fit, in whole sequences on each rank"
    return dataclasses.replace(case, batch=known(sequences, "batch", "", "derived", why))


def usual_layout(form: ModelShape, chips: int) -> Layout:
    """A rank of attention on each chip and experts over all, or for a dense model the widest legal tensor parallelism."""
    if form.experts:
        degrees = {"ep": max(degree for degree in range(1, min(chips, form.experts) + 1) if chips % degree == 0), "dp": chips}
    else:
        tp = max(degree for degree in range(1, chips + 1) if chips % degree == 0 and not tensor_why(degree, form))
        degrees = {"tp": tp, "dp": chips // tp}
    why = "usual layout: a rank on each chip"
    layout = Layout(**UNASKED | {name: default(value, name, "", why) for name, value in degrees.items()})
    reason = illegal(layout, form)
    if reason:
        raise BadValue("--on", f"{chips} chips", f"a machine on which the usual layout is legal ({reason})")
    return layout


def capacity(case: LectureCase) -> float:
    """Sequences at the case's context whose caches fit beside the weights in what an engine leaves them."""
    usual = defaults(Assumptions)
    usable = room_on_chip(
        case.work, case.system.chip, case.layout, case.fitted, usual.engine, usual.hbm_utilization, efficiencies(case.system.chip)
    ).usable
    per_sequence = sequence_bytes(case.fitted.stores, case.fitted.state_bytes, case.context)
    limit = float(rank_sequence_limit(usable, case.fitted.weights_bytes, per_sequence, case.fitted.stage, case.layout.cp))
    return math.inf if math.isinf(limit) else math.floor(limit) * int(case.layout.dp)


def step(case: LectureCase) -> Any:
    """Expected time of a decode step at the case's batch and context."""
    return step_s(case.fitted.step, case.batch, case.batch * case.context, NO_TOKENS, NO_TOKENS)


def floor(case: LectureCase) -> Any:
    """Floor of that step: all work overlaps, at peak rates."""
    return step_floor_s(case.at_peak.step, case.batch, case.batch * case.context, NO_TOKENS, NO_TOKENS)


def rate(case: LectureCase) -> Any:
    """Tokens per second of the whole machine while it decodes."""
    return case.batch / step(case)


def coefficients(case: LectureCase) -> tuple[StepCoefficients, StepCoefficients, StepCoefficients]:
    """Step coefficients on one chip at peak, in the layout at peak, and in the layout as fitted."""
    return case.on_one_chip.step, case.at_peak.step, case.fitted.step


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
    return [*_balance(case), *_times(case), *_contexts(case), *_service(case), *_requests(case)]


def _stated_figure(claim_id: str, part: str) -> float:
    return claims()[claim_id].stated[part]


def _show(value: Number, unit: str) -> str:
    return format_value(None if value is None else float(value), unit)


def _figure(name: str, claim_id: str, value: Number, unit: str, lecture: float | None, text: str, reason: str) -> CardFigure:
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


ANSWER = default(1000, "output", "token", "answers of the card's requests")
ANY_PRICE = known(1.0 / 3600, "chip price", "USD/s", "constant", "any: a ratio of costs does not depend on it")


def _requests(case: LectureCase) -> list[CardFigure]:
    """Costs of whole requests, which prefill as well: their ratios, by the cheaper of one pool and prefill apart."""
    with unrecorded():
        answer = _planned(case)
    if answer is None or answer.infeasible:
        picks, place = [], "no layout serves a request within that step"
    else:
        picks = [pick for _, pick in ways_of(answer)]
        place = f"prompt {_show(case.context, 'token')}, answer {_show(ANSWER, 'token')}, TPOT within the step; "
        place += "one pool" if picks[0].prefill is None else f"prefill apart, decode {picks[0].case.layout}"
    costs = [priced(pick, commercial_terms(chip_price=ANY_PRICE)) for pick in picks]
    multiple = costs[0]["output_multiple"] if costs else None
    dearer = costs[1]["usd_per_request"] / costs[0]["usd_per_request"] if len(costs) > 1 else None
    return [
        _figure("cost of output over input", "AP-10", multiple, "", _stated_figure("AP-10", "Claude"), "", place),
        _figure("cost of a request, other way of prefill", "AP-10", dearer, "", None, "-",
                "over the cheaper of one pool and prefill apart" if dearer else "one way alone was weighed"),
    ]  # fmt: skip


def _planned(case: LectureCase) -> LayoutPlan | None:
    """The cheapest way to serve requests of the card's context within its expected step; None where the machine cannot plan them."""
    try:
        return plan(
            case.model, case.system, Load(prompt=case.context, output=ANSWER), tpot=float(step(case)), weights=case.precision.weights,
            kv=case.formats.labels[1], elasticities=False, frontier=False,
        )  # fmt: skip
    except HeadwayError:
        return None


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
    at_peak, at_fitted = knee(case, peak, case.context), knee(case, fitted, case.context)
    rates = "the fitted knee, up: kernels cost weight reads more than compute"
    if float(at_fitted) / float(at_peak) < 1:
        rates = "the fitted knee, down: kernels and activations cost compute more than weight reads"
    attention = f"scores and values at context {int(case.context)} are compute that the board drops"
    return _walk(
        BALANCED, "token",
        [
            ("the board", board_balanced_batch(experts, active), "300 x 256 experts over 32"),
            ("this chip's ratio", balanced_batch(case.ratio, experts, active), "FLOP rate over bandwidth in the format of most weights"),
            ("true sparsity", case.balanced, "total over active parameters instead of 256 over 32"),
            ("formats and parts", knee(case, on_one, None), "formats of each part; the embedding is looked up"),
            ("copies on ranks", knee(case, peak, None), f"{case.layout}: each rank reads all but the experts; fullest chip"),
            ("attention's own FLOPs", at_peak, attention),
            ("fitted rates", at_fitted, rates),
        ],
    )  # fmt: skip


def knee(case: LectureCase, terms: StepCoefficients, context: Token | None) -> Any:
    """Batch at which compute takes as long as weight reads by the step law; `context` None leaves attention's own FLOPs out.

    Compute is linear in the batch, so that one sequence on each rank gives its time per sequence.
    """
    ranks = terms.dp
    one_token = known(1.0, "token per sequence", "token", "constant", "decode")
    compute = machine_s_per_token(compute_s(terms, ranks, NO_TOKENS if context is None else ranks * context), one_token * ranks)
    return balanced_batch_with_kv(weights_s(terms, SEQUENCES_PER_RANK * terms.dp), compute, NO_KV)


# -- step and drain -------------------------------------------------------------------------------------------------------------


def _step(case: LectureCase) -> list[BridgeStage]:
    on_one, peak, _ = coefficients(case)
    place = f"batch {int(case.batch)}, context {int(case.context)}"
    weights, split = (weights_s(terms, SEQUENCES_PER_RANK * terms.dp) for terms in (on_one, peak))
    return _walk(
        STEP, "s",
        [
            ("the board", latency_floor_s(case.total, ONE_BYTE, case.bandwidth), "all parameters at one byte over the bandwidth"),
            ("formats and parts", weights / case.system.chips, "formats of each part; the embedding is looked up"),
            ("copies on ranks", split, f"floor of the weights; {case.layout}: the fullest chip's experts and its copy"),
            ("caches and compute", floor(case), f"floor of the step: the longest of compute, memory and network; {place}"),
            ("fitted rates", step(case), "achieved rates, launches, collectives and the engine's own work"),
        ],
    )  # fmt: skip


def _drain(case: LectureCase) -> list[BridgeStage]:
    chip, place = case.system.chip, f"batch {int(case.batch)}, context {int(case.context)}"
    peak, fitted = (
        weights_s(terms, case.batch) + kv_s(terms, case.batch, case.batch * case.context) for terms in coefficients(case)[1:]
    )
    return _walk(
        DRAIN, "s",
        [
            ("the board", BOARD_DRAIN, "some 20 ms for many generations"),
            ("this chip", drain_s(chip.need("hbm"), chip.need("hbm_bw")), "its HBM over its bandwidth"),
            ("what a step reads", peak, f"weights and caches of the step ({place})"),
            ("fitted rates", fitted, "achieved shares of the bandwidth"),
        ],
    )  # fmt: skip


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


# -- the board's own curves -------------------------------------------------------------------------------------------------------


POINTS = 160
BEYOND = 2.5  # largest batch drawn, over the balanced one
AT_ONCE = 1.0  # replicas
MOST_BATCH = 1e7  # batch at which the cost has reached its floor


def board_curves(inputs: Mapping[str, Any]) -> Curves:
    """Curves of a model given by total and active parameters on a machine given by its peak and bandwidth."""
    ratio = hardware_ratio(inputs["weight_byte"], inputs["peak"], inputs["mem_bw"])
    knee = float(balanced_batch(ratio, inputs["total"], inputs["active"]))
    batch = np.linspace(1.0, BEYOND * knee, POINTS)
    weights = float(latency_floor_s(inputs["total"], inputs["weight_byte"], inputs["mem_bw"]))

    def times(batches: np.ndarray) -> dict[str, Any]:
        compute = batch_compute_s(batches, inputs["active"], inputs["peak"])
        flat = np.full(len(batches), weights)
        nothing = np.zeros(len(batches))
        return {"compute": compute, "weights": flat, "KV cache": nothing, "network": nothing, "floor": roofline_s(compute, flat)}

    def costs(batches: np.ndarray) -> dict[str, Any]:
        price, chips = inputs["chip_price"], inputs["chips"]
        return {name: usd_per_mtok_out(price, chips, time, batches, AT_ONCE) for name, time in times(batches).items()}

    end = costs(np.array([MOST_BATCH]))["floor"]
    return Curves(batch=batch, times=times(batch), costs=costs(batch), latency_floor=weights, cost_floor=float(end[0]), knee=knee,
                  turn=None, capacity=None)  # fmt: skip

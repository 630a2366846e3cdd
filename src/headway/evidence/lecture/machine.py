"""A model on a machine as the card and the bridge see it: the lecture's terms, and the step law at peak rates and at fitted ones."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from headway.core.errors import BadValue
from headway.core.quantity import default, known
from headway.core.schema import defaults
from headway.hardware.system import System
from headway.laws.roofline.balance import balanced_batch, hardware_ratio
from headway.laws.step.coefficients import StepCoefficients
from headway.laws.step.memory import rank_sequence_limit, sequence_bytes
from headway.laws.step.step import step_floor_s, step_s
from headway.models.model import Model
from headway.models.precision import Precision
from headway.models.totals import active_params, kv_bytes_per_token, total_params
from headway.models.work import ModelWork, work_of
from headway.performance.achieved import with_links
from headway.performance.assumptions import Assumptions
from headway.performance.compile import StepModel, compile_layout
from headway.performance.formats import Formats, main_part, resolve
from headway.performance.layout import UNASKED, Layout, ModelShape, illegal, shape, tensor_why

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


def lecture_case(model: Model, system: System, precision: Precision, batch: int | None = None, context: Any = None) -> LectureCase:
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
    balanced = balanced_batch(ratio, all_params, used_params)
    expected = with_links(defaults(Assumptions), chip)
    ideal = defaults(Assumptions, {name: _peak_rate(name, value) for name, value in PEAK_RATES.items()})
    fitted = compile_layout(work, system, layout, expected, formats)
    case = LectureCase(
        model=model, system=system, work=work, formats=formats, layout=layout, weight_byte=weight_byte, peak=peak, bandwidth=bandwidth,
        hbm=chip.need('hbm') * chips, total=all_params, active=used_params, ratio=ratio, balanced=balanced,
        kv=kv_bytes_per_token(model, formats.kv.bytes), fitted=fitted,
        at_peak=compile_layout(work, system, layout, ideal, formats),
        on_one_chip=compile_layout(work, system, Layout(**UNASKED), ideal, formats),
        batch=NO_TOKENS, context=default(CONTEXT, "context", "token", "default of --context") if context is None else context,
    )  # fmt: skip
    return dataclasses.replace(case, batch=_batch(case, batch))


def _peak_rate(name: str, value: Any) -> Any:
    return value if isinstance(value, str) else default(value, name, "", "the datasheet's peak, without latency")


def usual_layout(form: ModelShape, chips: int) -> Layout:
    """A rank of attention on each chip and experts over all, or for a dense model the widest legal tensor parallelism."""
    if form.experts:
        ep = max(degree for degree in range(1, min(chips, form.experts) + 1) if chips % degree == 0)
        layout = Layout(**_degrees(ep=ep, dp=chips))
    else:
        tp = max(degree for degree in range(1, chips + 1) if chips % degree == 0 and not tensor_why(degree, form))
        layout = Layout(**_degrees(tp=tp, dp=chips // tp))
    reason = illegal(layout, form)
    if reason:
        raise BadValue("--on", f"{chips} chips", f"a machine on which the usual layout is legal ({reason})")
    return layout


def _degrees(**degrees: int) -> dict[str, Any]:
    return UNASKED | {name: default(value, name, "", "usual layout: a rank on each chip") for name, value in degrees.items()}


def _batch(case: LectureCase, batch: int | None) -> Any:
    """Batch of the card's step."""
    ranks = int(case.layout.dp)
    if batch is not None:
        return known(batch, "batch", "", "input", "given by the user", "now")
    room = capacity(case)
    balanced = max(int(float(case.balanced) // ranks) * ranks, ranks)
    if room < ranks:
        return known(balanced, "batch", "", "derived", "balanced batch in whole sequences on each rank; its caches do not fit")
    if room < balanced:
        return known(int(room // ranks * ranks), "batch", "", "derived", "most sequences whose caches fit, in whole sequences on each rank")
    return known(balanced, "batch", "", "derived", "balanced batch, in whole sequences on each rank")


def capacity(case: LectureCase) -> float:
    """Sequences at the case's context whose caches fit beside the weights in 90 % of HBM."""
    utilization = defaults(Assumptions).hbm_utilization
    usable = case.system.chip.need("hbm") * utilization
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

"""`serve`: latency, throughput, memory and cost of layouts at any batch and context, as one table; and what would help a point.

Numbers broadcast, so a grid and a point are one call. Layouts lie along the first axis, the load's numbers along the others.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from headway.core import columns, units
from headway.core.errors import BadValue, HeadwayError, IllegalCombination, UnknownName
from headway.core.quantity import Sourced, known, user_input
from headway.core.schema import defaults, fields
from headway.core.table import Axis, Labels, Table
from headway.core.trace import record
from headway.core.units import Token
from headway.hardware.chip import price_quote
from headway.hardware.chip_price import PriceQuote, price_name, price_origin
from headway.hardware.system import System
from headway.hardware.system import system as find_system
from headway.models.config import catalogue_name
from headway.models.config import model as find_model
from headway.models.model import Model, MoE
from headway.models.precision import Precision
from headway.models.work import work_of
from headway.performance.achieved import basis, remainder_note
from headway.performance.assumptions import Assumptions
from headway.performance.calibration.in_force import calibrations
from headway.performance.collectives import system_links
from headway.performance.compile import halves
from headway.performance.drafts import drafts_of
from headway.performance.estimate import Deployment, estimate
from headway.performance.formats import Formats, check_compute, floor_note, has_peak, no_peak_note, resolve
from headway.performance.images import image_notes
from headway.performance.layout import NAMES, UNHALVED, Layout, check, copies_note, shape
from headway.performance.offload import offload_notes
from headway.performance.room import PLAIN, RISK, start_as
from headway.performance.transport import staged
from headway.performance.workload import Load, read_expert_load

SERVE = columns.table("serve")
DRAFTS = columns.table("drafts")  # beside those of serve, where something drafts
AS_STORED = Precision()
NOTHING_FIXED = known(0.0, "fixed", "", "constant", "an MFU counts all time against the model's FLOPs")
LIKE_VLLM = "no --engine is named: memory is set aside as vLLM does at its start"


def deployment(
    model: Model | str,
    system: System | str,
    layouts: Layout | Sequence[Layout],
    load: Load,
    precision: Precision = AS_STORED,
    assumptions: Assumptions | None = None,
) -> Deployment:
    """A model on a machine at a load: names looked up, numbers checked, formats and price resolved; of several layouts the first."""
    known_model = find_model(model) if isinstance(model, str) else model
    machine = find_system(system) if isinstance(system, str) else system
    case_assumptions = at_mfu(system_links(assumptions or defaults(Assumptions), machine))
    work = work_of(known_model, _expert_load(case_assumptions, known_model))
    layout_list = [layouts] if isinstance(layouts, Layout) else list(layouts)
    legal = [check(known_layout(layout), shape(work.blocks, precision.weights)) for layout in layout_list]
    check_compute(machine.chip, precision)
    offload_remarks = offload_notes(work, machine.chip, case_assumptions.offload)
    if not has_peak(machine.chip) and (load.prompt is not None or load.rate is not None):
        machine.chip.need("peak_bf16")  # which decides prompts
    formats = resolve(work, machine.chip, precision)
    drafts = drafts_of(known_model, machine.chip, precision, case_assumptions)
    price = price_quote(machine.chip, case_assumptions.price_metric)
    remarks = (no_peak_note(machine.chip), floor_note(work, formats), copies_note(legal, work.blocks))
    notes = [*offload_remarks, *filter(None, remarks), *image_notes(work, case_assumptions)]
    return Deployment(
        model=known_model, work=work, system=machine, layout=legal[0], load=load, assumptions=case_assumptions, formats=formats,
        price=price, notes=(*notes, *(drafts.notes if drafts else ()), *_notes(known_model, machine, price, case_assumptions, formats)),
        drafts=drafts, calibration=None if case_assumptions.engine == "none" or case_assumptions.overlap != "fitted" else calibrations(),
    )  # fmt: skip


def at_mfu(assumptions: Assumptions) -> Assumptions:
    """The assumptions under which a prefill takes its model FLOPs over `mfu` of the peak; as they are without an MFU."""
    if assumptions.mfu is None:
        return assumptions
    for name, usual in (("eff_compute", None), ("overlap", "fitted")):
        value = getattr(assumptions, name)
        if value not in (usual, "full"):
            raise BadValue("--mfu", f"{float(assumptions.mfu):g}", f"no --{name.replace('_', '-')} beside it: the MFU stands for it")
    return dataclasses.replace(assumptions, overlap="full", eff_compute=assumptions.mfu, fixed=NOTHING_FIXED)


def _expert_load(assumptions: Assumptions, model: Model) -> tuple[Any, ...]:
    """Measured load of each routed expert of the model; empty without a measurement."""
    if not assumptions.expert_load:
        return ()
    load = read_expert_load(assumptions.expert_load)
    experts = {int(block.ffn.experts) for block in model.blocks if isinstance(block.ffn, MoE)}
    if experts != {len(load)}:
        wants = ", ".join(map(str, sorted(experts))) or "0"
        raise BadValue("expert_load", f"{len(load)} numbers", f"one for each of the model's {wants} experts")
    return load


def known_layout(layout: Layout) -> Layout:
    """The layout with an origin for each number."""
    degrees = {name: getattr(layout, name) for name in NAMES}
    marks = fields(Layout)
    for name, value in degrees.items():
        wants = marks[name][0].illegal(value)
        if wants:
            raise BadValue(name, value, wants)
    return Layout(**{name: value if isinstance(value, Sourced) else user_input(int(value), name) for name, value in degrees.items()})


def checked_load(batch: Any = None, context: Any = None, prompt: Any = None, output: Any = None, rate: Any = None) -> Load:
    """A checked load: a context, or a prompt and an output; every number finite and above zero."""
    if rate is not None and context is not None:
        raise BadValue("rate", rate, "a rate of requests that have a prompt and an output, not --context")
    if rate is not None and batch is not None:
        raise IllegalCombination("--batch", batch, "either --batch (users who wait for their answers) or --rate (arrivals), not both")
    if context is None and (prompt is None or output is None):
        raise BadValue("load", "neither", "--context, or both --prompt and --output")
    if context is not None and (prompt is not None or output is not None):
        raise BadValue("load", "both", "either --context, or --prompt and --output, not both")
    return Load(
        batch=_numbers(1 if batch is None else batch, "batch"), context=_numbers(context, "context"),
        prompt=_numbers(prompt, "prompt"), output=_numbers(output, "output"), rate=_numbers(rate, "rate"),
    )  # fmt: skip


def _numbers(value: Any, name: str) -> Any:
    q = fields(Load)[name][0]
    if value is None or isinstance(value, Sourced):
        return value
    values = np.asarray(value, dtype=float)
    if values.ndim > 1 or values.size == 0 or not np.isfinite(values).all() or (values <= 0).any() or (values > q.high).any():
        raise BadValue(name, value, f"finite numbers above 0 and at most {q.high:g}, a scalar or one list")
    return user_input(values.item(), name, q.unit) if values.size == 1 else values


def _notes(model: Model, system: System, price: PriceQuote | None, assumptions: Assumptions, formats: Formats) -> tuple[str, ...]:
    as_vllm = assumptions.engine == "other" and assumptions.overlap == "fitted" and start_as("other", system.chip) != PLAIN
    beyond = remainder_note(system.chip, formats, assumptions)
    notes = [*basis(system.chip, assumptions), *filter(None, [beyond]), *([LIKE_VLLM] if as_vllm else []), *formats.notes, *model.notes]
    if assumptions.hit_rate:
        notes.append(prefix_hits(system))
    notes += _other_engines(model, system, assumptions.engine)
    if system.chips > 1 and system.chip.topology == "pcie" and system.chip.scale_up_domain == 1:
        notes.append(f"cards of one host are joined by its PCIe, {units.show(system.scale_up_bw, 'byte/s')} each way, alone on it")
    if system.chips > 1 and staged(system):
        peers, link = units.show(system.chip.peer_bw, "byte/s"), units.show(system.scale_up_bw, "byte/s").replace(" ", "")
        way = f"messages reach {peers} of that, through the host's memory"
        notes.append(f"{system.chip.name} has no peer access: {way}; with a driver that gives it, --set chip.peer_bw={link}")
    if price is None:
        has = sorted({cost.metric for cost in system.chip.costs if cost.value.unit == "USD/s"})
        metrics_note = f"; it has {', '.join(has)} (--price-metric)" if has else ""
        none = f"{system.chip.name} has no {price_name(assumptions.price_metric)} in the catalogue"
        notes.append(f"{none}: costs are null{metrics_note}, or give --chip-price $2/h")
    else:
        change = "" if price.metric == "input" else "; --chip-price or --price-metric changes it"
        notes.append(f"chip price {price_origin(price)}{change}")
    return tuple(notes)


def _other_engines(model: Model, system: System, engine: str) -> list[str]:
    """A note where no engine is named and the user's own runs of the deployment are under one."""
    force = calibrations()
    if force is None or engine != "other":
        return []
    keys = {observation.key for observation in force.observations}
    engines = sorted({key.engine for key in keys if (key.model, key.chip) == (catalogue_name(model.name), system.chip.name)})
    return [f"your own runs of it are under {', '.join(engines)}: --engine {engines[0]} goes by them"] if engines else []


def prefix_hits(system: System) -> str:
    """The note on where cached prefixes are, and on which link the cost of a cached token rests."""
    link = "HBM's own bandwidth (no host link is known)" if system.chip.host_link_bw is None else "host link"
    hits = "prefix hits are in HBM, as in vLLM and SGLang: nothing is loaded"
    return f"{hits}; usd_per_mtok_cached is for a prefix kept outside it, over the {link}"


ONE_CHIP = Layout()
BOUNDS = ("compute", "weights", "kv", "network", "overhead", "transfer", "capacity")
PARTS = ("compute_s", "weights_s", "kv_s", "network_s", "overhead_s", "transfer_s")
AT_RISK = "at risk"
REASONS = (
    "",
    "needs more chips than the system has",
    "weights alone exceed the usable HBM of the fullest chip",
    "weights and KV cache exceed the usable HBM of the fullest chip",
    "experts exceed the host's memory",
    f"{AT_RISK}: weights, KV cache, activations and graphs take more than 97 % of the fullest chip",
)
MOST_POINTS = 10_000_000  # limit of one grid, about 4 GB of columns
EXACT_REASONS = 2000  # rows up to which a table says by how much each row does not fit


def serve(
    model: Model | str,
    system: System | str,
    layouts: Layout | Sequence[Layout] = ONE_CHIP,
    *,
    batch: Any = None,
    context: Any = None,
    prompt: Any = None,
    output: Any = None,
    rate: Any = None,
    precision: Precision = AS_STORED,
    assumptions: Assumptions | None = None,
) -> Table:
    """Every contract quantity of a model on a machine, over a grid of layouts, batches and either contexts or prompts and outputs.

    Requests come from `batch` users per replica, each of whom waits for the answer before the next request (a closed loop, 1 user unless
    told), or at random at `rate` requests per second over all replicas (an open loop).
    Arguments are scalars or sequences, in SI and tokens. Returns a Table with axes layout, batch, context (or prompt, output).
    Raises BadValue, IllegalLayout, UnknownName, MissingFact for invalid input; a point that does not fit is a row with fits False.
    """
    load = checked_load(batch, context, prompt, output, rate)
    layout_list = tuple(known_layout(layout) for layout in ((layouts,) if isinstance(layouts, Layout) else layouts))
    case = deployment(model, system, layout_list, load, precision, assumptions)
    names = ("batch", "context") if load.prompt is None else ("batch" if load.rate is None else "rate", "prompt", "output")
    numbers = [Axis(name, np.atleast_1d(np.asarray(getattr(load, name), dtype=float))) for name in names]
    axes = (Axis("layout", tuple(str(layout) for layout in layout_list)), *numbers)
    points = math.prod(len(axis.values) for axis in axes)
    if points > MOST_POINTS:
        raise BadValue("grid", f"{points} points", f"at most {MOST_POINTS}: fewer values, or longer steps")
    spread = {}  # each number an array along its axis, or a scalar
    for position, axis in enumerate(numbers, start=1):
        value, shape_of = getattr(load, axis.name), (-1 if place == position else 1 for place in range(len(axes)))
        spread[axis.name] = value if isinstance(value, Sourced) else value.reshape(*shape_of)
    grid = case.at(_stacked(list(layout_list), len(axes)), Load(**{"batch": 1} | spread))

    @functools.lru_cache(maxsize=1)  # the columns of a row share it
    def recorded_row(row: int) -> dict[str, Any]:
        layout, *place = np.unravel_index(row, tuple(len(axis.values) for axis in axes))
        entries = {}
        for axis, index in zip(numbers, place, strict=True):
            value, unit = getattr(load, axis.name), fields(Load)[axis.name][0].unit
            entries[axis.name] = value if isinstance(value, Sourced) else user_input(axis.values[index].item(), axis.name, unit)
        return recorded(lambda: case.replayed(layout_list[int(layout)], Load(**entries)))

    def tree(row: int, key: str) -> Any:
        if key not in SERVE and key not in DRAFTS:
            raise UnknownName("column", key, SERVE)
        return explained_value(recorded_row(row), key)

    table = Table(axes=axes, columns=filled(grid, axes), notes=case.notes, tree=tree)
    return _halved(table, grid) if case.assumptions.communication == "two-batch" else table


def _stacked(layouts: list[Layout], ndim: int) -> Layout:
    """Several layouts as one whose numbers are arrays along the first of `ndim` axes; a single layout unchanged."""
    if len(layouts) == 1:
        return layouts[0]
    tall = (-1, *(1,) * (ndim - 1))
    return Layout(**{name: np.array([int(getattr(layout, name)) for layout in layouts]).reshape(tall) for name in NAMES})


def _halved(table: Table, case: Deployment) -> Table:
    """The rows whose batch can be halved, with a note on those that were dropped; IllegalCombination if none can."""
    rows = np.flatnonzero(np.broadcast_to(halves(case.layout, case.load.batch), table.shape))
    if not len(rows):
        raise IllegalCombination("communication", "two-batch", UNHALVED)
    if len(rows) == len(table):
        return table
    note = f"two-batch: dropped {len(table) - len(rows)} of {len(table)} points, which lack {UNHALVED}"
    return dataclasses.replace(table.take(rows), notes=(*table.notes, note))


def filled(case: Deployment, axes: tuple[Axis, ...], values: dict[str, Any] | None = None) -> dict[str, Any]:
    """Every contract column of a deployment whose numbers lie along `axes`; `values` replaces its estimate."""
    values = dict(values or estimate(case))
    labels = {"kind": "point", "model": case.model.name, "system": case.system.name}
    labels |= dict(zip(("weights", "kv", "compute"), case.formats.labels, strict=True))
    labels |= {name: getattr(case.layout, name) for name in NAMES}
    labels |= {name: _counts(getattr(case.load, name)) for name in ("prompt", "output")}
    labels["batch"] = _counts(case.load.batch) if case.load.rate is None else values["decoding"]
    values |= {name: _counts(values[name]) for name in ("concurrency", "context")}
    labels |= {"bound": _bound(values), "why": _why(values, case, axes)}
    values |= undefined_tpot(values, case.load.output) | unknown_prompts(values, case.system)
    values |= saturated(values)
    row = {key: labels.get(key, values.get(key)) for key in SERVE}
    return row | drafting(case, values) if "draft_tokens" in values else row


def drafting(case: Deployment, values: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of speculation; null users where drafts save time of all that have seats."""
    users = np.asarray(values.get("draft_users", np.inf), dtype=float)
    until = None if np.isinf(users).all() else np.where(np.isinf(users), np.nan, users)
    drafter = "" if case.drafts is None else case.drafts.name
    return {key: {"drafter": drafter, "draft_users": until}.get(key, values.get(key)) for key in DRAFTS}


def undefined_tpot(values: Mapping[str, Any], output: Token) -> dict[str, Any]:
    """TPOT and its rate as null where an answer has one token: vLLM divides by the tokens after the first."""
    if output is None or not np.any(np.asarray(output, dtype=float) <= 1):
        return {}
    single = np.asarray(output, dtype=float) <= 1
    keys = [key for key in values if (key.startswith("tpot_") or key == "tok_per_s_user") and values[key] is not None]
    return {key: None if single.all() else np.where(single, np.nan, values[key]) for key in keys}


def unknown_prompts(values: Mapping[str, Any], system: System) -> dict[str, Any]:
    """Times of prompts as null on a chip whose peak is not known: arithmetic decides them."""
    if has_peak(system.chip):
        return {}
    return {key: None for key in values if key.startswith(("ttft_", "e2e_", "usd_per_mtok_in"))}


def saturated(values: Mapping[str, Any]) -> dict[str, Any]:
    """Times at the load as null where requests arrive faster than they are served: the queue grows without end."""
    load = values.get("utilisation")
    if load is None or not np.any(np.asarray(load) >= 1):
        return {}
    over = np.asarray(load) >= 1
    keys = [f"{stem}{end}_s" for stem in ("ttft", "tpot") for end in ("", "_lo", "_hi")] + ["e2e_s", "tok_per_s_user"]
    return {key: None if over.all() else np.where(over, np.nan, values[key]) for key in keys if values.get(key) is not None}


def _counts(value: Any) -> Any:
    """Counts as integers if all are whole: 64 sequences, not 64.0."""
    numbers = np.asarray(value, dtype=float) if value is not None else None
    return value if numbers is None or (numbers != np.floor(numbers)).any() else numbers.astype(np.int64)


def _bound(values: dict[str, Any]) -> Labels:
    """The longest part of a step per row; "capacity" if the row does not fit."""
    most, code = np.asarray(values[PARTS[0]], dtype=float), np.int8(0)
    of_step = PARTS if values.get("prefill_chips") is None else PARTS[:-1]  # two pools transfer a cache, and not in a step
    for index, key in enumerate(of_step[1:], start=1):
        part = np.asarray(values[key], dtype=float)
        code = np.where(part > most, np.int8(index), code)
        most = np.maximum(most, part)
    return Labels(np.where(values["fits"], code, np.int8(len(PARTS))), BOUNDS)


def _why(values: dict[str, Any], case: Deployment, axes: tuple[Axis, ...]) -> Labels:
    """Why a row does not fit, the first limit that fails, or is at risk, with amounts in small tables; "" of a row that fits well."""
    weights, usable, hosted = np.asarray(values["weights_bytes_chip"]), values["hbm_bytes_chip"], values["host_bytes_chip"]
    memory = math.inf if hosted is None or case.system.chip.host_dram is None else float(case.system.chip.host_dram)
    full_host = np.asarray(0.0 if hosted is None else hosted) > memory
    tight = np.where(np.asarray(values.get("memory_share", 0)) > RISK, 5, 0)
    reason = np.where(weights > usable, 2, np.where(full_host, 4, np.where(values["fits"], tight, 3)))
    reason = np.where(values["chips_used"] > case.system.chips, 1, reason)
    if int(np.prod([len(axis.values) for axis in axes])) > EXACT_REASONS or not reason.any():
        return Labels(reason.astype(np.int8), REASONS)
    keys = ("chips_used", "weights_bytes_chip", "kv_bytes_chip", "hbm_bytes_chip", "sequence_limit")
    arrays = *(values[key] for key in keys), values.get("memory_share", 0), 0.0 if hosted is None else hosted, reason
    chips_used, weights, kv, usable, limit, share, hosted, code = np.broadcast_arrays(*arrays)
    texts: dict[str, int] = {"": 0}
    codes = np.zeros(code.shape, dtype=np.int32)
    for at in np.ndindex(code.shape):
        load, most = weights[at] + kv[at], usable[at] / 1e9
        text = (
            "",
            f"needs {int(chips_used[at])} chips, the system has {int(case.system.chips)}",
            f"weights need {weights[at] / 1e9:.4g} GB on the fullest chip, {weights[at] / 1e9 - most:.3g} over usable {most:.4g}",
            f"weights and KV cache need {load / 1e9:.4g} GB on the fullest chip, {load / 1e9 - most:.3g} over usable {most:.4g}; "
            f"at most {int(min(limit[at], 1e12))} sequences per rank fit",
            f"the experts of a chip need {hosted[at] / 1e9:.4g} GB of its host's memory, {memory / 1e9:.4g} GB are there",
            f"{AT_RISK}: weights, KV cache, activations and graphs take {share[at]:.1%} of the fullest chip",
        )[int(code[at])]
        codes[at] = texts.setdefault(text, len(texts))
    return Labels(codes, tuple(texts))


def explained_value(values: dict[str, Any], key: str) -> Any:
    """One number of a recorded row."""
    if values.get(key) is None:
        raise BadValue("explain", key, "a numeric column that applies to this row, such as step_s, ttft_s or weights_bytes_chip")
    return values[key]


def recorded(deployed: Callable[[], Deployment], estimated: Callable[[Deployment], dict[str, Any]] = estimate) -> dict[str, Any]:
    """Every number of a deployment, which is made and estimated with the recorder on, as trees of laws."""
    with record():
        case = deployed()
        outputs = estimated(case)
    load = case.load
    outputs |= undefined_tpot(outputs, load.output) | unknown_prompts(outputs, case.system)
    degrees = {name: getattr(case.layout, name) for name in NAMES}
    batch = load.batch if load.rate is None else outputs.get("decoding", load.batch)
    return outputs | degrees | {"batch": batch, "prompt": load.prompt, "output": load.output}


MOST_CHANGES = 3
LEAST_GAIN = 0.01  # share from which a change is worth a line


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of one input, the row that its command prints, its formats as typed, and its gain: user speed times tokens for money."""

    flag: str
    row: Mapping[str, Any]
    precision: Precision
    gain: float
    left_out: str = ""  # assumption whose flag its command lacks


def changes(
    model: Model, system: System, row: Mapping[str, Any], assumptions: Assumptions, precision: Precision, most: int = MOST_CHANGES,
    batch_flag: str = "batch",
) -> list[Change]:  # fmt: skip
    """The most useful of the changes that fit, each evaluated as its command would; a point that cannot run is helped by what can.

    `precision`: the formats as typed, where "" is as published; the labels of a row are no formats to type: a checkpoint may mix several.
    `batch_flag` is "" where the batch follows from other flags, and is not changed.
    """
    useful = []
    choices = fields(Assumptions)
    for flag, edits, left_out in (*_reversals(assumptions), *((*change, "") for change in _candidates(row, batch_flag))):
        formats = dataclasses.replace(precision, **{key: edits[key] for key in ("weights", "kv") if key in edits})
        usual = dataclasses.replace(assumptions, **{left_out: choices[left_out][1]}) if left_out else assumptions
        after = _evaluated(model, system, {**row, **edits}, formats, usual)
        if after is not None and runs(after):
            gain = _value(after) / _value(row) - 1 if runs(row) else math.inf
            if gain >= LEAST_GAIN:
                useful.append(Change(flag=flag, row=after, precision=formats, gain=gain, left_out=left_out))
    return sorted(useful, key=lambda change: -change.gain)[:most]


def _reversals(assumptions: Assumptions) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Choices of the user that cost time, taken back: what it is, no edit of the row, the assumption."""
    if assumptions.eager:
        yield "CUDA graphs (without --eager)", {}, "eager"
    if assumptions.offload != "none":
        yield "--offload none", {}, "offload"


def _candidates(row: Mapping[str, Any], batch_flag: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Changes of formats, batch and tensor parallelism, as flags and as values of the row."""
    for key in ("weights", "kv"):
        if row[key] != "fp8":
            yield f"--{key} fp8", {key: "fp8"}
    for batch in (round(2 * row["batch"]), round(row["batch"] / 2)) if batch_flag and row.get("rate") is None else ():
        if batch:
            yield f"--{batch_flag} {batch}", {"batch": batch}
    yield from _layouts(row, bool(batch_flag))


def _layouts(row: Mapping[str, Any], merges_stages: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Other tensor parallelism, with copies on the chips that this frees; pipeline stages as tensor parallelism."""
    tp, pp, replicas = row["tp"], row["pp"], row.get("replicas") or 1
    for degree in (2 * tp, tp // 2):
        copies = replicas * tp // degree if degree else 0
        if replicas > 1 and copies and copies * degree == replicas * tp:
            yield f"--tp {degree} --replicas {copies}", {"tp": degree, "replicas": copies}
        elif degree:
            yield f"--tp {degree}", {"tp": degree}
    if pp > 1 and merges_stages:
        yield f"--tp {tp * pp} --pp 1", {"tp": tp * pp, "pp": 1}


def _evaluated(
    model: Model, system: System, row: Mapping[str, Any], precision: Precision, assumptions: Assumptions
) -> Mapping[str, Any] | None:
    """The row of `serve` at changed inputs; None where they are not legal."""
    keys = ("rate", "prompt", "output") if row.get("rate") is not None else ("batch", "prompt", "output")
    load = {key: row[key] for key in keys if row.get(key) is not None}
    load |= {} if row.get("prompt") is not None else {"context": row["context"]}
    layout = Layout(**{name: row[name] for name in (*NAMES, "replicas") if row.get(name) is not None})
    try:
        return serve(model, system, layout, **load, precision=precision, assumptions=assumptions).row(0)
    except HeadwayError:
        return None


def _value(row: Mapping[str, Any]) -> float:
    """Speed of one user times tokens for the money, or tokens per second where no price is known."""
    cost = row.get("usd_per_mtok_out")
    return 1 / row[time_key(row)] * (1 / cost if cost else row[tokens_key(row)])


def runs(row: Mapping[str, Any]) -> bool:
    """Whether a point fits in memory and carries its load."""
    return bool(row["fits"]) and (row.get("utilisation") or 0.0) < 1.0


def time_key(row: Mapping[str, Any]) -> str:
    """The time that a point is judged by: TPOT, or the step where there is none."""
    return "tpot_s" if row.get("tpot_s") is not None else "step_s"


def tokens_key(row: Mapping[str, Any]) -> str:
    """The rate that a point without a price is judged by, a column of its table."""
    return "tok_per_s_chip" if row.get("prompt") is not None else "decode_tok_per_s"

"""Prediction tasks of measured rows: the quantity of each row, its load (table in docs/measured_rows.md), and its setup.

A setup is model, machine, layout and formats, built once for all rows that share them.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from headway.core import schema
from headway.core.catalog import Catalog, default_catalog, fold, names_alone
from headway.core.errors import HeadwayError
from headway.core.quantity import user_input
from headway.core.schema import defaults
from headway.evidence.rows import defaults as row_defaults
from headway.evidence.rows.defaults import ROOM, Benchmark, StatedLayout, benchmark, place
from headway.evidence.rows.drafts import NO_DRAFTS, StatedDrafts, assumptions_of, row_drafts, stated_drafts, with_method
from headway.evidence.rows.names import Hardware, family, hardware, model_name, older, version, years_before
from headway.evidence.rows.row import MeasuredRow
from headway.hardware.chip import Chip, chip, reported_memory
from headway.hardware.system import System, system
from headway.models.config import model as find_model
from headway.models.model import Model, MoE
from headway.models.precision import Precision
from headway.models.work import ModelWork, work_of
from headway.performance.achieved import EAGER
from headway.performance.assumptions import Assumptions
from headway.performance.compile import StepModel, compile_drafts, compile_layout
from headway.performance.drafts import Drafts
from headway.performance.formats import Formats, resolve
from headway.performance.layout import Layout, check, shape, tensor_why
from headway.performance.nearest import ENGINES
from headway.serving.serve import known_layout

HOST = 8  # cards per host over PCIe
INEXACT = r"[-\s]class\b|\bcores?\b"  # words of hardware names that say more or less than a chip's name
_DEFAULTS, _BARE = defaults(Assumptions), defaults(Assumptions, {"engine": "none"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupKey:
    """Fields of a row that identify its setup, as stated there."""

    model: str
    hardware: str
    chips: int | None
    tp: int | None
    ep: int | None
    pp: int | None
    dp: int | None
    engine: str
    engine_version: str
    eager: bool  # without CUDA graphs
    date: str  # date of the row
    weights: str
    kv: str
    load: str
    split: bool  # disaggregated, and only a decode worker's layout is stated
    benchmark: str  # key of a benchmark with documented conditions
    attention_dp: bool = False  # dp is attention data parallelism, whatever ep is
    config: str = ""  # path of the model's config.json
    drafts: StatedDrafts = NO_DRAFTS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Setup:
    """A served model: machine, layout, formats and engine. Equal setups are one object, so a setup can be a dictionary key."""

    model: Model
    system: System
    layout: Layout  # layout of one engine instance
    precision: Precision
    engine: str  # engine family
    years: float  # age of the engine before the newest measured
    older: tuple[str, ...]  # overheads of an old engine version: evidence/rows/names.py, `older`
    replicas: int
    work: ModelWork
    formats: Formats
    weights_bytes: float  # weights on the fullest chip
    compiled: StepModel  # kernels alone, with the shipped efficiencies; of what drafts the engine's own work too
    drafts: Drafts | None  # speculation
    drafting: Assumptions  # under which it runs


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredSetup:
    """A setup, with a flag for each value inferred for it."""

    setup: Setup
    flags: tuple[str, ...]


@functools.lru_cache(maxsize=50_000)
def find(key: SetupKey, catalog: Catalog) -> InferredSetup | str:
    """Setup of a key, or the reason why it has none; cached, so the cost grows with distinct setups and not with rows."""
    try:
        return _find(key, catalog)
    except HeadwayError as error:
        return str(error)


def _find(key: SetupKey, catalog: Catalog) -> InferredSetup | str:
    spec = hardware(key.hardware, catalog)
    name = _named_model(key, catalog)
    engine = family(key.engine)
    device = _chip(spec.chip, catalog)
    plain = _work(name, "", catalog)
    row_formats = row_defaults.precision(key.weights, key.kv, key.model, engine, device.vendor, main_format(plain[0]), key.benchmark)
    work = _work(name, row_formats.head, catalog)[1]
    row_layout = StatedLayout(
        chips=key.chips or spec.count, tp=key.tp, ep=key.ep, pp=key.pp, dp=key.dp, engine=engine, version=version(key.engine_version),
        load=key.load, moe=any(block.experts for block in work.blocks), split=key.split, attention_dp=key.attention_dp,
    )  # fmt: skip
    usable = ROOM * float(reported_memory(device)) * _DEFAULTS.hbm_utilization
    placement = place(
        row_layout,
        lambda tp, pp: _weights(name, row_formats, catalog, spec.chip, Layout(tp=tp, pp=pp)) <= usable,
        lambda tp: not tensor_why(tp, shape(work.blocks)),
        HOST if _over_pcie(device, spec) else int(device.scale_up_domain or 1),
    )
    if isinstance(placement, str):
        return placement
    note = _machine(spec, placement.chips, catalog)[1]
    lacks = older(engine, key.engine_version, key.date)
    setup = _setup(name, spec, placement.chips, placement.layout, placement.replicas, row_formats.precision, row_formats.head, engine,
                   (EAGER, *lacks) if key.eager and EAGER not in lacks else lacks, years_before(key.date), key.drafts, catalog)  # fmt: skip
    counts_differ = spec.count is not None and key.chips is not None and spec.count != key.chips
    undated = key.engine_version and not key.date and ENGINES[engine] not in ("llamacpp", "native")
    flags = (
        *([f"engine_version {key.engine_version}: its date is not known, so as the newest measured"] if undated else []),
        *row_formats.flags,
        *placement.flags,
        *(setup.drafts.notes if setup.drafts else ()),
        *([f"draft not stated: {setup.drafts.name}"] if setup.drafts and key.drafts.tokens and not key.drafts.draft else []),
        *([note] if note else []),
        *([f"{key.hardware} with {key.chips} chips"] if counts_differ else []),
        *([f"{key.hardware} taken as {spec.chip}"] if re.search(INEXACT, key.hardware.lower()) else []),
    )
    return InferredSetup(setup=setup, flags=flags)


def _named_model(key: SetupKey, catalog: Catalog) -> str:
    """What `find_model` takes for a row's model: the path of its config.json, a model of the user's folders, or a catalogue name."""
    if key.config:
        return key.config
    folders = [root / "models" for root in catalog.roots[:-1]]
    names = {fold(path.stem) for folder in folders if folder.is_dir() for path in folder.glob("*.json")}
    is_path = ("/" in key.model or key.model.endswith(".json")) and not names_alone.get()
    if fold(key.model) in names or (is_path and Path(key.model).exists()):
        return key.model
    return model_name(key.model)


def main_format(model: Model) -> str:
    """Number format of most weights of a checkpoint."""
    return model.precision.expert if any(isinstance(block.ffn, MoE) for block in model.blocks) else model.precision.ffn


@functools.cache
def _chip(name: str, catalog: Catalog) -> Chip:
    return chip(name, catalog)


@functools.cache
def _work(name: str, head: str, catalog: Catalog) -> tuple[Model, ModelWork]:
    """Model and its work; `head` replaces the format of the output head."""
    model = find_model(name, [root / "models" for root in catalog.roots[:-1]])
    if head:
        model = replace(model, precision=replace(model.precision, embedding=head))
    return model, work_of(model)


@functools.cache
def _machine(spec: Hardware, chips: int, catalog: Catalog) -> tuple[System, str]:
    """Machine of `chips` equal chips, with scale-up domains of the chip's usual size; PCIe cards share their host's PCIe."""
    device = _chip(spec.chip, catalog)
    if chips == 1 or not _over_pcie(device, spec):
        return system(f"{chips}x{device.name}" if chips > 1 else device.name, catalog), ""
    link = device.host_link_bw if device.host_link_bw is not None else device.need("scale_up_bw")
    domain = user_input(min(chips, HOST), f"{chips}x{device.name}.scale_up_domain")
    machine = System(
        name=f"{chips}x{device.name}",
        chip=device,
        topology="pcie",
        notes=device.notes,
        chips=user_input(chips, f"{chips}x{device.name}.chips"),
        scale_up_domain=domain,
        scale_up_bw=link,
        scale_out_bw=device.scale_out_bw,
    )
    return machine, "cards are joined by their host's PCIe" if device.topology == "bridge" else ""


def _over_pcie(device: Chip, spec: Hardware) -> bool:
    """Whether cards are linked by PCIe alone: no other link, or a bridge that the name does not mention."""
    if spec.link == "pcie":
        return True
    return device.topology == "pcie" or (device.topology == "bridge" and spec.link != "nvlink")


@functools.cache
def _weights(name: str, row_formats: row_defaults.StatedFormats, catalog: Catalog, chip_name: str, layout: Layout) -> float:
    """Bytes of weights on the fullest chip of a layout."""
    work, device = _work(name, row_formats.head, catalog)[1], _chip(chip_name, catalog)
    chips = int(layout.tp) * int(layout.pp)
    machine = System(
        name=f"{chips}x{chip_name}",
        chip=device,
        topology="switch",
        chips=user_input(chips, "chips"),
        scale_up_domain=user_input(chips, "domain"),
        scale_up_bw=user_input(1e12, "link", "byte/s"),
    )
    resolved_formats = resolve(work, device, row_formats.precision)
    return float(compile_layout(work, machine, known_layout(layout), _DEFAULTS, resolved_formats).weights_bytes)


@functools.cache
def _setup(
    name: str,
    spec: Hardware,
    chips: int,
    layout: Layout,
    replicas: int,
    precision: Precision,
    head: str,
    engine: str,
    lacks: tuple[str, ...],
    years: float,
    speculation: StatedDrafts,
    catalog: Catalog,
) -> Setup:
    """Cached setup of these names; raises if the model or the machine does not allow it."""
    model, work = _work(name, head, catalog)
    machine = _machine(spec, chips, catalog)[0]
    form = replace(shape(work.blocks), dimensions=())  # a run that was measured was loaded
    legal = check(known_layout(layout), form)
    resolved_formats = resolve(work, machine.chip, precision)
    drafting = assumptions_of(with_method(speculation, model), engine, EAGER in lacks)
    drafts = row_drafts(model, machine.chip, precision, drafting)
    compiled = compile_layout(work, machine, legal, _BARE, resolved_formats, backend=ENGINES[engine])
    compiled = compile_drafts(compiled, machine, legal, drafting, drafts)
    return Setup(
        model=model, system=machine, layout=legal, precision=precision, engine=engine, older=lacks, years=years, replicas=replicas,
        work=work, formats=resolved_formats,
        weights_bytes=float(compiled.weights_bytes), compiled=compiled, drafts=drafts, drafting=drafting,
    )  # fmt: skip


FOR_ONE = ("llama.cpp", "native")  # engines that are measured with a single sequence where nothing else is said
ALONE = "tpot_low_qps"  # `roofline` of a served row that was measured nearly unloaded
WAITING = ("serving", "disagg")  # kinds whose users wait for an answer before they ask again
LOOPS = (*WAITING, "offline")  # kinds that are closed loops
TOGETHER = ("decode", "decode_e2e", "static")  # kinds whose whole batch decodes at once
ROUNDS = 3  # requests for each of those at a time, from which a run is steady
RANK_TOKENS = 16384  # prompt tokens with which a rank of a prefill run by itself is full
KINDS = ("decode", "decode_e2e", "prefill", "serving", "serving_unloaded", "offline", "static", "disagg")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedSplit:
    """Workers of a disaggregated run, with the setup of a prefill worker."""

    prefill: Setup
    prefill_workers: int
    decode_workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Prediction task of a row: lengths in tokens, `batch` sequences per instance, `concurrency` users over all instances."""

    row: MeasuredRow
    setup: Setup
    kind: str  # one of KINDS
    prompt: float | None
    output: float | None
    context: float | None  # mean KV length during decode
    batch: float | None
    concurrency: float | None
    flags: tuple[str, ...] = ()
    spread: float = 0.0  # standard deviation over mean of the output lengths
    split: StatedSplit | None = None  # workers of a disaggregated row that states them; `setup` is a decode worker's
    rate: float | None = None  # requests that arrive per second; None in a closed loop
    requests: float | None = None  # of the run
    max_num_seqs: float | None = None  # most sequences of one data-parallel rank, as the engine was started


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpredictable:
    """A row without a prediction, and the reason."""

    row: MeasuredRow
    why: str


def tasks(rows: Iterable[MeasuredRow], catalog: Catalog | None = None) -> list[Task | Unpredictable]:
    """Prediction task of each row, in the order of the rows."""
    where = catalog or default_catalog()
    return [_task(row, where) for row in rows]


def kind_of(row: MeasuredRow) -> str:
    """Kind of a row: the quantity it measures."""
    if row.mode == "decode_step":
        return "decode_e2e" if row.roofline == "yes_e2e" else "decode"
    if row.mode == "offline_throughput":
        return "static" if row.roofline == "yes_static_batch" and row.concurrency is not None else "offline"
    if row.mode == "serving_concurrency":
        is_alone = row.roofline == ALONE and row.concurrency is None and row.request_rate is None
        return "serving_unloaded" if is_alone else "serving"
    return row.mode


def _task(row: MeasuredRow, catalog: Catalog) -> Task | Unpredictable:
    kind = kind_of(row)
    why = _unstated(row, kind)
    if why:
        return Unpredictable(row=row, why=why)
    run = benchmark(row.source)
    key = SetupKey(
        model=row.model, hardware=row.hardware, chips=row.chips, tp=row.tp, ep=row.ep, pp=row.pp, dp=row.dp, engine=row.engine,
        engine_version=row.engine_version, eager=bool(row.eager), date=row.month or row.date, weights=row.weights, kv=row.kv,
        load="saturated" if kind == "offline" else "given", split=kind == "disagg", benchmark=run.key if run else "", config=row.config,
        drafts=stated_drafts(row),
    )  # fmt: skip
    keys = [key]
    if kind == "disagg" and row.prefill_workers and row.decode_workers:  # one worker is one instance of tp x dp chips
        pools = (row.prefill_tp, row.prefill_ep, row.prefill_dp), (row.decode_tp, row.decode_ep, row.decode_dp)
        keys = [
            replace(key, chips=(tp or 1) * (dp or 1), tp=tp, ep=ep, dp=dp, pp=None, split=False, attention_dp=True) for tp, ep, dp in pools
        ]
    resolutions = [find(key, catalog) for key in keys]
    for resolution in resolutions:
        if isinstance(resolution, str):
            return Unpredictable(row=row, why=resolution)
    setups = [resolution for resolution in resolutions if isinstance(resolution, InferredSetup)]
    task = _task_under_load(row, kind, setups[-1])
    most = (row.max_num_seqs or math.inf) * int(task.setup.layout.dp)
    if kind in TOGETHER and (task.batch or 0.0) > most:
        why = f"max_num_seqs: {most:g} sequences of an instance, fewer than the {task.batch:g} that decode at once"
        return Unpredictable(row=row, why=why)
    if len(setups) == 1:
        return task
    split = StatedSplit(prefill=setups[0].setup, prefill_workers=row.prefill_workers or 1, decode_workers=row.decode_workers or 1)
    return replace(task, split=split)


def _unstated(row: MeasuredRow, kind: str) -> str:
    """Missing field without which a row has no prediction, or ""."""
    if kind in ("decode", "decode_e2e") and row.concurrency is None and family(row.engine) not in FOR_ONE:
        return "batch_or_concurrency: missing, and nothing else says how many sequences the decode step has"
    if kind == "decode" and row.context is not None:
        return ""
    if row.prompt is None:
        return "input length not stated"
    if kind != "decode" and not row.prompt:
        return "a prefill of no tokens"
    if kind == "prefill":
        return ""
    if kind != "decode" and not row.output:
        return "output length not stated"
    if kind in ("serving", "disagg") and row.concurrency is None and (kind == "disagg" or row.request_rate is None):
        return "no load stated: neither users nor a rate nor that it is unloaded"
    return ""


def _scatter(row: MeasuredRow, run: Benchmark | None) -> float:
    """Scatter of answers' lengths: as the row states, as its benchmark draws them, else as `serve` assumes."""
    if row.length_cv is not None:
        return row.length_cv
    return run.spread if run else float(schema.fields(Assumptions)["length_cv"][1])


def _task_under_load(row: MeasuredRow, kind: str, resolution: InferredSetup) -> Task:
    """Task with mean lengths, mean KV length of decoding (as stated, else the prompt and half of the output), and its batch or users."""
    flags, run, setup = list(resolution.flags), benchmark(row.source), resolution.setup
    prompt, output, context = row.prompt, row.output, None
    if run is not None and run.mean_length_ratio != 1 and kind in WAITING and prompt and output:
        flags.append(f"{run.how}: {run.mean_length_ratio:g} of them in the mean")
        prompt, output = run.mean_length_ratio * prompt, run.mean_length_ratio * output
    if row.context is not None and kind in ("decode", "decode_e2e"):
        context = max(row.context, 1.0)
    elif kind != "prefill":
        context = max((prompt or 0.0) + (output or 0.0) / 2, 1.0)
        if kind == "decode":
            flags.append(f"context not stated: {context:g} tokens, the prompt" + (" and half the output" if output else ""))
    ranks, users = int(setup.layout.dp), row.concurrency
    if users and row.requests and row.requests < ROUNDS * users and kind in LOOPS:
        flags.append(f"requests: {row.requests:g} of {users:g} users are no steady load, which is what is predicted")
        users = min(users, row.requests)
    if kind in ("serving", "disagg", "offline"):
        batch = None
    elif kind == "serving_unloaded":
        batch, users = 1.0, float(setup.replicas)
    elif kind == "prefill" and users is None and ranks > 1:
        batch = float(ranks * max(1, int(RANK_TOKENS // (row.prompt or 1))))
        flags.append(f"batch not stated: {batch:g} prompts, which fill the {ranks} ranks")
        users = batch * setup.replicas
    else:
        if users is None:
            flags.append("batch not stated: one sequence")
        users = users or 1.0
        batch = max(1.0, users / setup.replicas)
    return Task(
        row=row, setup=setup, kind=kind, prompt=prompt, output=output, context=context, batch=batch, concurrency=users,
        flags=tuple(flags), rate=row.request_rate, spread=_scatter(row, run) if kind in WAITING else 0.0,
        requests=row.requests, max_num_seqs=row.max_num_seqs,
    )  # fmt: skip



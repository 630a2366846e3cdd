"""Setup of a row: model, machine, layout and formats, built once for all rows that share them."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from pathlib import Path

from headway.core.catalog import Catalog, fold
from headway.core.errors import HeadwayError
from headway.core.quantity import user_input
from headway.core.schema import defaults
from headway.evidence.rows import defaults as row_defaults
from headway.evidence.rows.defaults import ROOM, StatedLayout, place
from headway.evidence.rows.names import ENGINES, Hardware, family, hardware, model_name, older, version, years_before
from headway.hardware.chip import Chip, chip
from headway.hardware.system import System, system
from headway.models.config import model as find_model
from headway.models.model import Model, MoE
from headway.models.precision import Precision
from headway.models.work import ModelWork, work_of
from headway.performance.assumptions import Assumptions
from headway.performance.compile import StepModel, compile_layout
from headway.performance.formats import Formats, resolve
from headway.performance.layout import Layout, check, shape, tensor_why
from headway.serving.serve import known_layout

HOST = 8  # cards per host over PCIe
INEXACT = r"[-\s]class\b|\bcores?\b"  # words of hardware names that say more or less than a chip's name


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
    date: str  # date of the row
    weights: str
    kv: str
    load: str
    split: bool  # disaggregated, and only a decode worker's layout is stated
    benchmark: str  # key of a benchmark with documented conditions
    attention_dp: bool = False  # dp is attention data parallelism, whatever ep is
    config: str = ""  # path of the model's config.json


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
    compiled: StepModel  # kernels alone, with the shipped efficiencies


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
    usable = ROOM * float(device.need("hbm")) * _default_assumptions().hbm_utilization
    placement = place(
        row_layout,
        lambda tp, pp: _weights(name, row_formats, catalog, spec.chip, Layout(tp=tp, pp=pp)) <= usable,
        lambda tp: not tensor_why(tp, shape(work.blocks)),
        _domain(device, spec, HOST),
    )
    if isinstance(placement, str):
        return placement
    note = _machine(spec, placement.chips, catalog)[1]
    setup = _setup(name, spec, placement.chips, placement.layout, placement.replicas, row_formats.precision, row_formats.head, engine,
                   older(engine, key.engine_version, key.date), years_before(key.date), catalog)  # fmt: skip
    counts_differ = spec.count is not None and key.chips is not None and spec.count != key.chips
    flags = (
        *row_formats.flags,
        *placement.flags,
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
    if fold(key.model) in names or (("/" in key.model or key.model.endswith(".json")) and Path(key.model).exists()):
        return key.model
    return model_name(key.model)


def main_format(model: Model) -> str:
    """Number format of most weights of a checkpoint."""
    return model.precision.expert if any(isinstance(block.ffn, MoE) for block in model.blocks) else model.precision.ffn


@functools.cache
def _default_assumptions() -> Assumptions:
    return defaults(Assumptions)


@functools.cache
def _bare_assumptions() -> Assumptions:
    return defaults(Assumptions, {"engine": "none"})


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


def _domain(device: Chip, spec: Hardware, host: int) -> int:
    return host if _over_pcie(device, spec) else int(device.scale_up_domain or 1)


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
    return float(compile_layout(work, machine, known_layout(layout), _default_assumptions(), resolved_formats).weights_bytes)


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
    catalog: Catalog,
) -> Setup:
    """Cached setup of these names; raises if the model or the machine does not allow it."""
    model, work = _work(name, head, catalog)
    machine = _machine(spec, chips, catalog)[0]
    form = replace(shape(work.blocks), dimensions=())  # a run that was measured was loaded
    legal = check(known_layout(layout), form)
    resolved_formats = resolve(work, machine.chip, precision)
    compiled = compile_layout(work, machine, legal, _bare_assumptions(), resolved_formats, backend=ENGINES[engine])
    return Setup(
        model=model, system=machine, layout=legal, precision=precision, engine=engine, older=lacks, years=years, replicas=replicas,
        work=work, formats=resolved_formats,
        weights_bytes=float(compiled.weights_bytes), compiled=compiled,
    )  # fmt: skip

"""Setup of a training row: model, layout and stated values, defaults for the rest, and measured speed in tokens per second and chip.

The model is one of the catalogue by name, or a plain decoder of the row's shape and size; the layout is the stated one, or the fastest of
all legal layouts consistent with the stated parts.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.catalog import Catalog, default_catalog
from headway.core.errors import HeadwayError, UnknownName
from headway.core.quantity import known, user_input
from headway.core.schema import defaults
from headway.evidence.rows.names import hardware, model_name
from headway.evidence.training.row import TrainingRow
from headway.hardware.chip import reported_memory
from headway.hardware.system import System, system
from headway.laws.training.memory import memory_fits
from headway.models.attention.grouped_query import Attention
from headway.models.config import model as find_model
from headway.models.model import Block, Dense, Model, MoE, StoredPrecision
from headway.models.totals import total_params
from headway.performance.achieved import Efficiencies
from headway.training.achieved import chip_efficiency, training_efficiencies
from headway.training.estimate import estimate
from headway.training.pipeline import TrainingCase, machine
from headway.training.recipe import DISPATCHERS, KERNELS, Recipe, TrainingLayout, optimizer
from headway.training.run import fuses_attention, usual_dispatcher
from headway.training.search import LONG, MOST_TP, NAMES, bounds, candidates, layout_at, rows
from headway.training.work import hardware_flop, matmul_flop, model_flop, training_work

VOCABULARY = 50_304  # GPT-2's, padded
HEAD = 128
ASPECT = 128  # default hidden over layers of a plain decoder
NEAR = 0.15  # largest relative difference of a size from the catalogue's: longer position tables, another vocabulary
TWO_BYTES = StoredPrecision(mixer="bf16", ffn="bf16", expert="bf16", embedding="bf16")
PLAIN = "read as a plain decoder"  # flag of a named model whose structure is not known
_BRACKETS = re.compile(r"\s*[(\[][^)\]]*[)\]]?")
_CUT = re.compile(r"(.+?)[-_ ]?(\d{1,3})[-_ ]?layers?", re.IGNORECASE)
_DESCRIPTION = re.compile(r"(gpt|mpt|moe|dense|maxtext|opt|llama|bloom)[-_ ]?\d?[-_. ]?\d", re.IGNORECASE)  # plain decoders
_EXPERTS = re.compile(r"(\d+)e-top-?(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ShapedModel:
    """A model, with flags for the assumptions about it."""

    model: Model
    flags: tuple[str, ...]


def shaped(row: TrainingRow) -> ShapedModel | str:
    """Model of a row, or the reason why there is none: the catalogue's by name if its shape and size agree with the row, else a decoder."""
    try:
        model = find_model(model_name(_bare(row.model)))
    except UnknownName:
        model = None
    if model is not None:
        layers = sum(int(block.count) for block in model.blocks)
        agrees = (not row.layers or row.layers == layers) and (not row.hidden or row.hidden == model.hidden)
        if agrees and (row.params is None or abs(float(total_params(model)) / row.params - 1) < NEAR):
            return ShapedModel(model, ())
    cut_model = _cut_model(row)
    if cut_model is not None:
        return ShapedModel(cut_model, ())
    if row.params is None and (row.layers is None or row.hidden is None):
        return "the model is not in the catalogue and the row states neither its parameters nor its layers and width"
    layers, hidden, flags = _width(row)
    unread = () if _DESCRIPTION.match(row.model) else (f"{PLAIN}: {row.model} is not in the catalogue",)
    return ShapedModel(_plain(row, layers, hidden), (*flags, *unread))


def is_unread(flags: Sequence[str]) -> bool:
    """Whether a model is read as a plain decoder although its name says more."""
    return any(flag.startswith(PLAIN) for flag in flags)


def _bare(name: str) -> str:
    """Name without brackets, which qualify the run.

    >>> _bare("DeepSeek V3 (w/o MTP)"), _bare("Qwen3_30B_a3B")
    ('DeepSeek V3', 'Qwen3_30B_a3B')
    """
    return _BRACKETS.sub("", name).strip()


def _cut_model(row: TrainingRow) -> Model | None:
    """Catalogue model cut to the layers that its name states ("DeepSeek-V3-12layers"); None if the name states none.

    Of two kinds of layer the row's parameters say which remain: all of the first kind that fit, as they lead, or none.
    """
    match = _CUT.fullmatch(_bare(row.model))
    if match is None:
        return None
    try:
        model = find_model(model_name(match[1]))
    except UnknownName:
        return None
    layers, options = int(match[2]), []
    if not 0 < layers <= sum(int(block.count) for block in model.blocks):
        return None
    for skipped in range(len(model.blocks)):
        blocks, remaining = [], layers
        for block in model.blocks[skipped:]:
            count = min(remaining, int(block.count))
            remaining -= count
            if count:
                blocks.append(replace(block, count=known(count, f"{row.id}.layers", "", "input", "the name of the row's model")))
        if not remaining:
            options.append(replace(model, blocks=tuple(blocks)))
    if not row.params or len(options) < 2:
        return options[0] if options else None
    return min(options, key=lambda option: abs(float(total_params(option)) - float(row.params or 0)))


def _width(row: TrainingRow) -> tuple[int, int, tuple[str, ...]]:
    """Layers and width of a row: as stated, else from 12 h^2 parameters per layer; with flags."""

    def width(layers: int) -> int:
        return max(HEAD, HEAD * round((active / (12 * layers)) ** 0.5 / HEAD))

    active = row.active or row.params or 0.0
    if row.layers and row.hidden:
        return row.layers, row.hidden, ()
    if row.layers:
        return row.layers, width(row.layers), ("width not stated: that of 12 h^2 parameters a layer",)
    if row.hidden:
        return max(1, round(active / (12 * row.hidden**2))), row.hidden, ("layers not stated: those of 12 h^2 parameters a layer",)
    layers = max(2, round((active / (12 * ASPECT**2)) ** (1 / 3)))
    return layers, width(layers), (f"shape not stated: {layers} layers, {ASPECT} times as wide",)


def _plain(row: TrainingRow, layers: int, hidden: int) -> Model:
    """Plain decoder of this shape; the FFN width is chosen to match the row's parameters.

    Parameters that no token uses are those of experts: as many as the model's name says, else 2 of 8.
    """

    def number(value: float, what: str) -> Any:
        return known(value, f"{row.id}.{what}", "", "input", "the row's shape and size")

    heads = row.heads if row.heads and hidden % row.heads == 0 else max(1, hidden // HEAD)
    width = number(hidden, "hidden")
    attention = Attention(hidden=width, heads=number(heads, "heads"), kv_heads=number(heads, "heads"),
                          head_dim=number(hidden // heads, "head_dim"), value_dim=number(hidden // heads, "head_dim"))  # fmt: skip
    active, total = row.active or row.params, row.params or row.active
    per_layer = (active - VOCABULARY * hidden) / layers - 4 * hidden**2 if active else 8 * hidden**2
    inner = max(1, round(max(per_layer, hidden**2) / (2 * hidden)))
    matrices = number(2, "matrices")
    ffn: Any = Dense(hidden=width, intermediate=number(inner, "intermediate"), matrices=matrices)
    if active and total and total > 1.05 * active:
        match = _EXPERTS.search(row.model)
        experts, per_token = (int(match[1]), int(match[2])) if match else (8, 2)
        per_token = min(per_token, experts - 1) or 1
        expert_width = max(1, round((total - active) / (layers * (experts - per_token)) / (2 * float(width))))
        rest = max(inner - per_token * expert_width, 0)
        ffn = MoE(
            hidden=width, experts=number(experts, "experts"), per_token=number(per_token, "experts_per_token"),
            intermediate=number(expert_width, "expert_intermediate"), matrices=matrices, shared_experts=1 if rest else 0,
            shared_intermediate=number(rest, "shared_intermediate") if rest else 0, shared_matrices=matrices if rest else 0,
        )  # fmt: skip
    block = Block(count=number(layers, "layers"), attention=attention, ffn=ffn)
    return Model(
        name=row.model, family="plain", vocab=number(VOCABULARY, "vocab"), hidden=width, embedding_dim=width, tied=True, blocks=(block,),
        precision=TWO_BYTES,
    )  # fmt: skip


MICRO_BATCHES = (1, 2, 4, 8)  # micro-batches, in sequences, tried for a row that states none
ACCUMULATED = 8  # default micro-batches per step and pipeline stage
FEW = 2  # micro-batches per stage up to which the schedule is taken as interleaved (1F1B would idle a third of the time)
SCHEDULE_NAMES = ("1f1b", "zb-", "gpipe", "dualpipe", "interleaved")  # names of schedules in notes
TOKENS = 8192  # default tokens per step and chip, for a row without batch and layout
SHARDED = (("zero-3", 3), ("fsdp", 3), ("zero-2", 2), ("zero-1", 1), ("dist", 1), ("ddp", 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutArrays:
    """Layouts as a record of arrays, with the sequences per step of each."""

    layouts: TrainingLayout
    sequences: Any


def is_open(row: TrainingRow) -> bool:
    """Whether a row states no split of its model: no sharded data parallelism, and no tp with pp."""
    return not (row.sharding or (row.tp and row.pp))


def layout_options(row: TrainingRow, model: Model, where: System, sequence: int) -> LayoutArrays | str:
    """Candidate layouts of a row, or the reason why there is none."""
    chips = int(where.chips)
    options = _legal(row, model, chips, sequence) if is_open(row) else None
    if options is not None and len(options.sequences):
        return options
    replica_chips = (row.tp or 1) * (row.cp or 1) * (row.pp or 1)
    if chips % replica_chips:
        return f"tp {row.tp or 1} x cp {row.cp or 1} x pp {row.pp or 1} does not divide {chips} chips"
    return _stated_layouts(row, model, chips, chips // replica_chips, 3 if is_open(row) else sharding(row))


def sharding(row: TrainingRow) -> int:
    """ZeRO stage of a row; default 1, as in Megatron's distributed optimiser."""
    sharding_text = row.sharding.lower()
    return next((stage for text, stage in SHARDED if text in sharding_text), 1)


def expert_degree(model: Model, chips: int) -> int:
    """Largest expert-parallel degree that divides experts and chips."""
    return max((math.gcd(int(block.ffn.experts), chips) for block in model.blocks if isinstance(block.ffn, MoE)), default=1)


def chunks(row: TrainingRow, model: Model, dp: int) -> int:
    """Chunks of layers per pipeline stage: as stated, else 1; with FEW micro-batches, the most that leave no stage fuller."""
    pp, notes = row.pp or 1, row.notes.lower()
    if row.vpp or pp == 1 or not row.global_batch or any(name in notes for name in SCHEDULE_NAMES):
        return row.vpp or 1
    count = row.global_batch // (dp * (row.micro_batch or 1))
    if not 0 < count <= FEW * pp or count % pp:
        return 1
    layers = sum(int(block.count) for block in model.blocks)
    return max((n for n in range(1, layers // pp + 1) if n * -(-layers // (pp * n)) == -(-layers // pp)), default=1)


def _stated_layouts(row: TrainingRow, model: Model, chips: int, dp: int, zero: int) -> LayoutArrays:
    """Stated layout, with each possible micro-batch."""
    most = max(1, row.global_batch // dp) if row.global_batch else max(MICRO_BATCHES)
    micro = np.array([row.micro_batch] if row.micro_batch else sorted({min(n, most) for n in MICRO_BATCHES}))
    pp, ep = row.pp or 1, row.ep or expert_degree(model, chips // (row.pp or 1))
    columns = {"tp": row.tp or 1, "cp": row.cp or 1, "pp": pp, "vpp": chunks(row, model, dp), "ep": ep, "dp": dp, "micro_batch": micro}
    columns["zero"] = zero
    sequences = row.global_batch or dp * micro * (ACCUMULATED * pp if pp > 1 else 1)
    return LayoutArrays(
        layouts=TrainingLayout(**{name: np.broadcast_to(value, micro.shape) for name, value in columns.items()}),
        sequences=np.broadcast_to(sequences, micro.shape),
    )  # fmt: skip


def _legal(row: TrainingRow, model: Model, chips: int, sequence: int) -> LayoutArrays | None:
    """All legal layouts that use every chip and agree with the row; None where its micro-batch does not divide the batch."""
    sequences = row.global_batch or chips * max(1, TOKENS // sequence)
    if row.micro_batch and sequences % row.micro_batch:
        return None
    divisors = [n for n in MICRO_BATCHES if sequences % n == 0]
    pinned: dict[str, Sequence[int]] = {"micro_batch": divisors, "vpp": (row.vpp or 1,), "zero": (1, 3)}
    pinned |= {name: (value,) for name in ("tp", "cp", "pp", "dp", "micro_batch") if (value := getattr(row, name))}
    if not row.cp and sequence < LONG:
        pinned["cp"] = (1,)
    if row.ep and expert_degree(model, chips) > 1:
        pinned["ep"] = (row.ep,)
    all_layouts = candidates(bounds(model, chips, sequence, sequences), MOST_TP, pinned)
    fills_system = all_layouts.tp * all_layouts.cp * all_layouts.pp * all_layouts.dp == chips
    layouts = TrainingLayout(**{name: getattr(all_layouts, name)[fills_system] for name in NAMES})
    return LayoutArrays(layouts=layouts, sequences=np.full(len(layouts.tp), sequences))


SEQUENCE = 2048
OPTIMIZER, NARROW_OPTIMIZER, XLA_OPTIMIZER = "adam", "adam-bf16-grad", "adam-no-master"  # XLA trainers keep no 16-bit copy of the weights
ONE_LAYER = "one layer"
ADAPTERS = "task not stated: adapters alone (LoRA), as nothing else fits"
UNASKED = ("none", "selective")  # where a row states none: runs recompute modules, offload or split further first
FFN_AGAIN = re.compile(r"\b(?:mlp|moe)\b")  # modules of Megatron's recomputation; moe_act is an activation function
FUSED, EAGER = ("megatron_te", "megatron_fsdp", "nemo", "maxtext", "jax"), ("pytorch_fsdp", "deepspeed")  # software, by its kernels
BRIDGE = "megatron-bridge"  # its published table is of scripts/performance, whose recipes all set grad_reduce_in_fp32 and fuse the loss
NARROW_GRADIENTS = re.compile(r"(?:16-bit|bf16) gradients|grad_reduce_in_fp32\W+false|main_grads_dtype\W+bf(?:loat)?16", re.IGNORECASE)
DISPATCHER = re.compile(r"dispatcher (\w+)", re.IGNORECASE)
PACKED_IN_RACKS, PACKED = "2025-09", "2026-04"  # recipes of Megatron-Bridge send with HybridEP since then: in racks of 72, and everywhere
LARGE_DOMAIN = 8  # chips of a scale-up domain beyond which it is a rack
CAPTURED = "2026-06"  # since then those of routed models in MXFP8 capture a whole step as one CUDA graph
COMPILED_LOSS = "2025-04"  # since then torchtitan compiles the loss with the model (its pull request 1033)
OPEN = "layout not stated"  # flag of a row whose layout was chosen
SCHEDULES = {"zb-2p": "zb-h2", "zb-1p": "zb-h1", "interleaved": "interleaved", "dualpipe": "dualpipe", "gpipe": "gpipe"}  # by note


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSetup:
    """A training row as input of the training laws."""

    row: TrainingRow
    model: Model
    case: TrainingCase
    layout: TrainingLayout
    sequences: int  # sequences per step
    open: bool  # whether the row states no layout, so that the fastest was chosen
    flags: tuple[str, ...]


def setup(row: TrainingRow, catalog: Catalog | None = None, table: Efficiencies | None = None) -> TrainingSetup | str:
    """Setup of a row, or the reason why there is none; layouts left open are chosen by the numbers of `table`, or those that ship."""
    if ONE_LAYER in row.model.lower():
        return "the time of one layer alone is no optimiser step"
    shape = shaped(row)
    if isinstance(shape, str):
        return shape
    try:
        where = _system(row, catalog or default_catalog())
        return _case(row, shape.model, where, list(shape.flags), training_efficiencies(catalog) if table is None else table)
    except HeadwayError as error:
        return str(error)


def _system(row: TrainingRow, catalog: Catalog) -> System:
    chip = hardware(row.hardware, catalog)
    degrees = [degree for degree in (row.tp, row.cp, row.pp, row.dp) if degree]
    product = 1
    for degree in degrees:
        product *= degree
    count = row.chips or (product if degrees else chip.count or 1)
    return _built(f"{count}x{chip.chip}" if count > 1 else chip.chip, catalog)


@functools.cache
def _built(name: str, catalog: Catalog) -> System:
    return system(name, catalog)


def _case(row: TrainingRow, model: Model, where: System, flags: list[str], table: Efficiencies) -> TrainingSetup | str:
    """Setup with the stated values; open values take the fastest choice that fits in memory."""
    sequence = row.seq_len or SEQUENCE
    among = layout_options(row, model, where, sequence)
    if isinstance(among, str):
        return among
    subject = _Subject(row=row, model=model, where=where, sequence=sequence, table=table)
    best = _best_choice(subject, among)
    if not row.task and not best.fits:
        memory = estimate(best.case, best.layout).memory
        states = float(memory.weights + memory.gradients + memory.optimizer)  # certain; adapters alone need no gradients and states
        if states > float(where.chip.need("hbm")):
            adapters = _best_choice(replace(subject, row=replace(row, task="lora")), among)
            best, flags = (adapters, [*flags, ADAPTERS]) if adapters.fits else (best, flags)
    for is_stated, what in (
        (row.seq_len, f"sequence not stated: {SEQUENCE} tokens"),
        (not is_open(row), f"{OPEN}: tp {best.layout.tp} cp {best.layout.cp} pp {best.layout.pp} zero {best.layout.zero}"),
        (row.vpp or int(best.layout.vpp) == 1, f"interleaving not stated: {best.layout.vpp} chunks of layers a stage"),
        (row.micro_batch, f"micro-batch not stated: {best.layout.micro_batch}"),
        (row.global_batch, f"global batch not stated: {best.sequences} sequences"),
        (row.recompute, f"recomputation not stated: {best.case.recipe.recompute}"),
        (not (format_note := dtype_of(row, where)[1]), format_note),
        (best.fits, "needs more memory than the chip has, by these laws"),
    ):
        flags += [] if is_stated else [what]
    return TrainingSetup(
        row=row, model=model, case=best.case, layout=best.layout, sequences=best.sequences, open=is_open(row), flags=tuple(flags)
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """A candidate layout, with its step time and memory."""

    case: TrainingCase
    layout: TrainingLayout
    sequences: int
    fits: bool
    step: float  # s per sequence
    memory: float

    def better(self, rival: _Choice | None) -> bool:
        """Whether it beats `rival`: fits where the rival does not, else is faster; smaller if neither fits."""
        if rival is None or self.fits != rival.fits:
            return rival is None or self.fits
        return self.step < rival.step if self.fits else self.memory < rival.memory


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """A row with its model and machine, before a choice of what it leaves open."""

    row: TrainingRow
    model: Model
    where: System
    sequence: int
    table: Efficiencies


def _best_choice(subject: _Subject, among: LayoutArrays) -> _Choice:
    """Best choice under the recomputation that the row states, or any that is usual; where none fits, with a loss of one kernel.

    A layout that took place fits in what the driver reports of its chip; one that is chosen, as a planner does, in what its datasheet says.
    """
    text = subject.row.recompute.lower()
    row_mode = "ffn" if FFN_AGAIN.search(text) else next((mode for mode in ("full", "selective", "none") if mode in text), "")
    modes = (row_mode,) if row_mode else UNASKED
    first = _best_under(subject, among, modes, has_fused_loss=False)
    if first.fits:
        return first
    second = _best_under(subject, among, modes, has_fused_loss=True)
    return second if second.fits else first


def _best_under(subject: _Subject, among: LayoutArrays, modes: Sequence[str], has_fused_loss: bool) -> _Choice:
    """Best of the layouts, each with the kernels of its software, under any of these recomputation modes.

    Elementwise kernels run eagerly as the software says, else where training on GPUs is fully sharded, which is PyTorch's.
    """
    best: _Choice | None = None
    software, notes, where, sequence = subject.row.kernels.lower(), subject.row.notes.lower(), subject.where, subject.sequence
    is_fused = software in FUSED or _xla(where)
    eager = np.full(len(among.sequences), not is_fused) if is_fused or software in EAGER else among.layouts.zero == 3
    for recompute, kernels in itertools.product(modes, KERNELS):
        part = np.flatnonzero(eager == (kernels == "eager"))
        if not len(part):
            continue
        layouts, sequences = rows(among.layouts, part), among.sequences[part]
        usual = "interleaved" if (layouts.vpp > 1).any() else "1f1b"
        schedule = next((name for word, name in SCHEDULES.items() if word in notes), usual)
        case = _run(subject, {"recompute": recompute, "kernels": kernels, "schedule": schedule}, has_fused_loss)
        run_estimate = estimate(replace(case, batch=sequences * sequence), layouts)
        step, memory_bytes = (
            np.broadcast_to(value, sequences.shape) for value in (run_estimate.time.step / sequences, run_estimate.memory.total)
        )
        capacity = where.chip.need("hbm") if is_open(subject.row) else reported_memory(where.chip)
        fits = np.asarray(memory_fits(memory_bytes, capacity))
        index = int(np.lexsort((step, ~fits))[0] if fits.any() else np.argmin(memory_bytes))
        choice = _Choice(
            case=replace(case, batch=user_input(int(sequences[index]) * sequence, "global_batch", "token")),
            layout=layout_at(layouts, index, {}), sequences=int(sequences[index]), fits=bool(fits[index]), step=float(step[index]),
            memory=float(memory_bytes[index]),
        )  # fmt: skip
        best = choice if choice.better(best) else best
    assert best is not None  # every layout has fused or eager kernels
    return best


def _run(subject: _Subject, how: dict[str, Any], has_fused_loss: bool) -> TrainingCase:
    """Training case of a row with these kernels, schedule and recomputation, without a batch."""
    row, where = subject.row, subject.where
    dtype, notes = dtype_of(row, where)[0], row.notes.lower()
    recipe = defaults(Recipe, {
        **how, "dtype": dtype,
        "fused_attention": user_input(0 if _keeps_scores(row, where) else 1, "fused_attention"),
        "dropout": user_input(1 if _of_old(row) else 0, "dropout"),
        "sequence_parallel": user_input(0 if "no sp" in notes or "no sequence parallel" in notes else 1, "sequence_parallel"),
        "trainable": user_input(0 if is_lora(row) else 1, "trainable"),
        "fused_loss": user_input(1, "fused_loss") if has_fused_loss or _has_fused_loss(row, where) else None,
        "dispatcher": dispatcher(row, where),
        "offload_layers": user_input(int(row.offload_layers or 0), "offload_layers"),
        "captured": user_input(1 if captured(row, where, dtype) else 0, "captured"),
        "bytes_gradient_wire": user_input(2 if _narrow_gradients(row) else 4, "bytes_gradient_wire"),
    })  # fmt: skip
    work = training_work(subject.model, recipe, user_input(subject.sequence, "seq", "token"))
    return TrainingCase(
        work=work, system=where, machine=machine(where, dtype), recipe=recipe,
        optimizer=optimizer(XLA_OPTIMIZER if _xla(where) else NARROW_OPTIMIZER if _narrow_gradients(row) else OPTIMIZER), batch=1,
        efficiency=chip_efficiency(where.chip, recipe, work=work, table=subject.table),
    )  # fmt: skip


def is_lora(row: TrainingRow) -> bool:
    """Whether only adapters are trained."""
    return row.task.lower() == "lora" or "finetune lora" in row.notes.lower()


def _narrow_gradients(row: TrainingRow) -> bool:
    """Whether gradients are kept and sent in 16 bits: Megatron's default is 32, so only where a recipe says so."""
    return row.source == BRIDGE or bool(NARROW_GRADIENTS.search(row.notes))


def _has_fused_loss(row: TrainingRow, where: System) -> bool:
    """Whether one kernel makes the loss: XLA's programs, recipes that say so, PyTorch where it is compiled."""
    compiled = row.date >= COMPILED_LOSS and "compile" in row.notes.lower()
    return _xla(where) or row.source == BRIDGE or compiled


def dispatcher(row: TrainingRow, where: System) -> str:
    """How tokens reach their experts: as notes say, else as recipes of the software and its date do; today's where a row has neither."""
    match = DISPATCHER.search(row.notes)
    if match is not None:
        return match[1].lower() if match[1].lower() in DISPATCHERS else "alltoall"
    if not row.kernels and not row.date:
        return usual_dispatcher(where.chip)
    since = PACKED_IN_RACKS if int(where.chip.scale_up_domain or 1) > LARGE_DOMAIN else PACKED
    return "hybridep" if row.kernels.lower().startswith("megatron") and row.date >= since else "alltoall"


def captured(row: TrainingRow, where: System, dtype: str) -> bool:
    """Whether a step runs as one graph: XLA always, GPUs where notes say so or, without notes on graphs, recent runs in block formats."""
    notes = row.notes.lower()
    if _xla(where) or "full_iteration" in notes:
        return True
    return "cuda graphs" not in notes and row.date >= CAPTURED and dtype in ("mxfp8", "nvfp4")


def _keeps_scores(row: TrainingRow, where: System) -> bool:
    """Whether attention writes its scores to memory: stated in notes, usual before 2022, or a chip without fused kernels."""
    return "no flashattention" in row.notes.lower() or _of_old(row) or not fuses_attention(where.chip)


def _of_old(row: TrainingRow) -> bool:
    """Whether a run is in the style of before 2022: fp16 mixed precision with loss scaling, and dropout."""
    notes, precision = row.notes.lower(), row.precision.lower()
    old = ("fp16" in precision or "mixed" in precision) and not ("bf16" in precision or "fp8" in precision)
    return old and "flashattention" not in notes


def dtype_of(row: TrainingRow, where: System) -> tuple[str, str]:
    """Number format of the matmuls, and a flag if it differs from the stated format."""
    precision = row.precision.lower()
    name = next((dtype_name for dtype_name, text in (("nvfp4", "fp4"), ("mxfp8", "mxfp8"), ("fp8", "fp8")) if text in precision), "")
    if name:
        block_scaled = where.chip.peak("fp4") is not None  # chips whose matmuls take a scale for each block have 4-bit arithmetic too
        eight = "bf16" if where.chip.peak("fp8") is None else "fp8"
        dtype = name if (name == "fp8" and eight == "fp8") or (name != "fp8" and block_scaled) else eight
        return dtype, "" if dtype == name else f"format {row.precision}: predicted as {dtype}"
    return "bf16", "" if not precision or "16" in precision or "mixed" in precision else f"format {row.precision}: predicted as bf16"


def _xla(where: System) -> bool:
    """Whether XLA compiles the chip's programs (TPU)."""
    return where.chip.name.startswith("tpu")


# Sources that count FLOPs differently (docs/measured_rows.md); all others count full attention and no recomputation.
COUNTS_RECOMPUTATION = ("narayanan-2021", "bloom")
COUNTS_HALF = ("llama-3", "palm")  # where a row has no flop_convention
TERA = 1e12


def flop_per_token(setup: TrainingSetup) -> float:
    """FLOPs per token, as the row's source counts them."""
    work, recipe = setup.case.work, setup.case.recipe
    if setup.row.source in COUNTS_RECOMPUTATION:
        return float(hardware_flop(work, recipe))
    convention = setup.row.flop_convention.lower()
    if convention == "6nd":
        return float(matmul_flop(work, recipe))
    half = convention == "causal_half" if convention in ("full", "causal_half") else setup.row.source in COUNTS_HALF
    return float(model_flop(work, recipe, causal=half))


def measured_speed(setup: TrainingSetup) -> float | None:
    """Measured tokens per second and chip; None if the row states no speed."""
    row = setup.row
    if row.tokens_per_s_per_chip:
        return row.tokens_per_s_per_chip
    if row.step_time_s and row.global_batch:
        return float(setup.case.batch) / row.step_time_s / float(setup.case.system.chips)
    if row.tflops_per_chip:
        return row.tflops_per_chip * TERA / flop_per_token(setup)
    if row.mfu_pct:
        return row.mfu_pct / 100 * float(setup.case.machine.peak) / flop_per_token(setup)
    return None

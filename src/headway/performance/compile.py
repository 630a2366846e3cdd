"""Compile a model, a machine and a layout to the coefficients of a step and to bytes on the fullest chip.

Only laws do arithmetic here: this file chooses the law for each block.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.quantity import default, known
from headway.core.units import Byte, FlopPerSecond, Number, Token
from headway.hardware.chip import Chip
from headway.hardware.system import System
from headway.laws.arithmetic import sum_over_blocks
from headway.laws.collectives.expert_parallel import (
    activation_bytes_per_token,
    load_imbalance,
    skewed_imbalance,
    wire_bytes_per_token,
)
from headway.laws.roofline.balance import compute_s_per_token
from headway.laws.serving.room import expert_elements, layer_elements, widest_elements
from headway.laws.step.coefficients import (
    COMMUNICATIONS,
    OVERLAPS,
    CollectiveTerm,
    DraftTerm,
    ExpertTerm,
    IndexTerm,
    ScanTerm,
    SpanTerm,
    StepCoefficients,
)
from headway.laws.step.layer_terms import (
    chip_params,
    common_params_chip,
    dense_weights_s,
    depth_factor,
    elementwise_s,
    engine_launches,
    expert_activation_s,
    expert_load,
    expert_read_s,
    expert_s_per_token,
    expert_share_held,
    experts_held,
    index_choice_s,
    kernels_per_step,
    matmul_activations_s,
    mixer_params_chip,
    partial_work_s,
    span_filling_s,
    span_read_s,
    span_score_s,
    stage_share,
    state_s,
    stream_read_s,
)
from headway.laws.step.memory import end_bytes, fits_host, held_together, host_bytes_chip, kept_states, on_last_stage, weights_bytes_chip
from headway.laws.step.parts import further_passes, rank_sequences, verified_tokens
from headway.models.work import LayerWork, ModelWork, kernels_of_layer
from headway.performance.achieved import (
    Efficiencies,
    KernelCounts,
    achieved_efficiency,
    dense_part,
    dynamic,
    family,
    routing_skew,
)
from headway.performance.assumptions import Assumptions
from headway.performance.collectives import (
    MessageTraffic,
    RoutedLayer,
    fabric,
    link_costs,
    most,
    need_scale_out,
    network_terms,
    system_links,
)
from headway.performance.drafts import Drafts
from headway.performance.formats import Formats
from headway.performance.images import image_terms
from headway.performance.layout import Layout
from headway.performance.splits import Splits, splits


def copies(layout: Layout, batch: Number, blocks: Iterable[LayerWork]) -> tuple[Layout, Any]:
    """Layout and users of one copy: data-parallel ranks that no routed experts join are copies, as engines run them, which share users."""
    if any(block.experts for block in blocks) or np.all(np.asarray(layout.dp, dtype=float) == 1):
        return layout, batch
    return replace(layout, dp=1, replicas=layout.replicas * layout.dp), batch / layout.dp


def halves(layout: Layout, batch: Number) -> Any:
    """Whether a batch can be halved on every rank, and a replica has collectives to hide behind the other half; scalars or arrays."""
    chips = layout.chips
    return (rank_sequences(batch, layout.dp, layout.pp) >= 2) & (chips > 1)


FP8_BYTE = known(1, "fp8", "byte", "constant", "8 bits")
SCALE = known(4, "scale", "byte", "constant", "DeepSeek-V3 (arXiv:2412.19437) section 3.3: one fp32 scale per tile")
TILE = known(128, "tile", "", "constant", "DeepSeek-V3 (arXiv:2412.19437) section 3.3: tiles of 1 x 128")
WHOLE_STEP = known(1, "engine's own work", "", "constant", "a step has all of it")
ALL_PASSES = known(1, "all", "", "constant", "the user says what drafts")
NO_PASS = known(0, "none", "", "constant", "nobody says what drafts: looking up earlier text costs nothing")
NO_WAIT = known(0.0, "no wait", "s", "constant", "no states whose place follows from the accepted tokens")
QUANTISED_MATMUL = known(2, "kernels", "", "constant", "a kernel that quantises the input, and the matmul")
NO_BYTES = known(0.0, "no experts", "byte", "constant", "the architecture has no such part")
NO_READ = known(0.0, "no experts in HBM", "s", "constant", "kernels read experts over the host's link")
NO_COPIES = known(0, "no experts", "", "constant", "the architecture has no such part")
NO_WRITE = known(0.0, "no cache", "s/token", "constant", "the architecture has no such part")
SPAN_FIELDS = ("read", "stream", "decode_compute", "prefill_compute", "expand", "decode_filling", "prefill_filling", "prefill_slot")
CACHES = {  # operator by what a cache holds; "kv" by the mixer
    "index": "index_keys", "window": "latent_cache", "compressed": "latent_cache", "forming": "latent_cache",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerCache:
    """One cache of layers alike, on the fullest chip before cp and stages."""

    what: str  # kv | index | window | compressed | forming | state
    layers: Any
    cell: Any  # bytes of a token in one layer; of a state all
    cap_tokens: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutBytes:
    """What a layout puts on its fullest chip, in bytes and elements."""

    weights_bytes: Any
    stores: tuple[tuple[Any, Any], ...]  # (bytes per stored token on the fullest chip before cp and stages, cap)
    caches: tuple[LayerCache, ...]  # the same by layer, and what engines hold beside them
    state_bytes: Any  # recurrent state of a sequence on a chip
    stage: Any
    chips: Any
    formats: Formats
    layer_elements: Any  # per token, that the widest part of a layer holds at once on a chip
    expert_elements: Any  # per token, of its copies for routed experts
    host_bytes: Any = None  # routed experts that the host's memory holds for a chip; None where they are on the chip

    def host_room(self, chip: Chip) -> Any:
        """Whether the host's memory holds them, as far as it is known."""
        return True if self.host_bytes is None or chip.host_dram is None else fits_host(self.host_bytes, chip.host_dram)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepModel(LayoutBytes):
    """A compiled layout on a machine: coefficients of its step time, and bytes on the fullest chip."""

    step: StepCoefficients


def layout_bytes(work: ModelWork, chip: Chip, layout: Layout, assumptions: Assumptions, formats: Formats) -> LayoutBytes:
    """Bytes of a layout, whatever joins the chips."""
    parts = _Parts(
        work=work, formats=formats, layout=layout, depth=depth_factor(work.layers, layout.pp), bandwidth=None,
        link=None if assumptions.offload == "none" else chip.need("host_link_bw"), splits=splits(assumptions.engine, family(chip)),
    )  # fmt: skip
    return LayoutBytes(**parts.on_chip(assumptions))


def compile_layout(
    work: ModelWork,
    system: System,
    layout: Layout,
    assumptions: Assumptions,
    formats: Formats,
    table: Efficiencies | None = None,
    backend: str = "",
    prompt: Token = None,
    engine_share: Number = WHOLE_STEP,
) -> StepModel:
    """Step model of a layout, whose numbers may be arrays, without drafts.

    `prompt` is the length of the prompts that bring images, where the assumptions name images.
    `table` replaces the shipped efficiencies, `backend` the assumed engine as the one whose expert kernels run.
    `engine_share` is the part of the engine's own work in a step that a pass takes.
    """
    chips, depth = layout.chips, depth_factor(work.layers, layout.pp)
    formats = formats.fastest() if assumptions.overlap == "full" else formats
    link = None if assumptions.offload == "none" else system.chip.need("host_link_bw")
    parts = _Parts(
        work=work, formats=formats, layout=layout, depth=depth, bandwidth=system.chip.need("hbm_bw"), link=link,
        splits=splits(backend or assumptions.engine, family(system.chip)),
    )  # fmt: skip
    skew = routing_skew(system.chip, assumptions, table) if parts.routed() else 0
    kernels = parts.kernels()
    matmul = QUANTISED_MATMUL if dynamic(kernels, formats) else 1  # kernels of a matmul of an input that is quantised on the way
    step = StepCoefficients(
        dense_compute=parts.dense_compute(formats.peaks),
        dense_gain=parts.dense_gain(),
        head_compute=compute_s_per_token(chip_params(work.table_params, parts.part("head")), formats.head_peak),
        head_gain=_gain(formats.best_head_peak, formats.head_peak),
        dense_weights=parts.dense_weights(),
        experts=parts.experts(skew),
        spans=parts.spans(),
        state=state_s(*parts.states(assumptions), depth, parts.bandwidth),
        kv_write=parts.kv_write(),
        collectives=parts.collectives(system, system_links(assumptions, system, table), chips),
        activations=parts.activations(),
        elementwise=elementwise_s(work.hidden, parts.sublayers(), depth, parts.bandwidth),
        blocks=parts.blocks(),
        dp=layout.dp, pp=layout.pp, cp=layout.cp, layers=work.layers,
        attention_gain=_gain(formats.best_attention_peak, formats.wide_peak),
        imbalance=parts.imbalance(assumptions, skew),
        prefill_ranks=layout.dp, rank_prompts=1,
        overlap=default(OVERLAPS[assumptions.overlap], "overlap", "", f"overlap model {assumptions.overlap!r}"),
        communication=default(COMMUNICATIONS[assumptions.communication], "communication", "", assumptions.communication),
        launches=engine_launches(kernels.matmuls, kernels.attentions, kernels.elementwise, matmul, depth), routed_layers=work.moes * depth,
        latent_layers=sum(block.count for block in work.blocks if block.latent) * depth, indexes=parts.indexes(), scans=parts.scans(),
        achieved=achieved_efficiency(kernels, system.chip, formats, layout, assumptions, table, backend, engine_share),
        transfers=parts.transfers(skew),
        images=image_terms(work, system.chip, layout, assumptions, prompt),
    )  # fmt: skip
    return StepModel(step=step, **parts.on_chip(assumptions))


def compile_drafts(compiled: StepModel, system: System, layout: Layout, assumptions: Assumptions, drafts: Drafts | None) -> StepModel:
    """The step model with drafts, which it verifies; what drafts lies on the same chips, in the last pipeline stage."""
    if drafts is None:
        return compiled
    queries = verified_tokens(drafts.tokens)
    least = queries if drafts.stated_length is None else drafts.stated_length
    step = replace(compiled.step, queries=queries, sampled=queries, least_queries=least, draft_shares=drafts.shares)
    compiled = replace(compiled, state_bytes=kept_states(compiled.state_bytes, queries))
    if drafts.work is None or drafts.formats is None:
        return replace(compiled, step=step)
    bare = replace(assumptions, images=0, expert_load="", offload="none")
    first, further = (
        compile_layout(drafts.work, system, layout, bare, drafts.formats, engine_share=share)
        for share in (drafts.first_pass, drafts.further_pass)
    )
    term = DraftTerm(
        first=replace(first.step, queries=queries, least_queries=least), further=further.step, count=further_passes(drafts.tokens),
        wait=_wait(compiled, assumptions, drafts), in_floor=ALL_PASSES if drafts.stated_length is None else NO_PASS,
    )  # fmt: skip
    stores = tuple((on_last_stage(size, first.stage, compiled.stage), cap) for size, cap in first.stores)
    return replace(
        compiled, step=replace(step, drafts=(term,)), weights_bytes=held_together(compiled.weights_bytes, first.weights_bytes),
        stores=(*compiled.stores, *stores), caches=(*compiled.caches, *first.caches),
        state_bytes=held_together(compiled.state_bytes, first.state_bytes),
    )  # fmt: skip


def _wait(compiled: StepModel, assumptions: Assumptions, drafts: Drafts) -> Any:
    """What the host waits in each step for the accepted tokens: where a model keeps states, as the engine's own work."""
    if assumptions.overlap != "fitted" or assumptions.engine == "none" or not np.any(np.asarray(compiled.state_bytes, dtype=float) > 0):
        return NO_WAIT
    return partial_work_s(drafts.wait_of_states, assumptions.fixed)


@dataclass(frozen=True, kw_only=True)  # without slots: what several terms need of it is counted once
class _Parts:
    """One model on one layout; one method per group of terms."""

    work: ModelWork
    formats: Formats
    layout: Layout
    depth: Any
    bandwidth: Any
    splits: Splits
    link: Any = None  # bandwidth to the host, in whose memory routed experts lie; None where they are on the chip

    def on_chip(self, assumptions: Assumptions) -> dict[str, Any]:
        """The fields of `LayoutBytes`."""
        layout, (states, element) = self.layout, self.states(assumptions)
        return {
            "weights_bytes": self.weights_bytes(), "stores": self.stores(), "caches": self.caches(element),
            "state_bytes": states * element,
            "stage": stage_share(self.work.layers, layout.pp), "chips": layout.chips,
            "formats": self.formats, "layer_elements": self.layer_elements(), "expert_elements": self.expert_elements(),
            "host_bytes": self.host_bytes(),
        }  # fmt: skip

    def states(self, assumptions: Assumptions) -> tuple[Any, Any]:
        """Elements of recurrent state of a sequence on one chip, all layers, and bytes of one."""
        elements = tuple(block.state_elements * self.part("recurrent_state", block.heads) for block in self.work.blocks)
        element = self.formats.state.bytes if assumptions.state_bytes is None else assumptions.state_bytes
        return sum_over_blocks(self.counts(), elements), element

    def counts(self) -> tuple[Any, ...]:
        return tuple(block.count for block in self.work.blocks)

    def part(self, operator: str, heads: Number = 1) -> Any:
        """Share of an operator on one tensor-parallel chip."""
        return self.splits.share(operator, self.layout, heads)

    def dense_params(self, block: LayerWork, *, stored: bool = False) -> tuple[Any, Any]:
        """Parameters of the mixer and dense FFN of one layer on one chip: those that a token of its rank multiplies, or those stored."""

        def share(operator: str, heads: Number = 1) -> Any:
            return (self.splits.weight_share if stored else self.splits.share)(operator, self.layout, heads)

        mixer = mixer_params_chip(
            block.mixer_params, block.mixer_whole_params, block.mixer_scan_params, block.mixer_kv_params, share("head_projections"),
            share("latent_down"), share("index_projections"), share("kv_projections", block.kv_heads),
        )  # fmt: skip
        ffn = common_params_chip(
            block.dense_ffn_params, block.router_params, block.latent_expert_params,
            share("shared_experts" if block.experts else "dense_ffn"), share("router"), share("latent_experts"),
        )  # fmt: skip
        return mixer, ffn

    @functools.cached_property
    def dense(self) -> tuple[tuple[Any, Any], ...]:
        """Parameters that a token multiplies in the mixer and the dense FFN of a layer on one chip, by block."""
        return tuple(self.dense_params(block) for block in self.work.blocks)

    def dense_bytes(self) -> Any:
        """Bytes on one chip that every token uses, all layers: projections, dense FFN, and norms, which each chip stores in full."""
        layer_bytes, dense = [], self.dense
        if self.splits.ranks_divide:
            dense = tuple(self.dense_params(block, stored=True) for block in self.work.blocks)
        for block, (mixer, ffn), form in zip(self.work.blocks, dense, self.formats.weights, strict=True):
            vectors = chip_params(block.other_params, self.part("norms")) * self.formats.vectors.bytes
            layer_bytes.append(mixer * form[0].bytes + ffn * form[1].bytes + vectors)
        return sum_over_blocks(self.counts(), tuple(layer_bytes))

    def dense_compute(self, block_peaks: tuple[tuple[Any, ...], ...]) -> Any:
        """Compute time per token of all layers' dense parts at these peaks."""
        layer_times = []
        for block, (mixer, ffn), peaks in zip(self.work.blocks, self.dense, block_peaks, strict=True):
            state = block.recurrence_flop_per_token / peaks[0] * self.part("recurrence", block.heads)
            layer_times.append(compute_s_per_token(mixer, peaks[0]) + compute_s_per_token(ffn, peaks[1]) + state)
        return sum_over_blocks(self.counts(), tuple(layer_times)) * self.depth

    def dense_gain(self) -> Any:
        """Speed-up of the dense parts in the fastest formats that could multiply them."""
        if self.formats.best_peaks == self.formats.peaks:
            return 1
        return self.dense_compute(self.formats.peaks) / self.dense_compute(self.formats.best_peaks)

    def activations(self) -> Any:
        """Time per token of the inputs and outputs of all layers' dense matmuls, on one chip."""
        layer_activations = []
        for block, params in zip(self.work.blocks, map(sum, self.dense), strict=True):
            matmuls = block.mixer_matmuls + block.ffn_matmuls
            layer_activations.append(matmul_activations_s(params, self.work.hidden, matmuls, self.bandwidth))
        return sum_over_blocks(self.counts(), tuple(layer_activations)) * self.depth

    def blocks(self) -> Any:
        """Blocks of decode attention per sequence on one chip."""
        block_counts = tuple(
            block.kv_heads * self.part(cache(block, "kv"), block.kv_heads) * block.count * self.depth
            for block in self.work.blocks if block.spans
        )  # fmt: skip
        return sum(block_counts)

    def sublayers(self) -> Any:
        """Number of mixers and feed-forward layers, each with its norm and its all-reduce."""
        return self.work.layers + self.work.ffns + self.work.moes

    def kernels(self) -> KernelCounts:
        """Kernels per step on one chip, by class; elementwise are norms, rotations and activations."""
        blocks, work = self.work.blocks, self.work
        per_layer = zip(*map(kernels_of_layer, blocks), strict=True)
        matmuls, wide, beside, inner = (sum_over_blocks(self.counts(), counts) for counts in per_layer)
        dense, routed = dense_part(self.formats, blocks)
        return KernelCounts(
            matmuls=matmuls + 1, wide=wide + 1, beside=beside, attentions=work.layers, moes=work.moes, layers=work.layers,
            elementwise=self.sublayers() + inner,
            launches=kernels_per_step(work.layers, work.ffns, work.moes, self.depth), depth=self.depth,
            scans=sum(block.count for block in blocks if block.scanned),
            latent=any(block.latent for block in blocks), index=any(span.what == "index" for block in blocks for span in block.spans),
            dense=dense, routed=routed, head=next((block.head for block in blocks if block.spans), 1),
            converted=routed is not None and self.converted(routed), fused=self.converted(dense),
        )  # fmt: skip

    def converted(self, place: tuple[int, int]) -> bool:
        """Whether a part's weights were converted after training."""
        block = self.work.blocks[place[0]]
        return self.formats.weights[place[0]][place[1]].name != (block.mixer_dtype, block.ffn_dtype, block.expert_dtype)[place[1]]

    def dense_weights(self) -> Any:
        head = chip_params(self.work.table_params, self.splits.weight_share("head", self.layout)) * self.formats.head.bytes
        return dense_weights_s(self.dense_bytes(), head, self.depth, self.bandwidth)

    def routed(self) -> list[tuple[int, LayerWork]]:
        return [(index, block) for index, block in enumerate(self.work.blocks) if block.experts]

    def routed_traffic(self, index: int, block: LayerWork, vector: Byte, assumptions: Assumptions) -> RoutedLayer:
        """Exchanges of an expert layer: dispatch format as assumed; by default fp8 tiles with a scale where the experts are fp8."""
        dispatch = vector
        if assumptions.dispatch_bytes is not None:
            dispatch = activation_bytes_per_token(self.work.hidden, assumptions.dispatch_bytes)
        elif self.formats.weights[index][2].name == "fp8":
            dispatch = wire_bytes_per_token(self.work.hidden, FP8_BYTE, SCALE, TILE)
        return RoutedLayer(layers=block.count, experts=block.experts, active=block.experts_per_token, dispatch=dispatch,
                      groups=block.expert_groups, groups_chosen=block.groups_chosen)  # fmt: skip

    def placement(self, block: LayerWork) -> tuple[Any, Any]:
        """Routed experts of a block on the fullest chip, and the number of chips that share each expert."""
        layout = self.layout
        tp, cp, dp = (self.splits.degree("routed_experts", axis, layout) for axis in ("tp", "cp", "dp"))
        expert_tp = tp * cp * dp / layout.ep
        return experts_held(block.experts, layout.redundant, layout.ep), expert_tp

    def experts(self, skew: Number) -> tuple[ExpertTerm, ...]:
        terms = []
        for index, block in self.routed():
            params, form, (resident, tp) = block.expert_params * block.count, self.formats.weights[index][2], self.placement(block)
            load, share = expert_load(block.experts, self.layout.redundant, resident, tp), expert_share_held(block.experts, resident, tp)
            terms.append(
                ExpertTerm(
                    compute=expert_s_per_token(params, block.experts_per_token, load, self.depth, self.formats.peaks[index][2]),
                    weights=NO_READ if self.link is not None else expert_read_s(
                        params, form.bytes, block.experts, share, self.depth, self.bandwidth
                    ),
                    activations=expert_activation_s(
                        block.expert_params, self.work.hidden, block.experts_per_token, load, tp, block.count, self.depth, self.bandwidth
                    ),
                    experts=block.experts,
                    active=block.experts_per_token,
                    skew=skew,
                    gain=_gain(self.formats.best_peaks[index][2], self.formats.peaks[index][2]),
                )
            )
        return tuple(terms)

    def transfers(self, skew: Number) -> tuple[ExpertTerm, ...]:
        """Routed experts in the host's memory, with the time to move all of them over the fullest chip's link; none on the chip."""
        terms = []
        for index, block in self.routed() if self.link is not None else ():
            params, share = block.expert_params * block.count, expert_share_held(block.experts, *self.placement(block))
            size = self.formats.weights[index][2].bytes
            move, active = expert_read_s(params, size, block.experts, share, self.depth, self.link), block.experts_per_token
            terms.append(ExpertTerm(compute=0, weights=move, activations=0, experts=block.experts, active=active, skew=skew))
        return tuple(terms)

    def host_bytes(self) -> Any:
        """Bytes that the host's memory holds for the fullest chip; None where all is on the chip."""
        stage = stage_share(self.work.layers, self.layout.pp)
        return None if self.link is None else host_bytes_chip(self.routed_bytes(), stage)

    def routed_bytes(self) -> Any:
        """Bytes of the routed experts of all layers on the fullest chip, or in its host's memory."""
        shares = tuple(expert_share_held(block.experts, *self.placement(block)) for _, block in self.routed())
        routed = tuple(
            block.expert_params * block.count * block.experts * share * self.formats.weights[index][2].bytes
            for share, (index, block) in zip(shares, self.routed(), strict=True)
        )
        return sum(routed) if routed else NO_BYTES

    def weights_bytes(self) -> Any:
        layout, work = self.layout, self.work
        vectors = chip_params(work.vector_params, self.part("norms")) * self.formats.vectors.bytes
        embedding = NO_BYTES
        if not work.shares_embedding:
            embedding = chip_params(work.table_params, self.splits.weight_share("embedding", layout)) * self.formats.embedding.bytes
        if work.tower is not None:
            embedding = embedding + work.tower.bytes * self.splits.weight_share("vision_tower", layout)
        head = chip_params(work.head_params, self.splits.weight_share("head", layout)) * self.formats.head.bytes
        ends = end_bytes(embedding, head, vectors, layout.pp)
        share = stage_share(work.layers, layout.pp)
        return weights_bytes_chip(self.dense_bytes(), self.routed_bytes() if self.link is None else NO_BYTES, ends, share)

    def cached(self, block: LayerWork, what: str) -> tuple[Any, Any]:
        """Share of a cache on the fullest tensor-parallel chip, and the chips that divide its tokens."""
        operator = cache(block, what)
        return self.part(operator, block.kv_heads), self.splits.degree(operator, "cp", self.layout)

    def layer_elements(self) -> Any:
        """Elements per token that the widest part of a layer holds on one chip."""
        return widest_elements(tuple(layer_elements(self.work.hidden, *params) for params in self.dense))

    def expert_elements(self) -> Any:
        """Elements per token of its copies for the routed experts on one chip; 0 in a dense model."""
        copies_of = [NO_COPIES]
        for _, block in self.routed():
            (_, ups, hidden, inner), tp = block.tensors.expert[0].dims, self.placement(block)[1]
            copies_of.append(expert_elements(block.experts_per_token, hidden, inner, inner * ups, tp))
        return widest_elements(tuple(copies_of))

    def spans(self) -> tuple[SpanTerm, ...]:
        """Attention spans of all blocks, spans of equal limits summed; an index's has its reads alone."""
        groups: dict[tuple[float, float], list[tuple[Any, ...]]] = {}
        limits: dict[tuple[float, float], tuple[Any, Any]] = {}
        kv, peak_ = self.formats.kv.bytes, self.formats.wide_peak
        for block in self.work.blocks:
            heads, filled = self.part("scores", block.heads), self.part("sparse_scores", block.heads)
            cp = self.splits.degree("scores", "cp", self.layout)
            for span in block.spans:
                elements, (share, holders) = span.read_elements_per_token * block.count, self.cached(block, span.what)
                read = span_read_s(elements, span.element_bytes(kv), share, holders, self.depth, self.bandwidth)
                flops = (span.decode_score_flop, span.prefill_score_flop, span.expand_flop)
                decode, prefill, _ = flops = tuple(flop * block.count for flop in flops)
                scores = tuple(span_score_s(flop, heads, cp, self.depth, peak_) for flop in flops)
                filling = (NO_WRITE,) * 3
                if span.sparse:
                    slot = span_score_s(prefill, filled, cp, self.depth, peak_) if self.splits.computes_empty_slots else NO_WRITE
                    filling = (*(span_filling_s(flop, filled, heads, cp, self.depth, peak_) for flop in (decode, prefill)), slot)
                attention = (NO_WRITE,) * 4 if span.what == "index" else (stream_read_s(read, block.kv_heads, share), *scores)
                key = (float(span.cap_tokens), float(span.sqrt_tokens))
                limits.setdefault(key, (span.cap_tokens, span.sqrt_tokens))
                groups.setdefault(key, []).append((read, *attention, *filling))
        return tuple(
            SpanTerm(cap=cap, root=root, **dict(zip(SPAN_FIELDS, map(sum, zip(*groups[key], strict=True)), strict=True)))
            for key, (cap, root) in limits.items()
        )

    def indexes(self) -> tuple[IndexTerm, ...]:
        """The index scans of all blocks, as one term; none where no block has an index."""
        share, cp, terms = self.part("index_scan"), self.splits.degree("index_scan", "cp", self.layout), []
        for block in self.work.blocks:
            for span in (span for span in block.spans if span.what == "index"):
                elements, (share_read, holders) = span.read_elements_per_token * block.count, self.cached(block, span.what)
                terms.append((
                    span_score_s(span.prefill_score_flop * block.count, share, cp, self.depth, self.formats.index_peak),
                    span_read_s(elements, span.element_bytes(self.formats.kv.bytes), share_read, holders, self.depth, self.bandwidth),
                    index_choice_s(span.index_scores * block.count, share, cp, self.depth, self.bandwidth),
                ))  # fmt: skip
        gain = _gain(self.formats.best_index_peak, self.formats.index_peak)
        sums = dict(zip(("compute", "read", "choice"), map(sum, zip(*terms, strict=True)), strict=False))
        return (IndexTerm(**sums, gain=gain),) if terms else ()

    def scans(self) -> tuple[ScanTerm, ...]:
        """Layers whose state passes over a prompt in chunks, by kind, with the heads on one chip."""
        return tuple(
            ScanTerm(layers=block.count * self.depth, heads=block.heads * self.part("recurrence", block.heads))
            for block in self.work.blocks if block.scanned
        )  # fmt: skip

    def kv_write(self) -> Any:
        writes = tuple(
            span_read_s(store.elements_per_token * block.count, store.element_bytes(self.formats.kv.bytes),
                        *self.cached(block, store.what), self.depth, self.bandwidth)
            for block in self.work.blocks for store in block.stores
        )  # fmt: skip
        return sum(writes) if writes else NO_WRITE

    def stores(self) -> tuple[tuple[Any, Any], ...]:
        """(bytes per stored token on the fullest chip, most tokens stored), stores of equal limits summed."""
        groups: dict[float, list[Any]] = {}
        limits: dict[float, Any] = {}
        for block in self.work.blocks:
            for store in block.stores:
                key = float(store.cap_tokens)
                limits.setdefault(key, store.cap_tokens)
                elements = store.elements_per_token * block.count
                size = elements * store.element_bytes(self.formats.kv.bytes) * self.cached(block, store.what)[0]
                groups.setdefault(key, []).append(size)
        return tuple((sum(terms), limits[key]) for key, terms in groups.items())

    def caches(self, state_bytes: Byte) -> tuple[LayerCache, ...]:
        """Each cache by layer, layers alike together: stores, what forms entries to come, and states."""
        cells: dict[tuple[Any, ...], Any] = {}
        counts: dict[tuple[Any, ...], list[Any]] = {}
        for block in self.work.blocks:
            for store in (*block.stores, *block.forming):
                key = store.what, float(store.cap_tokens), float(store.elements_per_token), float(block.kv_heads)
                if key not in cells:
                    size = store.elements_per_token * store.element_bytes(self.formats.kv.bytes) * self.cached(block, store.what)[0]
                    cells[key] = size, store.cap_tokens
                counts.setdefault(key, []).append(block.count)
            if block.state_elements:
                key = "state", 1.0, float(block.state_elements), 1.0
                cells[key] = block.state_elements * state_bytes * self.part("recurrent_state", block.heads), 1
                counts.setdefault(key, []).append(block.count)
        return tuple(
            LayerCache(what=key[0], layers=sum(counts[key]), cell=cell, cap_tokens=cap) for key, (cell, cap) in cells.items()
        )

    def imbalance(self, assumptions: Assumptions, skew: Number) -> Any:
        """Routed work of the busiest chip over the mean: of a measured load, as the user says, or of a skewed router."""
        if self.work.expert_load:
            return load_imbalance(self.work.expert_load, self.layout.ep, self.layout.redundant)
        if assumptions.imbalance is not None:
            return assumptions.imbalance
        return skewed_imbalance(self.layout.ep, skew) if self.work.moes else 1

    def collectives(self, system: System, assumptions: Assumptions, chips: Number) -> tuple[CollectiveTerm, ...]:
        """Collectives of a replica's chips in a step; a one-chip replica sends nothing and needs no link."""
        if most(chips) == 1:
            return ()
        joined, work = fabric(system, chips), self.work
        need_scale_out(joined, self.layout, system.name)
        vector = activation_bytes_per_token(work.hidden, assumptions.activation_bytes)
        routed = tuple(self.routed_traffic(index, block, vector, assumptions) for index, block in self.routed())
        traffic = MessageTraffic(layers=work.layers, sublayers=self.sublayers(), routed=routed, depth=self.depth, vector=vector)
        return network_terms(traffic, joined, self.layout, link_costs(system, assumptions))


def cache(block: LayerWork, what: str) -> str:
    """Operator of a cache in the table of splits."""
    return CACHES.get(what, "latent_cache" if block.latent else "kv_cache")


def _gain(best: FlopPerSecond, run: FlopPerSecond) -> Any:
    """Speed-up of arithmetic at the best peak over that of the format in which a part runs."""
    return 1 if best == run else best / run

"""What a chip's memory holds under an engine: weights, KV room, activations, graphs and buffers, and what its share of the card leaves.

One room for every verb: serve, plan, sim, capacity and the rows of evidence take it from here. The arithmetic is in
laws/serving/room.py, the engines' defaults in data/start_up.toml, their fitted numbers in data/efficiency.toml.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.core import catalog
from headway.core.quantity import known
from headway.core.schema import Field
from headway.core.units import Byte, Number, Token
from headway.hardware.chip import Chip, reported_memory
from headway.laws.roofline.balance import bytes_beside_weights
from headway.laws.serving import room as laws
from headway.laws.step.memory import rank_sequence_limit
from headway.laws.step.pages import paged_sequence_bytes
from headway.models.work import ModelWork
from headway.performance.achieved import Efficiencies, efficiencies, family, platform
from headway.performance.compile import LayoutBytes
from headway.performance.layout import Layout
from headway.performance.padding import padding_bytes
from headway.performance.pages import ONE_TOKEN, PagedCache, PageTerm, cache_in_pages
from headway.performance.splits import splits

LIKE = {"vllm": "vllm", "sglang": "sglang", "trtllm": "trtllm"}  # whose start-up an engine's room follows
GPUS = ("datacenter", "card", "amd")  # platforms on which an engine that is not named starts as vLLM does
PLAIN = "plain"  # weights and KV cache against the share of the card, nothing else
ELEMENT = known(2, "activation", "byte", "constant", "16 bits")
NOTHING = known(0.0, "nothing", "byte", "constant", "no engine sets it aside")
WHATEVER = known(1, "any layers", "", "constant", "by captured sequence, whatever the layers")
RISK = known(0.97, "share at risk", "", "constant", "beyond it a driver, a display or fragments leave no room for error")
CAPTURED = ("captured", "captured_tp4")  # up to 3 chips of tensor parallelism, from 4 on
UNITS = {"tokens": "token", "block": "token"} | dict.fromkeys(("least", "logit", "captured_bytes", "kept", "kept_from", "context"), "byte")


@functools.cache
def start_up_facts() -> dict[str, Any]:
    """Facts of data/start_up.toml: by engine its numbers, its tiers by name, and lists of chips."""
    path = catalog.PACKAGED / "start_up.toml"
    document = catalog.read(path)

    def read(entry: Any, name: str) -> Any:
        if isinstance(entry, list):
            return tuple(entry)
        if "value" not in entry:
            return {key: read(value, f"{name}.{key}") for key, value in entry.items()}
        unit = UNITS.get(name.rpartition(".")[2], "")
        return catalog.number(entry, Field(unit, open_low=False), name, document["sources"], path)

    return {name: read(entry, name) for name, entry in document.items() if name != "sources"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StartUp:
    """What an engine tries and captures at its start on a chip."""

    engine: str  # vllm | sglang | trtllm | plain
    tokens: Any = None  # of its largest step
    sequences: Any = None  # that it serves at most
    sampled: Any = None  # sequences whose next tokens a step draws
    captured: Any = None  # sequences of the largest graph
    facts: Any = None


def start_as(engine: str, chip: Chip) -> str:
    """The engine whose start the room of an engine follows on a chip."""
    return "vllm" if engine == "other" and platform(chip) in GPUS else LIKE.get(engine, PLAIN)


def start_up(engine: str, chip: Chip, tp: Number, tokens: Token = None, sequences: Number = None) -> StartUp:
    """The start of an engine on a chip; `tokens` and `sequences` as the user says, else the engine's defaults for the card.

    A step is no larger than the times of an answer assume.
    """
    name = start_as(engine, chip)
    if name == PLAIN:
        return StartUp(engine=PLAIN)
    facts, memory, model = start_up_facts()[name], reported_memory(chip), chip.like or chip.name
    tiers = list(facts["tiers"].values())
    tier = tiers[0] if model in facts.get("small", ()) else [row for row in tiers if row["least"] <= memory][-1]
    most = sequences if sequences is not None else tier.get("sequences", facts.get("sequences"))
    captured = facts.get("captured_wide" if model in facts.get("wide", ()) else "captured")
    if "captured" in tier:
        captured = np.where(np.less(tp, 4), tier["captured"], tier["captured_tp4"]) if np.ndim(tp) else tier[CAPTURED[bool(tp >= 4)]]
    budget = min(tier["tokens"], efficiencies(chip).engine(engine, platform(chip), "step_budget_tokens"))
    return StartUp(
        engine=name, tokens=budget if tokens is None else tokens, sequences=most, captured=captured, facts=facts,
        sampled=captured if name == "sglang" else most,
    )


def default_share(engine: str, chip: Chip, tp: Number, pp: Number) -> Any:
    """The share of the card that an engine takes where no flag names one: a number, or SGLang's rule."""
    start, memory = start_up(engine, chip, tp), reported_memory(chip)
    if "utilization" in start.facts:
        return start.facts["utilization"]
    least = start.facts["kept"] if memory > start.facts["kept_from"] else NOTHING
    return laws.static_fraction(memory, start.tokens, start.captured, tp * pp, start.facts["captured_bytes"], least)


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Memory of the fullest chip, in bytes; its parts sum to what the driver reports wherever the weights fit."""

    reported: Any
    usable: Any  # for weights and KV cache
    weights: Any
    kv: Any  # in whole blocks
    rest: Any  # less than a block
    activations: Any
    workspace: Any  # graphs, buffers of collectives, what rounding adds to weights, the process's context where the engine counts it
    beyond: Any  # what the engine's share of the card leaves out
    pages: tuple[PageTerm, ...]  # blocks of the caches of a sequence that decodes
    admitted: tuple[PageTerm, ...]  # of one whose window's layers hold a whole step's tokens, as the engine counts at its start
    stage: Any  # share of the layers on the chip

    def sequence_bytes(self, context: Token) -> Any:
        """Bytes that a sequence occupies in the engine's blocks while it decodes, before cp and stages."""
        return paged_sequence_bytes(self.pages, context)

    def sequences(self, context: Token, cp: Number) -> Any:
        """Sequences of a length whose cache fits on a rank, as the engine counts them at its start."""
        return rank_sequence_limit(self.kv, NOTHING, paged_sequence_bytes(self.admitted, context), self.stage, cp)


def room_on_chip(
    work: ModelWork, chip: Chip, layout: Layout, compiled: LayoutBytes, engine: str, utilization: Number, table: Efficiencies,
    tokens: Token = None, sequences: Number = None, eager: bool = False,
) -> Room:  # fmt: skip
    """The room of a compiled layout under an engine at a share of the card; `eager`: no graphs are captured."""
    start, reported, weights = start_up(engine, chip, layout.tp, tokens, sequences), reported_memory(chip), compiled.weights_bytes
    caches = tuple(cache_in_pages(compiled, engine, tokens_of_step) for tokens_of_step in (ONE_TOKEN, start.tokens))
    slots = caches[0].slots * compiled.stage
    if start.engine == PLAIN:
        return _filled(compiled, layout, caches, reported, laws.usable_share(reported, utilization), NOTHING, NOTHING)
    logits = laws.logits_bytes(start.sampled, work.vocab, start.facts["logit"])
    activations = laws.peak_activation_bytes(
        start.tokens, ELEMENT, compiled.layer_elements, compiled.expert_elements, work.hidden, logits
    )
    buffers = _buffers(engine, chip, layout, table)
    graphs = NOTHING if eager else _graphs(start, engine, chip, work, compiled, table)
    context = NOTHING if start.engine == "vllm" else start_up_facts()["process"]["context"]  # which vLLM's first look at the card excludes
    padding = padding_bytes(work, layout, compiled.formats, splits(engine, family(chip))) * compiled.stage
    workspace = laws.workspace_bytes(context, buffers, graphs, slots, padding)
    if start.engine == "vllm":
        usable = laws.vllm_usable(reported, utilization, activations, workspace)
    elif start.engine == "sglang":
        usable = laws.sglang_usable(reported, utilization, context, buffers, slots + padding)
    else:
        usable = laws.trtllm_usable(reported, utilization, weights, activations, workspace)
    return _filled(compiled, layout, caches, reported, usable, activations, workspace)


def _filled(
    compiled: LayoutBytes, layout: Layout, caches: Sequence[PagedCache], reported: Byte, usable: Byte, activations: Byte, workspace: Byte
) -> Room:
    """The room with whole blocks of KV cache in what the weights leave."""
    free = bytes_beside_weights(usable, compiled.weights_bytes)
    block = laws.block_bytes_chip(tuple(size for size, *_ in caches[0].pages), compiled.stage, layout.cp)
    kv = laws.whole_blocks(free, block, reported)
    return Room(
        reported=reported, usable=usable, weights=compiled.weights_bytes, kv=kv, rest=laws.block_rest(free, kv), activations=activations,
        workspace=workspace, beyond=laws.left_bytes_chip(reported, usable, activations, workspace), stage=compiled.stage,
        pages=caches[0].pages, admitted=caches[1].pages,
    )  # fmt: skip


def _buffers(engine: str, chip: Chip, layout: Layout, table: Efficiencies) -> Any:
    """Bytes that collectives over scale-up links hold; none where cards meet over PCIe, or a replica's layers lie on one chip."""
    if chip.topology in ("pcie", "none"):
        return NOTHING
    joined = layout.tp * layout.cp * layout.dp > 1
    size = table.engine(engine, platform(chip), "buffer_bytes")
    return np.where(joined, size, NOTHING) if np.ndim(joined) else size if joined else NOTHING


def _graphs(start: StartUp, engine: str, chip: Chip, work: ModelWork, compiled: LayoutBytes, table: Efficiencies) -> Any:
    """Bytes of CUDA graphs."""
    if "captured_bytes" in start.facts:
        return laws.graph_bytes_chip(start.facts["captured_bytes"], WHATEVER, start.captured, WHATEVER, WHATEVER)
    size = table.engine(engine, platform(chip), "graph_bytes")
    return laws.graph_bytes_chip(size, work.layers, laws.captured_sizes(start.captured), start.facts["graph_kinds"], compiled.stage)

"""Number format of each part of a model, stored and multiplied: the checkpoint's, the user's, or the chip's fallback."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from headway.core.errors import IllegalCombination, drop_note
from headway.core.quantity import known
from headway.core.units import FlopPerSecond
from headway.hardware.chip import PEAK_OF, Chip
from headway.models.precision import COMPUTE, Format, Precision, cache_format, formats
from headway.models.stored import stored_formats
from headway.models.work import LayerWork, ModelWork

WIDTHS = {"fp4": 4, "fp8": 8, "int8": 8, "bf16": 16, "fp16acc": 16}  # bits of the operands of a multiplication
BYTE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Formats:
    """Formats of a compiled layout, resolved from the checkpoint, the user's choice and the chip's peaks."""

    weights: tuple[tuple[Format, ...], ...]  # of mixer, ffn and routed experts, block by block
    runs: tuple[tuple[str, ...], ...]  # format in which each part is multiplied
    peaks: tuple[tuple[Any, ...], ...]  # the chip's peak for each part, in the format of `runs`
    best_peaks: tuple[tuple[Any, ...], ...]  # and in the fastest format that could multiply it: of the floor
    kv: Format
    state: Format  # of a recurrence
    attention_peak: Any  # in the cache's format
    best_attention_peak: Any
    index_peak: Any  # of an index scan, in 8 bits whatever the cache's format
    best_index_peak: Any
    wide_peak: Any  # in 16 bits
    embedding: Format  # of the table; the head's where it is the same
    head: Format
    head_peak: Any
    best_head_peak: Any
    vectors: Format
    labels: tuple[str, str, str]  # weights, kv, compute, as in the columns
    notes: tuple[str, ...]

    def fastest(self) -> Formats:
        """The same stored formats, each multiplied in the fastest that is at least as wide: those of the roofline."""
        return replace(self, peaks=self.best_peaks, attention_peak=self.best_attention_peak, index_peak=self.best_index_peak,
                       head_peak=self.best_head_peak)  # fmt: skip


NO_PEAK = known(math.inf, "peak", "flop/s", "default", "no public figure: arithmetic is left out")


def has_peak(chip: Chip) -> bool:
    """Whether any rate of arithmetic of a chip is public."""
    return not math.isinf(peak(chip, "bf16")[1])


def no_peak_note(chip: Chip) -> str:
    """What is left out of a decode step of a chip without a public peak, or ""."""
    if has_peak(chip):
        return ""
    return f"{chip.name}: no public peak, so arithmetic is left out: right while bandwidth binds; --set chip.peak_bf16=... adds it and TTFT"


def peak(chip: Chip, dtype: str) -> tuple[str, Any]:
    """Format in which a multiplication runs, and its peak: the requested one, or the widest the chip has; no limit where none is public."""
    name = formats()[dtype].peak
    peak_rate = chip.peak(name)
    if peak_rate is not None:
        return name, peak_rate
    for fallback in ("bf16", "fp8", "int8", "fp4"):
        peak_rate = chip.peak(fallback)
        if peak_rate is not None:
            return fallback, peak_rate
    return "bf16", NO_PEAK


def best_peak(chip: Chip, stored: Format, run: FlopPerSecond) -> Any:
    """Peak of the fastest format that could multiply a stored number, at least `run`: whichever at least as wide a kernel converts it to.

    A floor takes it, so that no choice of kernel beats the floor, and none of a narrower format raises it.
    """
    bits = min(int(BYTE * stored.bytes), max(WIDTHS.values()))  # scales of blocks are no part of an operand
    rates = [getattr(chip, PEAK_OF[name]) for name, width in WIDTHS.items() if width >= bits]
    return max([run, *filter(None, rates)])


def check_compute(chip: Chip, precision: Precision) -> None:
    """Refuse a stated arithmetic that the chip has no peak for; one that follows from the weights falls back instead (`resolve`)."""
    formats_able = [name for name in COMPUTE if chip.peak(formats()[name].peak) is not None]
    if precision.compute and formats_able and precision.compute not in formats_able:
        wants = f"a format that {chip.name} multiplies in: {', '.join(formats_able)}; or none, for that of the weights or the widest it has"
        raise IllegalCombination("compute", precision.compute, wants)


def able_computes(chip: Chip, names: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """The arithmetic formats of a list that the chip has, and a note on those dropped; IllegalCombination if it has none of them."""
    able: list[str] = []
    illegal: list[IllegalCombination] = []
    for name in names:
        try:
            check_compute(chip, Precision(compute=name))
            able.append(name)
        except IllegalCombination as error:
            illegal.append(error)
    if not able:
        raise illegal[0]
    return tuple(able), drop_note(illegal, len(names), "compute formats")


def resolve(work: ModelWork, chip: Chip, precision: Precision) -> Formats:
    """Formats of all parts: as in the checkpoint unless the user chose; arithmetic falls back to a format of the chip."""
    table, notes = formats(), []
    blocks, weights = work.blocks, stored_formats(work, precision.weights)
    stored = tuple(tuple(map(operator.attrgetter("name"), row)) for row in weights.blocks)
    run_of = {name: peak(chip, precision.compute or name) for name in {weights.head.name}.union(*stored)}
    runs = tuple(tuple(map(run_of.__getitem__, names)) for names in stored)
    best = {name: run for name, (_, run) in run_of.items()}
    if not precision.compute:  # the arithmetic that the user states is the floor's too
        best = {name: best_peak(chip, table[name], run) for name, run in best.items()}
    for dtype in [precision.compute] if precision.compute else sorted(set().union(*stored)):
        name, _ = peak(chip, dtype)
        if name != table[dtype].peak:
            notes.append(f"{chip.name} has no {table[dtype].peak} peak in the catalogue: {dtype} weights are multiplied in {name}")
    kv = cache_format(precision.kv)
    wide, attention_peak = peak(chip, kv.name if kv.peak == "fp8" else "bf16")
    if wide != (kv.peak if kv.peak == "fp8" else "bf16"):
        notes.append(f"{chip.name}: attention is computed in {wide}")
    main, index_peak = main_part(blocks), peak(chip, "fp8")[1]
    return Formats(
        weights=weights.blocks,
        runs=tuple(tuple(map(operator.itemgetter(0), row)) for row in runs),
        peaks=tuple(tuple(map(operator.itemgetter(1), row)) for row in runs),
        best_peaks=tuple(tuple(map(best.__getitem__, names)) for names in stored),
        kv=kv,
        state=table[blocks[0].state_dtype],
        attention_peak=attention_peak,
        best_attention_peak=best_peak(chip, kv, attention_peak),
        index_peak=index_peak,
        best_index_peak=best_peak(chip, min(kv, table["fp8"], key=operator.attrgetter("bytes")), index_peak),
        wide_peak=peak(chip, "bf16")[1],
        embedding=weights.embedding,
        head=weights.head,
        head_peak=run_of[weights.head.name][1],
        best_head_peak=best[weights.head.name],
        vectors=weights.vectors,
        labels=(stored[main[0]][main[1]], kv.name, runs[main[0]][main[1]][0]),
        notes=tuple(notes),
    )


WIDER = 0.05  # of a token's weight bytes: a build that spares less beats the floor by little
SMALL = 0.005  # of them: smaller parts, such as a router, are not named


def floor_note(work: ModelWork, formats_of: Formats) -> str:
    """What the floor is of, where parts of the weights are wider than others and a narrower build may beat it; "" elsewhere."""
    parts = _token_weights(work, formats_of)
    by_name = {form.name: form for _, form, _ in parts[:-1]}
    layers, narrow = list(by_name), min(by_name.values(), key=operator.attrgetter("bytes"))
    whole_bytes, least_bytes, least = 0.0, 0.0, float(narrow.bytes)
    for _, form, params in parts:
        element = float(form.bytes)
        whole_bytes += params * element
        least_bytes += params * (element if form.name == narrow.name else min(element, least))  # a GGUF mixture is one build
    if whole_bytes - least_bytes <= WIDER * whole_bytes:
        return ""
    head = parts[-1][1]
    large = [f"{word} {form.name}" for word, form, params in parts if params * float(form.bytes) > SMALL * whole_bytes]
    words = large if len(layers) > 1 else [f"layers {layers[0]}", f"head {head.name}"]
    flags = [f"--weights {narrow.name}"] * (len(layers) > 1) + [f"--embedding {narrow.name}"] * (head.name != narrow.name)
    stored = ", ".join(dict.fromkeys(words))
    return f"floor: of weights as stored ({stored}); a build with all of them in {narrow.name} may beat it: {' '.join(flags)}"


def _token_weights(work: ModelWork, formats_of: Formats) -> list[tuple[str, Format, float]]:
    """Weights that one token multiplies, by part and format: its name, its format, its parameters; the head last."""
    parts = []
    for block, row in zip(work.blocks, formats_of.weights, strict=True):
        names = ("attention" if block.spans else "mixers", "shared experts" if block.experts else "FFN", "experts")
        params = (block.mixer_params, block.dense_ffn_params, block.expert_params * block.experts_per_token)
        parts += [(name, form, float(count * block.count)) for name, form, count in zip(names, row, params, strict=True) if count]
    return [*parts, ("head", formats_of.head, float(work.table_params))]


def main_part(blocks: tuple[LayerWork, ...]) -> tuple[int, int]:
    """(block, part) with most weights, whose format labels a row."""
    last = len(blocks) - 1
    if blocks[last].experts:
        return last, 2
    return last, 1 if blocks[last].dense_ffn_params else 0

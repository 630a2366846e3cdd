"""Number format of each part of a model, stored and multiplied: the checkpoint's, the user's, or the chip's fallback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headway.core.errors import IllegalCombination, drop_note
from headway.hardware.chip import Chip
from headway.models.precision import COMPUTE, Format, Precision, formats
from headway.models.stored import stored_formats
from headway.models.work import LayerWork, ModelWork


@dataclass(frozen=True, slots=True, kw_only=True)
class Formats:
    """Formats of a compiled layout, resolved from the checkpoint, the user's choice and the chip's peaks."""

    weights: tuple[tuple[Format, ...], ...]  # of mixer, ffn and routed experts, block by block
    runs: tuple[tuple[str, ...], ...]  # format in which each part is multiplied
    peaks: tuple[tuple[Any, ...], ...]  # the chip's peak for each part, in the format of `runs`
    kv: Format
    state: Format  # of a recurrence
    attention_peak: Any  # in the cache's format
    wide_peak: Any  # in 16 bits
    embedding: Format  # of the table; the head's where it is the same
    head: Format
    head_peak: Any
    vectors: Format
    labels: tuple[str, str, str]  # weights, kv, compute, as in the columns
    notes: tuple[str, ...]


def peak(chip: Chip, dtype: str) -> tuple[str, Any]:
    """Format in which a multiplication runs, and its peak: the requested one, or the widest the chip has."""
    name = formats()[dtype].peak
    peak_rate = chip.peak(name)
    if peak_rate is not None:
        return name, peak_rate
    for fallback in ("bf16", "fp8", "int8", "fp4"):
        peak_rate = chip.peak(fallback)
        if peak_rate is not None:
            return fallback, peak_rate
    return "bf16", chip.need("peak_bf16")


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
    stored = tuple(tuple(form.name for form in row) for row in weights.blocks)
    runs = tuple(tuple(peak(chip, precision.compute or name) for name in names) for names in stored)
    for dtype in sorted({precision.compute or name for names in stored for name in names}):
        name, _ = peak(chip, dtype)
        if name != table[dtype].peak:
            notes.append(f"{chip.name} has no {table[dtype].peak} peak in the catalogue: {dtype} weights are multiplied in {name}")
    kv = table[precision.kv or "bf16"]
    wide, attention_peak = peak(chip, kv.name if kv.peak == "fp8" else "bf16")
    if wide != (kv.peak if kv.peak == "fp8" else "bf16"):
        notes.append(f"{chip.name}: attention is computed in {wide}")
    main = main_part(blocks)
    return Formats(
        weights=weights.blocks,
        runs=tuple(tuple(name for name, _ in row) for row in runs),
        peaks=tuple(tuple(value for _, value in row) for row in runs),
        kv=kv,
        state=table[blocks[0].state_dtype],
        attention_peak=attention_peak,
        wide_peak=peak(chip, "bf16")[1],
        embedding=weights.embedding,
        head=weights.head,
        head_peak=peak(chip, precision.compute or weights.head.name)[1],
        vectors=weights.vectors,
        labels=(stored[main[0]][main[1]], kv.name, runs[main[0]][main[1]][0]),
        notes=tuple(notes),
    )


def main_part(blocks: tuple[LayerWork, ...]) -> tuple[int, int]:
    """(block, part) with most weights, whose format labels a row."""
    last = len(blocks) - 1
    if blocks[last].experts:
        return last, 2
    return last, 1 if blocks[last].dense_ffn_params else 0

"""What makes two runs alike: model, chip, count, layout, formats, engine, version and mode of the deployment that was measured."""

from __future__ import annotations

from dataclasses import dataclass

SERVED, OFFLINE, SPLIT, TRAINING = MODES = ("served", "offline", "split", "training")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKey:
    """A deployment as runs of it are filed; "" matches anything, with the wider interval of what is not known."""

    model: str
    chip: str
    chips: int
    layout: str  # degrees other than 1, as layouts are written: tp=8 ep=8
    weights: str
    kv: str
    engine: str  # family, as --engine has it
    version: str = ""
    mode: str = SERVED

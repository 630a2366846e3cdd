"""Experts in the memory of a chip's host: which questions have them, and what is assumed of them."""

from __future__ import annotations

from headway.core.errors import BadValue
from headway.hardware.chip import Chip
from headway.models.work import ModelWork

HOSTED = (
    "experts in the host's memory: each step reads those that its tokens use over the chip's link, after routing, as vLLM's "
    "--cpu-offload-params does, at what copies reached of PCIe (--eff-host); none is computed on the CPU, as llama.cpp's "
    "--n-cpu-moe does, nor kept on the chip for the next step"
)
HOSTED_FLOOR = "the floor moves every expert anew in each step: an engine that keeps some of them on the chip may beat it"


def offload_notes(work: ModelWork, chip: Chip, offload: str) -> list[str]:
    """What is assumed of experts in the host's memory; an error where there are none, or nothing to move."""
    if offload == "none":
        return []
    if not any(block.experts for block in work.blocks):
        raise BadValue("--offload", offload, f"a model with routed experts, which {work.name} has not")
    if chip.memory == "shared":
        raise BadValue("--offload", offload, f"a chip with memory of its own: that of {chip.name} is its host's, nothing moves")
    chip.need("host_link_bw")
    room = "" if chip.host_dram is not None else "; whether they fit there is not known: --set chip.host_dram=512GB says what a chip has"
    return [f"{HOSTED}{room}", HOSTED_FLOOR]

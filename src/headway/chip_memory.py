"""The memory that a chip comes with: which tier's price its HBM has, and its share of the host's memory, where that is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway import facts
from headway.catalog import PACKAGED
from headway.schema import Field

PATH = PACKAGED / "memory_of_chips.toml"
BYTES = Field("byte", "share of one chip in its host's memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipMemory:
    """Names of tiers, "" where they are not known, and bytes of host memory per chip, None where not."""

    hbm: str = ""
    dram_tier: str = ""
    dram: Any = None


def chip_memory(name: str) -> ChipMemory:
    """What is known of a chip's memory.

    >>> chip_memory("gb200").hbm, float(chip_memory("gb200").dram)
    ('hbm3e_b200', 240000000000.0)
    """
    document = facts.read(PATH)
    entry = facts.table(facts.table(document, "chips", PATH), name, PATH)
    dram = facts.number(entry["dram"], BYTES, f"{name}.dram", facts.table(document, "sources", PATH), PATH) if "dram" in entry else None
    return ChipMemory(hbm=facts.text(entry, "hbm", PATH), dram_tier=facts.text(entry, "dram_tier", PATH), dram=dram)

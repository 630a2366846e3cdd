"""What kernels and engines were measured to reach: the numbers of data/efficiency.toml, and which of them apply to a chip and a format.

A number is looked up under its class, the chip's family and the format of the arithmetic; what was not measured falls back to the
family `other` and to bf16, in that order.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from headway.chip import Chip
from headway.errors import MissingFact
from headway.quantity import known

ENGINES = ("vllm", "sglang", "trtllm", "llamacpp", "other", "none")  # none: kernels alone
OTHER, WIDE = "other", "bf16"
SOURCE = "data/efficiency.toml, fitted; docs/accuracy.md"


@dataclass(frozen=True, slots=True)
class Efficiencies:
    """Fitted numbers by section and key."""

    sections: Mapping[str, Mapping[str, Any]]

    def find(self, key: str, *sections: str) -> Any:
        """The number under the first section that has it."""
        for section in sections:
            found = self.sections.get(section, {}).get(key)
            if found is not None:
                return found
        raise MissingFact("efficiency.toml", f"{sections[0]}.{key}", "fit it with `headway fit`")

    def kernel(self, kind: str, family: str, form: str, key: str) -> Any:
        """A number of one class of kernels."""
        return self.find(key, f"{kind}.{family}.{form}", f"{kind}.{OTHER}.{form}", f"{kind}.{family}.{WIDE}", f"{kind}.{OTHER}.{WIDE}")

    def engine(self, name: str, platform: str, key: str) -> Any:
        """A number of one family of engines; those for a platform go before those for any."""
        return self.find(key, f"engine.{name}.{platform}", f"engine.{name}", f"engine.{OTHER}")

    def interval(self, key: str) -> Any:
        """Half of a 90 % interval as a factor, or how much wider a circumstance makes it."""
        return self.find(key, "interval.other")

    def platform(self, name: str, key: str) -> Any:
        """A number of one kind of machine."""
        return self.find(key, f"platform.{name}", f"platform.{OTHER}")


@functools.cache
def efficiencies() -> Efficiencies:
    """The numbers that ship."""
    import tomllib

    return Efficiencies(_sections(tomllib.loads(files("headway").joinpath("data/efficiency.toml").read_text(encoding="utf-8"))))


def _sections(document: Mapping[str, Any], prefix: str = "") -> dict[str, dict[str, Any]]:
    """`[gemm.hopper.bf16] compute = {value = ...}` as {"gemm.hopper.bf16": {"compute": Known}}."""
    found: dict[str, dict[str, Any]] = {}
    for name, entry in document.items():
        path = f"{prefix}.{name}".lstrip(".")
        if "value" in entry:
            number = known(float(entry["value"]), path, entry.get("unit", ""), "fitted", f"{SOURCE}: {entry.get('meaning', '')}")
            found.setdefault(prefix, {})[name] = number
        else:
            found |= _sections(entry, path)
    return found


@functools.cache
def _listed(table: str) -> dict[str, str]:
    import tomllib

    document = tomllib.loads(files("headway").joinpath("data/families.toml").read_text(encoding="utf-8"))
    return {chip: name for name, chips in document[table].items() for chip in chips}


def family(chip: Chip) -> str:
    """The family whose measured kernels stand for a chip's, or `other`."""
    return _listed("family").get(chip.name, OTHER)


def platform(chip: Chip) -> str:
    """What kind of machine an engine's software meets, or `other`."""
    return _listed("platform").get(chip.name, OTHER)

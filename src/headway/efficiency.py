"""What kernels and engines were measured to reach: the numbers of data/efficiency.toml, and which of them apply to a chip and a format.

A number is looked up under its class, the chip's family and the format of the arithmetic; what was not measured falls back to the
family `other` and to bf16, in that order.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from headway import facts
from headway.catalog import default_catalog
from headway.chip import Chip
from headway.errors import BadFile, MissingFact
from headway.quantity import known

ENGINES = ("vllm", "sglang", "trtllm", "llamacpp", "other", "none")  # none: kernels alone
OTHER, WIDE = "other", "bf16"
FILE = "efficiency.toml"
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


def efficiencies() -> Efficiencies:
    """The numbers that ship, or those of the first catalogue folder ($HEADWAY_CATALOG, the user's) that has a file of them."""
    return _read(next(path for root in default_catalog().roots if (path := root / FILE).is_file()))


@functools.cache
def _read(path: Path) -> Efficiencies:
    return Efficiencies(_sections(facts.read(path), path))


def _sections(document: Mapping[str, Any], path: Path, prefix: str = "") -> dict[str, dict[str, Any]]:
    """`[gemm.hopper.bf16] compute = {value = ...}` as {"gemm.hopper.bf16": {"compute": Known}}."""
    found: dict[str, dict[str, Any]] = {}
    for name, entry in document.items():
        whole = f"{prefix}.{name}".lstrip(".")
        if not isinstance(entry, dict):
            raise BadFile(path, f"{whole}: got {entry!r}; wants {{ value = ..., unit = ... }} as `headway fit` writes")
        if "value" in entry:
            found.setdefault(prefix, {})[name] = _number(entry, whole, path)
        else:
            found |= _sections(entry, path, whole)
    return found


def _number(entry: Mapping[str, Any], name: str, path: Path) -> Any:
    value = entry["value"]
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0 or value == math.inf:
        raise BadFile(path, f"{name}: got {value!r}; wants a finite number that is not negative")
    return known(float(value), name, str(entry.get("unit", "")), "fitted", f"{SOURCE}: {entry.get('meaning', '')}")


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


def foreign(chip: Chip) -> bool:
    """Whether engines were first written for other chips than this kind."""
    return platform(chip) not in ("datacenter", "card")

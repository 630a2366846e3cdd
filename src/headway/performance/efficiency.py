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

from headway.core import catalog
from headway.core.catalog import default_catalog
from headway.core.errors import BadFile, MissingFact
from headway.core.quantity import known
from headway.hardware.chip import Chip

ENGINES = ("vllm", "sglang", "trtllm", "llamacpp", "other", "none")  # none: kernels alone
OTHER_FAMILY, WIDE = "other", "bf16"
FILE = "efficiency.toml"
ALONE = ("engine", "platform", "interval")  # each number stands for itself; of a class of kernels a file states all or none
UNITS = ("", "s", "byte", "token")
ABOVE_ZERO = (
    "compute", "memory", "activation", "norm", "attention", "expert", "eff_network", "eff_in_switch", "eff_exchange", "eff_out",
    "budget", "limit", "hbm", "weight_only",
)  # fmt: skip
SOURCE = "data/efficiency.toml, fitted; docs/accuracy.md"


@dataclass(frozen=True, slots=True)
class Efficiencies:
    """Fitted numbers by section and key."""

    sections: Mapping[str, Mapping[str, Any]]

    def find(self, key: str, *sections: str) -> Any:
        """The number under the first section that has it."""
        for section in sections:
            number = self.sections.get(section, {}).get(key)
            if number is not None:
                return number
        hint = "a file states all numbers of a class of kernels or none; `headway fit` writes it"
        raise MissingFact("efficiency.toml", f"{sections[0]}.{key}", hint)

    def kernel(self, kind: str, family: str, form: str, key: str) -> Any:
        """A number of one class of kernels."""
        return self.find(
            key, f"{kind}.{family}.{form}", f"{kind}.{OTHER_FAMILY}.{form}", f"{kind}.{family}.{WIDE}", f"{kind}.{OTHER_FAMILY}.{WIDE}"
        )

    def engine(self, name: str, platform: str, key: str) -> Any:
        """A number of one family of engines; those for a platform go before those for any."""
        return self.find(key, f"engine.{name}.{platform}", f"engine.{name}", f"engine.{OTHER_FAMILY}")

    def interval(self, key: str) -> Any:
        """Half of a 90 % interval as a factor, or how much wider a circumstance makes it."""
        return self.find(key, "interval.other")

    def platform(self, name: str, key: str) -> Any:
        """A number of one kind of machine."""
        return self.find(key, f"platform.{name}", f"platform.{OTHER_FAMILY}")


def efficiencies() -> Efficiencies:
    """The numbers that ship, under those of catalogue folders ($HEADWAY_CATALOG, the user's) that have a file of them."""
    return _laid(tuple(path for root in default_catalog().roots if (path := root / FILE).is_file()))


@functools.cache
def _laid(paths: tuple[Path, ...]) -> Efficiencies:
    """The numbers of several files, the first before the others."""
    table: dict[str, dict[str, Any]] = {}
    for path in reversed(paths):
        file_sections = sections(catalog.read(path), path)
        complete_kinds = {kind_of(section) for section in file_sections} - {*ALONE}
        table = {section: numbers for section, numbers in table.items() if kind_of(section) not in complete_kinds}
        table |= {section: table.get(section, {}) | numbers for section, numbers in file_sections.items()}
    return Efficiencies(table)


def kind_of(section: str) -> str:
    """The class of a section's numbers.

    >>> kind_of("gemm.hopper.bf16")
    'gemm'
    """
    return section.partition(".")[0]


def sections(document: Mapping[str, Any], path: Path, prefix: str = "") -> dict[str, dict[str, Any]]:
    """`[gemm.hopper.bf16] compute = {value = ...}` as {"gemm.hopper.bf16": {"compute": Known}}."""
    table: dict[str, dict[str, Any]] = {}
    for name, entry in document.items():
        entry_name = f"{prefix}.{name}".lstrip(".")
        if not isinstance(entry, dict):
            raise BadFile(path, f"{entry_name}: got {entry!r}; wants {{ value = ..., unit = ... }} as `headway fit` writes")
        if "value" in entry:
            table.setdefault(prefix, {})[name] = _number(entry, entry_name, path)
        else:
            table |= sections(entry, path, entry_name)
    return table


def _number(entry: Mapping[str, Any], name: str, path: Path) -> Any:
    value, unit, key = entry["value"], entry.get("unit", ""), name.rpartition(".")[2]
    least, wants = 0.0, "a finite number that is not negative"
    if kind_of(name) == "interval":
        least, wants = 1.0, "a finite number of at least 1"
    elif key in ABOVE_ZERO:
        least, wants = math.ulp(0.0), "a finite number above 0"
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < math.inf:
        raise BadFile(path, f"{name}: got {value!r}; wants {wants}")
    if unit not in UNITS:
        raise BadFile(path, f"{name}: got unit {unit!r}; wants one of {', '.join(map(repr, UNITS))}")
    return known(float(value), name, unit, "fitted", f"{SOURCE}: {entry.get('meaning', '')}")


@functools.cache
def _name_by_chip(table: str) -> dict[str, str]:
    import tomllib

    document = tomllib.loads(files("headway").joinpath("data/families.toml").read_text(encoding="utf-8"))
    return {chip: name for name, chips in document[table].items() for chip in chips}


def family(chip: Chip) -> str:
    """The family whose measured kernels stand for a chip's, or `other`."""
    return _name_by_chip("family").get(chip.name, OTHER_FAMILY)


def platform(chip: Chip) -> str:
    """What kind of machine an engine's software meets, or `other`."""
    return _name_by_chip("platform").get(chip.name, OTHER_FAMILY)


def foreign(chip: Chip) -> bool:
    """Whether engines were first written for other chips than this kind."""
    return platform(chip) not in ("datacenter", "card")

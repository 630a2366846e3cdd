"""A chip by numbers: `64x(peak_bf16=1P hbm_bw=8TB/s hbm=192GB scale_up_bw=900GB/s price=$3/h)`, wherever a machine is named.

Facts are those of a catalogue file, by the same names and units; `like=h100-sxm` takes every other fact, and the costs fitted to its
kernels, from a chip of the catalogue.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from headway.core import catalog as facts
from headway.core import schema
from headway.core.catalog import Catalog, fold
from headway.core.errors import BadValue, UnknownName, check_known
from headway.core.quantity import default
from headway.hardware.chip import TOPOLOGIES, Chip
from headway.hardware.chip import read as read_chip

EXAMPLE = "64x(peak_bf16=1P hbm_bw=8TB/s hbm=192GB scale_up_bw=900GB/s)"
NEEDED = ("hbm", "hbm_bw")
TEXTS = ("name", "topology", "like")
_MACHINE = re.compile(r"\s*(?:(?P<count>[^()\s]+?)\s*[x*×]\s*)?\((?P<facts>[^()]*)\)\s*")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,40}")


def split_machine(text: str) -> tuple[str, str] | None:
    """(count, facts) of a machine by numbers; None where the text has no brackets."""
    if "(" not in text or not ("=" in text or "()" in text):
        return None
    match = _MACHINE.fullmatch(text) if len(text) <= 2000 else None
    if match is None:
        raise BadValue("--on", text, f"a machine by numbers, such as {EXAMPLE}")
    return match["count"] or "1", match["facts"]


def chip_by_numbers(text: str, where: Catalog, count: int) -> Chip:
    """The chip that a text of facts describes."""
    texts, numbers = _parse(text)
    base = read_chip(where.path("chips", texts["like"]), where) if "like" in texts else None
    name = fold(texts.get("name", "hypothetical"))
    if not _NAME.fullmatch(name):
        raise BadValue("name", texts["name"], "letters, digits and dashes")
    if where.find("chips", name):
        raise BadValue("name", texts["name"], "a name that no chip of the catalogue has; like=NAME takes facts from one")
    topology = texts.get("topology", base.topology if base else "switch")
    check_known("topology", topology, TOPOLOGIES)
    chip = replace(base, name=name, costs=(), **numbers) if base else Chip(name=name, **numbers)
    chip = replace(chip, topology=topology, hypothetical=True, like=base.like or base.name if base else "", notes="by numbers")
    missing = [key for key in NEEDED if getattr(chip, key) is None]
    if all(getattr(chip, key) is None for key in ("peak_bf16", "peak_fp8", "peak_fp4", "peak_int8")):
        missing.insert(0, "peak_bf16")
    if missing:
        raise BadValue("--on", f"({text})", f"{', '.join(missing)} too, as in {EXAMPLE}, or like=CHIP for the rest")
    if chip.scale_up_domain is None and count > 1:
        chip = replace(chip, scale_up_domain=default(count, "scale_up_domain", "", "all chips in one domain, since no size was given"))
    return chip


def _parse(text: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Texts and numbers by key, each number the user's."""
    fields = facts.declared(Chip)
    texts: dict[str, str] = {}
    numbers: dict[str, Any] = {}
    for word in text.replace(",", " ").split():
        key, equals, value = word.partition("=")
        name = key.lower().replace("-", "_")
        if not equals or not value:
            raise BadValue("--on", word, f"FACT=VALUE, as in {EXAMPLE}")
        if name not in (*TEXTS, *fields):
            raise UnknownName("fact of a chip", key, [*fields, *TEXTS], "`headway show chip h100-sxm` lists the facts")
        if name in texts or name in numbers:
            raise BadValue("--on", text, f"{name} once")
        if name in TEXTS:
            texts[name] = value
        else:
            numbers[name] = schema.scalar(value, fields[name], name)
    return texts, numbers

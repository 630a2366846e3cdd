"""What-if edits of a system, as in `--set chip.hbm_bw=10TB/s`: the edited number has the user as its source, other facts stay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headway.core import catalog, schema
from headway.core.errors import BadValue, UnknownName
from headway.core.quantity import user_input
from headway.hardware.chip import Chip
from headway.hardware.system import TOTALS, System

# Facts that both records hold: an edit of either changes both.
SHARED = ("scale_up_bw", "scale_out_bw")
# Facts of the whole system that an edit of its chip invalidates.
STALE = {"hbm": ("hbm_total",), "tdp": ("power",)}


def editable() -> dict[str, schema.Field]:
    """All keys of --set, with their unit and legal range."""
    chip = {f"chip.{key}": q for key, q in catalog.declared(Chip).items()}
    return chip | {f"system.{key}": q for key, q in catalog.declared(System).items()}


def edit(system: System, key: str, value: str | float) -> System:
    """The system with one fact replaced: text in any unit of its kind, or a number in SI.

    >>> from headway.hardware.system import system
    >>> edited = edit(system("8xh100-sxm"), "chip.hbm_bw", "10TB/s")
    >>> edited.chip.hbm_bw, edited.chip.hbm_bw.kind
    (10000000000000.0, 'input')
    """
    keys = editable()
    if key not in keys:
        raise UnknownName("fact to set", key, keys, "wants chip.FACT or system.FACT, as `headway show` prints them")
    number = _number(value, keys[key], key)
    part, _, name = key.partition(".")
    return _edit_chip(system, name, number) if part == "chip" else _edit_system(system, name, number)


def _number(value: str | float, q: schema.Field, key: str) -> Any:
    if isinstance(value, str):
        return schema.scalar(value, q, key)
    if isinstance(value, bool):
        raise BadValue(key, value, "a number")
    wants = q.illegal(value)
    if wants:
        raise BadValue(key, value, wants)
    return user_input(int(value) if q.integer else float(value), key, q.unit)


def _edit_chip(system: System, name: str, number: Any) -> System:
    changes: dict[str, Any] = {"chip": replace(system.chip, **_stale_report(system.chip, name), **{name: number})}
    changes |= dict.fromkeys(STALE.get(name, ()))
    if name in SHARED:
        changes |= {name: number, "bisection": None}
    if name == "scale_up_domain":
        changes |= {name: min(number, system.chips), "bisection": None, "shape": ()}
    return replace(system, **changes)


def _stale_report(chip: Chip, name: str) -> dict[str, None]:
    """What an edit of a chip's memory makes of the driver's figure: none, unless the user gave that one too."""
    is_stale = name == "hbm" and getattr(chip.hbm_reported, "kind", "") != "input"
    return {"hbm_reported": None} if is_stale else {}


def _edit_system(system: System, name: str, number: Any) -> System:
    changes: dict[str, Any] = {name: number}
    if name in SHARED:
        changes |= {"chip": replace(system.chip, **{name: number}), "bisection": None}
    if name == "chips":
        changes |= dict.fromkeys((*TOTALS, "bisection")) | {"scale_up_domain": min(system.scale_up_domain, number), "shape": ()}
    if name == "scale_up_domain":
        if number > system.chips:
            raise BadValue("system.scale_up_domain", number, f"at most the {system.chips} chips of {system.name}")
        changes |= {"bisection": None, "shape": ()}
    return replace(system, **changes)

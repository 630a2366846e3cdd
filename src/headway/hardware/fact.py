"""A fact by its name: `h100.hbm_bw`, `gb200-nvl72.chips`, `deepseek-v3.active_params`, `ddr5-pcie.capacity`."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from headway.core import catalog as facts
from headway.core import schema
from headway.core.catalog import Catalog, default_catalog
from headway.core.errors import BadValue, MissingFact, UnknownName
from headway.core.quantity import Sourced, default, known
from headway.core.trace import Traced
from headway.hardware import memory_tier
from headway.hardware.chip import Chip, price_quote
from headway.hardware.chip import read as read_chip
from headway.hardware.system import System, system
from headway.models import config, describe

CONTEXT = default(8192, "context", "token", "context at which kv_read_bytes_per_token is taken")
_is_read: ContextVar[bool] = ContextVar("is_read", default=False)  # while a fact is
EXAMPLES = "h100.hbm_bw, gb200-nvl72.chips or deepseek-v3.active_params"


def fact(text: str, field: str = "fact", catalog: Catalog | None = None) -> Any:
    """Number of the catalogue with its origin: a fact of a chip, system or memory tier, or a count of a model.

    >>> fact("h100.hbm_bw"), fact("gb200-nvl72.chips"), fact("deepseek-v3.kv_bytes_per_token")
    (3350000000000.0, 72, 70272)
    """
    where = catalog or default_catalog()
    name, _, key = text.strip().rpartition(".")
    if not name:
        raise BadValue(field, text, f"NAME.FACT, such as {EXAMPLES}")
    path = where.find("chips", name)
    if path:
        return _of_chip(read_chip(path, where), key, name)
    if where.find("tiers", name):
        return memory_tier.tier(name, where).need(key)
    if where.find("systems", name) or _is_machine(name, where):
        return _of_system(system(name, where), key, name)
    return _of_model(name, key, where)


def of_user(text: str, field: str) -> Any:
    """A fact that a value of the user's names; the file of a fact may name none, so that no file needs itself."""
    if _is_read.get():
        raise BadValue(field, text, "a number: a file names no fact")
    token = _is_read.set(True)
    try:
        return fact(text, field, facts.open_catalog(facts.in_use.get()))
    finally:
        _is_read.reset(token)


def _is_machine(name: str, where: Catalog) -> bool:
    """Whether a name is a count of chips or a torus by shape."""
    try:
        system(name, where)
    except UnknownName:
        return False
    return True


def _of_chip(chip: Chip, key: str, name: str) -> Any:
    if key == "price":
        quote = price_quote(chip)
        if quote is None:
            raise MissingFact(chip.name, key, "give a number, such as $2.5/h")
        return quote.value
    if key not in facts.declared(Chip):
        return _of_system(system(name), key, name)
    return _numeric(chip.need(key), chip.name, key)


def _of_system(machine: System, key: str, name: str) -> Any:
    if key in facts.declared(System):
        return _numeric(machine.need(key), machine.name, key)
    if key in facts.declared(Chip):
        return _of_chip(machine.chip, key, name)
    raise UnknownName(f"fact of {name}", key, [*facts.declared(System), *facts.declared(Chip)], f"such as {EXAMPLES}")


def _of_model(name: str, key: str, where: Catalog) -> Any:
    marks = {field: mark for field, (mark, _) in schema.fields(describe.ModelSummary).items()}
    if key not in marks:
        raise UnknownName(f"fact of {name}", key, [*marks, *facts.declared(Chip)], f"such as {EXAMPLES}")
    summary = describe.about_model(config.model(name, [root / "models" for root in where.roots[:-1]]), CONTEXT)
    return _numeric(getattr(summary, key), name, key, marks[key].unit)


def _numeric(number: Any, name: str, key: str, unit: str = "") -> Any:
    if number is None:
        raise MissingFact(name, key, "give a number instead")
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise BadValue(f"{name}.{key}", "no number", f"a fact that is a number, such as {EXAMPLES}")
    if isinstance(number, Traced):
        number.unit = unit  # as it is declared: sums over layers carry none
    if isinstance(number, Sourced | Traced):
        return number
    return known(number, f"{name}.{key}", unit, "config", "config.json of the model")

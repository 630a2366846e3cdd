"""Models and machines as typed on the command line: lists of them, with the user's catalogue and what-if edits applied."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

from headway.errors import BadValue


def catalog(args: Any) -> Any:
    """The catalogue, the user's folders first."""
    from headway.catalog import open_catalog

    return open_catalog(args.catalog)


def split(text: str, what: str) -> list[str]:
    """A comma-separated list of names; one that is a path stays whole."""
    if _is_path(text):
        return [text]
    names = [part.strip() for part in text.split(",")]
    if not all(names):
        raise BadValue(what, text, "one name, or several with a comma between")
    return list(dict.fromkeys(names))


def _is_path(text: str) -> bool:
    try:
        return bool(text) and Path(text).exists()
    except (OSError, ValueError):
        return False


def models(args: Any) -> list[Any]:
    """Each model named, with --attention and --kv-share applied."""
    return [model(name, args) for name in split(args.model, "model")]


def model(name: str, args: Any) -> Any:
    """One model by name or file."""
    from headway import hfconfig

    folders = [root / "models" for root in catalog(args).roots[:-1]]
    base_model = hfconfig.model(name, folders)
    if args.attention or args.kv_share:
        from headway.whatif import override

        return override(base_model, args.attention, args.kv_share)
    return base_model


def systems(args: Any) -> list[tuple[Any, dict[str, Any]]]:
    """Each machine named, with each combination of --set values; the edits that vary stand beside it."""
    from headway.system import system

    machines = [system(name, catalog(args)) for name in split(args.on, "--on")]
    edits = [edit_values(text) for text in args.set]
    combinations = list(itertools.product(*(values for _, values in edits)))
    if len(machines) * len(combinations) > 1000:
        raise BadValue("--set", f"{len(combinations)} combinations", "at most 1000")
    return [edited(machine, [key for key, _ in edits], values) for machine in machines for values in combinations]


def chip(name: str, args: Any) -> Any:
    """One chip, with --set chip.FACT=VALUE applied."""
    from headway.chip import chip as find
    from headway.edit import edit
    from headway.system import system

    machine = system(find(name, catalog(args)).name, catalog(args))
    for key, values in (edit_values(text) for text in args.set):
        machine = edit(machine, key, values[0])
    return machine.chip


def edit_values(text: str) -> tuple[str, tuple[Any, ...]]:
    """`chip.hbm_bw=5TB/s,10TB/s` as its key and its values."""
    from headway import schema
    from headway.edit import editable
    from headway.errors import UnknownName

    key, equals, value = text.partition("=")
    key = key.strip().replace("-", "_")
    if not equals:
        raise BadValue("--set", text, "KEY=VALUE, such as chip.hbm_bw=10TB/s")
    keys = editable()
    if key not in keys:
        raise UnknownName("fact to set", key, keys, "wants chip.FACT or system.FACT, as `headway show` prints them")
    values, _ = schema.axis(value, keys[key], key)
    return key, values if isinstance(values, tuple) else (values,)


def edited(system: Any, keys: list[str], values: tuple[Any, ...]) -> tuple[Any, dict[str, Any]]:
    """A system with edits applied, and the edits by key."""
    from headway.edit import edit

    for key, value in zip(keys, values, strict=True):
        system = edit(system, key, value)
    return system, dict(zip(keys, values, strict=True))


def replaced(table: Any, extra: dict[str, Any]) -> Any:
    """A table with constant columns added: what was varied outside its axes."""
    return dataclasses.replace(table, columns={**table.columns, **extra}) if extra else table

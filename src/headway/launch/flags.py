"""The kept list of an engine's flags: each one seen in a public source, with the values it takes where those are few."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One flag, or one key of the options file, and where it was seen."""

    source: str
    date: str
    values: tuple[str, ...] = ()  # empty: any value of its type


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """What is kept of one engine."""

    name: str
    version: str
    sources: dict[str, str]
    flags: dict[str, Flag]
    keys: dict[str, Flag]  # of the options file, nested ones with dots


@functools.cache
def flags(engine: str) -> Flags:
    """The kept list of `vllm`, `sglang` or `trtllm`."""
    import tomllib

    table = tomllib.loads(files("headway").joinpath(f"data/engines/{engine}.toml").read_text(encoding="utf-8"))
    return Flags(
        name=table["name"],
        version=table["version"],
        sources=table["sources"],
        flags=_read(table["flags"]),
        keys=_read(table.get("keys", {})),
    )


def _read(rows: dict[str, dict]) -> dict[str, Flag]:
    return {name: Flag(source=row["source"], date=row["date"], values=tuple(row.get("values", ()))) for name, row in rows.items()}

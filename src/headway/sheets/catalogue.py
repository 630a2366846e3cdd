"""Price sheets by name: those that ship, the user's folders, a file, or an installed package.

`claude-opus-4.6` is the newest sheet of that model, `claude-opus` the newest of the family, `claude-opus-4.6@2026-02` the one that held
then, `groq/gpt-oss-120b` that of one provider; `prices.json:gpt-5.4` looks in a file, `genai-prices:gpt-5.4` in the package.
"""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Sequence
from pathlib import Path

from headway import facts
from headway.catalog import Catalog, default_catalog, fold
from headway.errors import HeadwayError, UnknownName, clip
from headway.price_sheet import PriceSheet
from headway.sheets.files import SUFFIXES, read_sheets
from headway.sheets.found import Found

GENAI = "genai-prices"
UNDATED = "undated"
SIZE = re.compile(r"a?\d+(\.\d+)?[bmt]|\d+x\d+b")  # 70b, a3b, 8x22b


class AmbiguousSheet(HeadwayError, LookupError):
    """A name that more than one sheet answers to."""

    def __init__(self, name: str, names: Sequence[str]) -> None:
        offers = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        super().__init__(f"price sheet {clip(name)!r} may be {offers}: say which")


def sheets(catalog: Catalog | None = None) -> tuple[PriceSheet, ...]:
    """Every sheet of the catalogue, the oldest first."""
    return _shipped(catalog or default_catalog())


@functools.cache
def _shipped(catalog: Catalog) -> tuple[PriceSheet, ...]:
    from headway.sheets.own import sheets_of

    found = [one for path in catalog.files("sheets").values() for one in sheets_of(facts.read(path), path, "datasheet")]
    return tuple(sorted(found, key=lambda one: (day(one), one.provider, one.model)))


def sheet(name: str, catalog: Catalog | None = None) -> PriceSheet:
    """The one sheet that a name means.

    >>> one = sheet("claude-opus-4.6@2026-02-20")
    >>> one.as_of, one.rates.input, one.tiers[0].above
    ('2026-02', 5e-06, 200000.0)
    >>> sheet("claude-opus").model
    'claude-opus-5.5'
    """
    return find(name, sheets(catalog), "`headway list sheets` shows those that ship")


def read(text: str, catalog: Catalog | None = None) -> Found:
    """What a name or a file means on the command line: a file alone means the newest sheet of each of its models."""
    before, colon, after = text.strip().rpartition(":")
    if colon and (before.lower() == GENAI or Path(before).suffix.lower() in SUFFIXES):
        everything = genai() if before.lower() == GENAI else read_sheets(before)
        return Found(sheets=(find(after, everything.sheets),))
    if Path(text).suffix.lower() in SUFFIXES:
        everything = read_sheets(text)
        return Found(sheets=newest(everything.sheets), notes=everything.notes)
    return Found(sheets=(sheet(text, catalog),))


@functools.cache
def genai() -> Found:
    """Every sheet of the installed genai-prices package."""
    from headway.sheets.genai import read_genai

    return read_genai()


def find(name: str, among: Sequence[PriceSheet], hint: str = "") -> PriceSheet:
    """The one sheet that a name means among these: the newest of the model, else the newest of the family it begins."""
    wanted, at, date = name.strip().partition("@")
    provider, slash, rest = fold(wanted).partition("/")
    own = [one for one in among if fold(one.provider) == provider] if slash else []
    asked = rest if own else fold(wanted)
    candidates = [one for one in own or among if not at or day(one) <= _last(date)]
    exact = [one for one in candidates if fold(one.model) == asked]
    matching = exact or [one for one in candidates if fold(one.model).startswith(asked + "-")]
    if not asked or not matching:
        raise UnknownName("price sheet", name, names(among), _hint(wanted, date, among) if at else hint)
    return _one(name, newest(matching))


def _one(name: str, found: Sequence[PriceSheet]) -> PriceSheet:
    """The newest; of several providers the maker of the model, whose name it bears."""
    makers = [one for one in found if fold(one.model).startswith(fold(one.provider))]
    if len({fold(one.model) for one in found}) == 1 and makers:
        return makers[0]
    last = max(day(one) for one in found)
    best = [one for one in found if day(one) == last]
    if len(best) > 1 or len({fold(one.provider) for one in found}) > 1:
        raise AmbiguousSheet(name, sorted(f"{one.provider}/{one.model}" for one in found))
    return best[0]


def _hint(wanted: str, date: str, among: Sequence[PriceSheet]) -> str:
    dates = [one.as_of for one in among if fold(one.model) == fold(wanted.rpartition("/")[2])]
    return f"nothing as early as {clip(date, 12)}; the first is of {min(dates)}" if dates else "the part after @ is a date"


def newest(among: Sequence[PriceSheet]) -> tuple[PriceSheet, ...]:
    """The last sheet of each model of each provider that holds today; one announced for later only where there is no other."""
    found: dict[tuple[str, str], PriceSheet] = {}
    today = datetime.date.today().isoformat()
    for one in sorted(among, key=day):
        if day(one) <= today or day(found.setdefault((fold(one.provider), fold(one.model)), one)) > today:
            found[fold(one.provider), fold(one.model)] = one
    return tuple(found.values())


def names(among: Sequence[PriceSheet]) -> list[str]:
    """What would work as a name: models, families, and models of a provider."""
    models = {fold(one.model) for one in among}
    begins = {re.split(r"-[a-z]?\d", model)[0] for model in models}
    return sorted(models | begins | {f"{fold(one.provider)}/{fold(one.model)}" for one in among})


def family(one: PriceSheet) -> str:
    """The line of models that one belongs to: its name without version numbers, sizes kept.

    >>> family(sheet("claude-opus")), family(sheet("gpt-5.4")), family(sheet("deepseek-v4-pro")), family(sheet("llama-3.1-8b"))
    ('claude-opus', 'gpt', 'deepseek-v-pro', 'llama-8b')
    """
    parts = fold(one.model).split("-")
    kept = [part if SIZE.fullmatch(part) else re.sub(r"\d+(\.\d+)*$", "", part) for part in parts]
    return "-".join(part for part in kept if part) or fold(one.model)


def version(one: PriceSheet) -> tuple[int, ...]:
    """The numbers of a model's version, to tell the older.

    >>> version(sheet("claude-opus-4.6")), version(sheet("deepseek-v4-pro")), version(sheet("llama-3.1-8b"))
    ((4, 6), (4,), (3, 1))
    """
    parts = [part for part in fold(one.model).split("-") if not SIZE.fullmatch(part)]
    return tuple(int(number) for part in parts for number in re.findall(r"\d+", part))


def day(one: PriceSheet) -> str:
    """What a sheet is ordered by: an undated one comes first."""
    return "" if one.as_of == UNDATED else one.as_of


def _last(date: str) -> str:
    """The latest text that still counts as within a date: all of 2026-02 is."""
    return date.strip() + "~"

"""Price sheets by name: from the package, the user's folders, an installed package, or a file of any known format.

`claude-opus-4.6` is the newest sheet of that model, `claude-opus` the newest of the family, `claude-opus-4.6@2026-02` the sheet valid at
that date, `groq/gpt-oss-120b` a provider's sheet; `prices.json:gpt-5.4` looks in a file, `genai-prices:gpt-5.4` in the package.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from headway.core import catalog as facts
from headway.core import user_file
from headway.core.age import last_day, today
from headway.core.catalog import Catalog, default_catalog, fold, lines
from headway.core.errors import BadFile, HeadwayError, UnknownName, clip
from headway.economics.sheets import genai, litellm, models_dev, schema, table
from headway.economics.sheets.sheet import PriceSheet, SheetTable
from headway.models.config import catalogue_name

SUFFIXES = (".toml", ".json", ".csv")


def read_sheets(path: str | Path) -> schema.SheetMatches:
    """Every price sheet of a TOML, JSON or CSV file in the project's schema, of litellm's price JSON or of models.dev's api.json."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise BadFile(path, f"is no price sheet by its name; wants {', '.join(SUFFIXES)}")
    text = user_file.text_of(path, user_file.SHEETS)
    if suffix == ".csv":
        return schema.SheetMatches(sheets=table.read_table(path, text))
    if suffix == ".json":
        return of_json(path, user_file.json_of(text, path, user_file.SHEETS, constants=False))
    return schema.SheetMatches(sheets=schema.sheets_of(user_file.toml_of(text, path), path))


def of_json(path: Path, document: Any) -> schema.SheetMatches:
    """Sheets of a JSON document in any known format."""
    if isinstance(document, list) and any(isinstance(entry, Mapping) and isinstance(entry.get("models"), list) for entry in document):
        return genai.of_json(document, path)
    if isinstance(document, list):
        document = {"sheets": document}
    if not isinstance(document, Mapping):
        raise BadFile(path, "is no JSON object")
    inner = [entry for entry in document.values() if isinstance(entry, Mapping)]
    if any(isinstance(entry.get("models"), Mapping) for entry in inner):
        return models_dev.sheets_of(document, path)
    if any("litellm_provider" in entry or "input_cost_per_token" in entry for entry in inner):
        return litellm.sheets_of(document, path)
    return schema.SheetMatches(sheets=schema.sheets_of(document, path))


GENAI = "genai-prices"
UNDATED = "undated"
SIZE = re.compile(r"a?\d+(\.\d+)?[bmt]|\d+x\d+b")  # 70b, a3b, 8x22b


class AmbiguousSheet(HeadwayError, LookupError):
    """A name that matches more than one sheet."""

    def __init__(self, name: str, names: Sequence[str]) -> None:
        offers = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        super().__init__(f"price sheet {clip(name)!r} may be {offers}: say which")


def sheets(catalog: Catalog | None = None) -> tuple[PriceSheet, ...]:
    """Every sheet of the catalogue, oldest first."""
    return _sheets_of(catalog or default_catalog())


@functools.cache
def _sheets_of(catalog: Catalog) -> tuple[PriceSheet, ...]:
    price_sheets = [sheet for path in catalog.files("sheets").values() for sheet in _sheets_in(path)]
    return tuple(sorted(price_sheets, key=lambda sheet: (day(sheet), sheet.provider, sheet.model)))


def _sheets_in(path: Path) -> list[PriceSheet]:
    """The sheets of a file of the catalogue, each with its table."""
    home = facts.user_folder()
    at_home = home is not None and home in path.parents
    try:
        document = facts.read(path)
        of_file = schema.sheets_of(document, path, "datasheet")
        last_day(str(document.get("read", "")))
    except HeadwayError as error:
        hint = "; --shipped goes by the tables that ship, headway update writes this one again" if at_home else ""
        raise BadFile(path, f"{str(error).removeprefix(f'{path}: ')}{hint}") from None
    table = SheetTable(
        name=path.stem, packages=str(document.get("packages", "")), read=str(document.get("read", "")),
        ships=facts.PACKAGED in path.parents, at_home=at_home,
    )  # fmt: skip
    return [replace(sheet, table=table) for sheet in of_file]


def sheet(name: str, catalog: Catalog | None = None) -> PriceSheet:
    """The sheet that a name denotes.

    >>> one = sheet("claude-opus-4.6@2026-02-20")
    >>> one.as_of, one.rates.input, one.tiers[0].above
    ('2026-02', 5e-06, 200000.0)
    >>> sheet("claude-opus").model
    'claude-opus-5.5'
    """
    return find(name, sheets(catalog), "`headway list sheets` shows those that ship")


def read(text: str, catalog: Catalog | None = None) -> schema.SheetMatches:
    """Sheets for a name or file on the command line; a file alone gives the newest sheet of each of its models."""
    before, colon, after = text.strip().rpartition(":")
    if colon and (before.lower() == GENAI or Path(before).suffix.lower() in SUFFIXES):
        everything = genai.read_genai() if before.lower() == GENAI else read_sheets(before)
        return schema.SheetMatches(sheets=(find(after, everything.sheets),))
    if Path(text).suffix.lower() in SUFFIXES:
        everything = read_sheets(text)
        return schema.SheetMatches(sheets=newest(everything.sheets), notes=everything.notes)
    return schema.SheetMatches(sheets=(sheet(text, catalog),))


def find(name: str, among: Sequence[PriceSheet], hint: str = "") -> PriceSheet:
    """The sheet that a name denotes among `among`: the newest of the model, else the newest of a family with that name."""
    model_name, at, date = name.strip().partition("@")
    provider, slash, rest = fold(model_name).partition("/")
    of_provider = [sheet for sheet in among if fold(sheet.provider) == provider] if slash else []
    model = rest if of_provider else fold(model_name)
    latest = date.strip() + "~"  # sorts after every digit and dash, so that 2026-02 includes all of its days
    candidates = [sheet for sheet in of_provider or among if not at or day(sheet) <= latest]
    exact = [sheet for sheet in candidates if fold(sheet.model) == model]
    matching = exact or [sheet for sheet in candidates if _is_of(sheet, model)]
    if not model or not matching:
        raise UnknownName("price sheet", name, names(among), _hint(model_name, date, among) if at else hint)
    return _choose_sheet(name, newest(matching))


def whose(name: str, among: Sequence[PriceSheet]) -> tuple[PriceSheet, ...]:
    """Every sheet of a provider, else of a provider's model, else of a model or family, whoever sells it.

    >>> [(one.provider, one.as_of) for one in whose("anthropic/claude-opus-4.6", sheets())]
    [('anthropic', '2026-02'), ('anthropic', '2026-03-13')]
    """
    query = fold(name)
    provider, _, rest = query.partition("/")
    of_provider = [sheet for sheet in among if fold(sheet.provider) == query]
    of_model = [sheet for sheet in among if fold(sheet.provider) == provider and _is_of(sheet, rest)] if rest else []
    return tuple(of_provider or of_model or [sheet for sheet in among if _is_of(sheet, query)])


def _is_of(sheet: PriceSheet, model: str) -> bool:
    """Whether a sheet is of a model, or of a family with that name."""
    return fold(sheet.model) == model or fold(sheet.model).startswith(model + "-")


def model_of(sheet: PriceSheet) -> str:
    """The catalogue's model that a sheet sells, under its own or a commercial name; of one that is not published, the sheet's name.

    >>> model_of(sheet("groq/llama-3.3-70b")), model_of(sheet("qwen3-coder-plus")), model_of(sheet("claude-opus-4.6"))
    ('llama-3.1-70b', 'qwen3-coder-480b-a35b', 'claude-opus-4.6')
    """
    return catalogue_name(_commercial_names().get((fold(sheet.provider), fold(sheet.model)), sheet.model))


@functools.cache
def _commercial_names() -> dict[tuple[str, str], str]:
    return {(tier["provider"], tier["sold"]): tier["model"] for tier in lines("known_ladders.csv")}


def of_model(name: str, among: Sequence[PriceSheet]) -> tuple[PriceSheet, ...]:
    """The newest sheet of each provider that sells a model of the catalogue.

    >>> sorted(one.provider for one in of_model("llama-3.1-70b", sheets())), of_model("qwen3-8b", sheets())
    (['cerebras', 'deepinfra', 'groq'], ())
    """
    return tuple(sheet for sheet in newest(among) if model_of(sheet) == catalogue_name(name))


def _choose_sheet(name: str, matches: Sequence[PriceSheet]) -> PriceSheet:
    """The newest of several sheets of one family; among several providers, the maker whose name the model bears."""
    makers = [sheet for sheet in matches if fold(sheet.model).startswith(fold(sheet.provider))]
    if len({fold(sheet.model) for sheet in matches}) == 1 and makers:
        return makers[0]
    last = max(day(sheet) for sheet in matches)
    best = [sheet for sheet in matches if day(sheet) == last]
    if len(best) > 1 or len({fold(sheet.provider) for sheet in matches}) > 1 or len({family(sheet) for sheet in matches}) > 1:
        raise AmbiguousSheet(name, sorted(f"{sheet.provider}/{sheet.model}" for sheet in matches))
    return best[0]


def _hint(model_name: str, date: str, among: Sequence[PriceSheet]) -> str:
    dates = [sheet.as_of for sheet in among if fold(sheet.model) == fold(model_name.rpartition("/")[2])]
    return f"nothing as early as {clip(date, 12)}; the first is of {min(dates)}" if dates else "the part after @ is a date"


def newest(among: Sequence[PriceSheet]) -> tuple[PriceSheet, ...]:
    """The sheet of each provider's model that is valid today; a sheet announced for later only if there is no other."""
    newest_sheets: dict[tuple[str, str], PriceSheet] = {}
    day_now = today().isoformat()
    for sheet in sorted(among, key=day):
        key = fold(sheet.provider), fold(sheet.model)
        if key not in newest_sheets or day(sheet) <= day_now or day(newest_sheets[key]) > day_now:
            newest_sheets[key] = sheet
    return tuple(newest_sheets.values())


def names(among: Sequence[PriceSheet]) -> list[str]:
    """Valid names of sheets: models, families, and provider/model."""
    models = {fold(sheet.model) for sheet in among}
    begins = {re.split(r"-[a-z]?\d", model)[0] for model in models}
    return sorted(models | begins | {f"{fold(sheet.provider)}/{fold(sheet.model)}" for sheet in among})


def family(sheet: PriceSheet) -> str:
    """The family of a sheet's model: its name without version numbers, but with sizes.

    >>> family(sheet("claude-opus")), family(sheet("gpt-5.4")), family(sheet("deepseek-v4-pro")), family(sheet("llama-3.1-8b"))
    ('claude-opus', 'gpt', 'deepseek-v-pro', 'llama-8b')
    """
    parts = fold(sheet.model).split("-")
    name_parts = [part if SIZE.fullmatch(part) else re.sub(r"\d+(\.\d+)*$", "", part) for part in parts]
    return "-".join(part for part in name_parts if part) or fold(sheet.model)


def version(sheet: PriceSheet) -> tuple[int, ...]:
    """The numbers of a model's version, for sorting.

    >>> version(sheet("claude-opus-4.6")), version(sheet("deepseek-v4-pro")), version(sheet("llama-3.1-8b"))
    ((4, 6), (4,), (3, 1))
    """
    parts = [part for part in fold(sheet.model).split("-") if not SIZE.fullmatch(part)]
    return tuple(int(number) for part in parts for number in re.findall(r"\d+", part))


def day(sheet: PriceSheet) -> str:
    """Sort key of a sheet by date; undated sheets come first."""
    return "" if sheet.as_of == UNDATED else sheet.as_of


def forget() -> None:
    """Read the tables again when they are next asked for."""
    _sheets_of.cache_clear()

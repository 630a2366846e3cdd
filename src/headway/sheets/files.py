"""Price sheets from a file of any known format, told by its suffix and by what is in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headway.errors import BadFile
from headway.sheets.found import SheetMatches

MOST_BYTES = 100_000_000
SUFFIXES = (".toml", ".json", ".csv")


def read_sheets(path: str | Path) -> SheetMatches:
    """Every price sheet of a TOML, JSON or CSV file in the project's schema, of litellm's price JSON or of models.dev's api.json."""
    from headway.sheets import own, table

    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise BadFile(path, f"is no price sheet by its name; wants {', '.join(SUFFIXES)}")
    text = _text(path)
    if suffix == ".csv":
        return SheetMatches(sheets=table.read_table(path, text))
    if suffix == ".json":
        return of_json(path, _json(path, text))
    return SheetMatches(sheets=own.sheets_of(_toml(path, text), path))


def of_json(path: Path, document: Any) -> SheetMatches:
    """Sheets of a JSON document, whoever wrote it."""
    from headway.sheets import litellm, models_dev, own

    if isinstance(document, list):
        document = {"sheets": document}
    if not isinstance(document, Mapping):
        raise BadFile(path, "is no JSON object")
    inner = [entry for entry in document.values() if isinstance(entry, Mapping)]
    if any(isinstance(entry.get("models"), Mapping) for entry in inner):
        return models_dev.sheets_of(document, path)
    if any("litellm_provider" in entry or "input_cost_per_token" in entry for entry in inner):
        return litellm.sheets_of(document, path)
    return SheetMatches(sheets=own.sheets_of(document, path))


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadFile(path, f"is larger than a price file may be ({MOST_BYTES:,} bytes)")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadFile(path, f"cannot be read ({error.strerror or error})") from None
    except UnicodeDecodeError:
        raise BadFile(path, "cannot be read as UTF-8 text") from None
    if not text.strip():
        raise BadFile(path, "is empty")
    return text


def _toml(path: Path, text: str) -> Mapping[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadFile(path, f"is not valid TOML, or cut short: {error}") from None


def _json(path: Path, text: str) -> Any:
    def refuse(word: str) -> Any:
        raise BadFile(path, f"holds {word}, which is no number of JSON")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            names = [key for key, _ in pairs]
            raise BadFile(path, f"{next(key for key in names if names.count(key) > 1)}: stands twice in one object")
        return members

    try:
        return json.loads(text, parse_constant=refuse, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadFile):
            raise
        raise BadFile(path, f"is not valid JSON, or cut short: {error}") from None

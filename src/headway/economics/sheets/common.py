"""Helpers of the readers of third-party price files: rates by threshold as tiers, and counts of dropped entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headway.core.errors import BadFile
from headway.economics.sheets.entry import SheetEntry, SheetMatches
from headway.economics.sheets.schema import sheet_of
from headway.economics.sheets.sheet import PriceSheet

Steps = Mapping[float, Mapping[str, Any]]  # threshold in tokens (0: base rates) -> rates in USD per Mtok


def tiers_of(steps: Steps) -> list[dict[str, Any]]:
    """The tiers above 0 tokens in the schema; a threshold inherits rates that it does not restate."""
    tiers, rates = [], dict(steps[0])
    for above in sorted(steps):
        rates = {**rates, **steps[above]}
        if above:
            tiers.append({"above_tokens": above, "rates": dict(rates)})
    return tiers


def read_all(documents: Sequence[Mapping[str, Any]], path: Path, left_out: Counter[str]) -> SheetMatches:
    """Sheets of documents in the schema; an illegal document is dropped and counted in `left_out` by its first reason."""
    sheets: list[PriceSheet] = []
    wrong: list[str] = []
    for document in documents:
        where = f"{document['provider']}/{document['model']}: "
        try:
            sheets.append(sheet_of(SheetEntry(values=document, path=path, where=where), "datasheet"))
        except BadFile as error:
            wrong.append(str(error).removeprefix(f"{path}: "))
    if not sheets:
        raise BadFile(path, f"holds no price sheet that can be read{' (' + wrong[0] + ')' if wrong else ''}")
    without = ", ".join(f"{count} {why}" for why, count in left_out.items())
    notes = [f"{path}: {len(sheets)} sheets; left out: {without}"] if left_out else []
    notes += [f"{path}: {len(wrong)} entries are not legal and left out, the first: {wrong[0]}"] if wrong else []
    return SheetMatches(sheets=tuple(sheets), notes=tuple(notes))

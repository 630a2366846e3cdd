"""Price sheets from a table (CSV): one line per set of rates, with the columns of the schema.

    model,as_of,currency,input,output,cache_read,cache_write_5min,cache_write_1h,above_tokens,mode,utc
    my-model,2026-11,USD,3,15,0.3,3.75,6,,,
    my-model,2026-11,USD,6,22.5,0.6,7.5,12,200k,,
    my-model,2026-11,USD,1.5,7.5,,,,,batch,

Lines of one provider, model and date make one sheet: the first line is the base, each other line is a context tier, a mode or hours.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from headway.core.errors import BadFile
from headway.economics.sheets.schema import ABOUT, RATES, SheetEntry, sheet_of
from headway.economics.sheets.sheet import PriceSheet

TEXTS = ("provider", "model", "as_of", "source", "kind", "currency", "notes")
WRITE = "cache_write_"
OF_A_MODE = ("ratio", "speed_ratio", "sla_tok_s")
COLUMNS = (*ABOUT, *RATES, "above_tokens", "mode", "utc", *OF_A_MODE)


def read_table(path: Path, text: str) -> tuple[PriceSheet, ...]:
    """Every sheet of a table."""
    lines = csv.DictReader(text.splitlines(), strict=True)
    sheets: dict[tuple[str, ...], dict[str, Any]] = {}
    first: dict[tuple[str, ...], int] = {}
    try:
        header = [name.strip() for name in lines.fieldnames or ()]
        SheetEntry(values=dict.fromkeys(name for name in header if not name.startswith(WRITE)), path=path, where="first line: ").only(
            COLUMNS
        )
        lines.fieldnames = header
        for row in lines:
            line = f"line {lines.line_num}: "
            if None in row or None in row.values():
                raise BadFile(path, f"{line}wants {len(header)} cells, as the first line has: is the file cut short?")
            cells = {key: value.strip() for key, value in row.items() if value.strip()}
            if cells:
                key = tuple(cells.get(name, "") for name in ("provider", "model", "as_of"))
                first.setdefault(key, lines.line_num)
                _add(sheets, key, cells, path, line)
    except csv.Error as error:
        raise BadFile(path, f"line {lines.line_num}: is not CSV ({error})") from None
    if not sheets:
        raise BadFile(path, "holds no price sheet")
    return tuple(sheet_of(SheetEntry(values=values, path=path, where=f"line {first[key]}: ")) for key, values in sheets.items())


def _add(sheets: dict[tuple[str, ...], dict[str, Any]], key: tuple[str, ...], cells: dict[str, str], path: Path, line: str) -> None:
    """Add one line to its sheet."""
    values: dict[str, Any] = {name: _value(name, cells[name]) for name in cells if not name.startswith(WRITE)}
    writes = {name.removeprefix(WRITE): _value(name, cells[name]) for name in cells if name.startswith(WRITE)}
    if writes:
        values["cache_write"] = writes
    parts = [name for name in ("above_tokens", "mode", "utc") if name in values]
    if key not in sheets:
        if parts or any(name in values for name in OF_A_MODE):
            raise BadFile(path, f"{line}{(*parts, *OF_A_MODE)[0]}: stands before the line with the usual rates")
        sheets[key] = values
        return
    sheet, rates = sheets[key], {name: values[name] for name in RATES if name in values}
    if len(parts) != 1:
        sheet_name = " ".join(word for word in key if word)
        raise BadFile(path, f"{line}repeats {sheet_name}; wants one of above_tokens, mode, utc to tell it apart")
    if parts[0] == "mode":
        known = {name: values[name] for name in OF_A_MODE if name in values}
        sheet.setdefault("modes", {})[values["mode"]] = known | ({"rates": rates} if rates else {})
    elif parts[0] == "utc":
        ratio = {"ratio": values["ratio"]} if "ratio" in values else {}
        sheet.setdefault("time_of_day", []).append({"utc": values["utc"]} | ratio | ({"rates": rates} if rates else {}))
    else:
        ratio = {"multiplier": values["ratio"]} if "ratio" in values else {}
        sheet.setdefault("tiers", []).append({"above_tokens": values["above_tokens"]} | ratio | ({"rates": rates} if rates else {}))


def _value(name: str, cell: str) -> Any:
    """A cell as the schema takes it: a number if numeric, else text."""
    if name in TEXTS or name in ("mode", "utc"):
        return cell
    try:
        return float(cell)
    except ValueError:
        return cell

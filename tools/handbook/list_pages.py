"""Catalogue: models, chips, machines, memory tiers and price sheets as the tables that `headway list` prints."""

from __future__ import annotations

from verb_pages import cell

import headway
from headway.core.listing import format_value

SHORT = 24
LISTS = ("models", "chips", "systems", "tiers", "sheets")


def pages() -> dict[str, str]:
    """A page for each list."""
    return {f"reference/{name}.md": page(name) for name in LISTS}


def whole(text: str) -> str:
    """A short cell in one line: a number stays with its unit."""
    return text.replace(" ", "\u00a0") if len(text) <= SHORT else text


def page(name: str) -> str:
    """A list as a table, without the columns that hardly a row has."""
    result = headway.command(f"list {name}")
    rows = result.rows()
    keys = [key for key in rows[0] if sum(row.get(key) not in (None, "") for row in rows) * 4 >= len(rows)]
    units = {key: column.unit for key, column in result.columns.items()}
    head = f"# {name[0].upper()}{name[1:]}\n\n{result.answer}\n\n```console\n$ headway list {name}\n```\n\n"
    table = ["| " + " | ".join(key.replace("_", " ") for key in keys) + " |", "|" + "---|" * len(keys)]
    table += [
        f"| `{row[keys[0]]}` | " + " | ".join(whole(cell(format_value(row.get(key), units.get(key, "")))) for key in keys[1:]) + " |"
        for row in rows
    ]
    return head + "\n".join(table) + "\n"

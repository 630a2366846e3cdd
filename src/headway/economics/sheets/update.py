"""Price tables in the user's folder, made again from the packages that are installed: what would change, and the files written whole.

A package that is older than the one a table was made of is refused: its prices would take the place of newer ones. A table
written by hand stays. What the packages installed do not have stays as the table at hand has it, with its source and version.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.core import catalog as facts
from headway.core.age import last_day, today
from headway.core.errors import BadFile, HeadwayError, MissingExtra
from headway.core.files import save
from headway.core.notes import note
from headway.economics.sheets import catalogue
from headway.economics.sheets.documents import changes
from headway.economics.sheets.packages import VERSIONS, Packages, lines, read_packages, texts
from headway.economics.sheets.schema import sheets_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TableUpdate:
    """One table: what the packages change in it, and its text where anything does."""

    name: str
    path: Path  # in the user's folder
    sheets: int
    changes: tuple[str, ...]  # sheet by sheet
    packages: str
    read: str  # the day on which they were read
    text: str  # "" where the table at hand stays


def update(home: Path, packages: Packages) -> list[TableUpdate]:
    """Each table of the packages as it would stand in the user's folder `home`."""
    at_hand = {name: _at_hand(home, name) for name in dict.fromkeys(line.file for line in lines())}
    tables = {name: table for name, (table, _) in at_hand.items()}
    _refuse_older(packages, tables)
    new = texts(packages, today().isoformat(), tables)
    return [_of_table(name, home / "sheets" / f"{name}.toml", *at_hand[name], text) for name, text in new.items()]


def installed() -> Packages:
    """The packages of prices that are installed; MissingExtra where there is none."""
    packages = read_packages()
    if not packages.versions:
        raise MissingExtra("headway update", "prices")
    return packages


def _at_hand(home: Path, name: str) -> tuple[Mapping[str, Any], bool]:
    """The user's table of a name, else the shipped one, and whether it is in force; a user's that cannot be read is told and made anew."""
    users, ships = home / "sheets" / f"{name}.toml", facts.PACKAGED / "sheets" / f"{name}.toml"
    if not users.is_file():
        return facts.read(ships), True
    try:
        document = facts.read(users)
        sheets_of(document, users)
        last_day(str(document.get("read", "")))
    except HeadwayError as error:
        note(f"{error if isinstance(error, BadFile) else BadFile(users, str(error))}: made anew from the table that ships")
        return facts.read(ships), False
    if not document.get("read"):
        raise BadFile(users, "was written by hand, and would be overwritten: another name for it keeps both")
    is_newer = str(document["read"]) >= str(facts.read(ships).get("read", ""))
    return (document, True) if is_newer else (facts.read(ships), False)


def _refuse_older(packages: Packages, tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise an error for a package that is older than the one that a table was made of."""
    for table in tables.values():
        for name, version in VERSIONS.findall(table.get("packages", "")):
            if name in packages.versions and _numbers(packages.versions[name]) < _numbers(version):
                raise HeadwayError(
                    f"{name} {packages.versions[name]} is older than {version}, from which the prices at hand are: "
                    f"pip install --upgrade {name}"
                )


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _of_table(name: str, path: Path, table: Mapping[str, Any], in_force: bool, text: str) -> TableUpdate:
    """What the new text of a table changes; a table in force of the same sheets and packages stays."""
    document = tomllib.loads(text)
    old, new = sheets_of(table, path), sheets_of(document, path)
    stays = in_force and table["sheets"] == document["sheets"] and table.get("packages") == document["packages"]
    return TableUpdate(
        name=name, path=path, sheets=len(new), changes=tuple(changes(old, new)),
        packages=document["packages"], read=str(table["read"]) if stays else document["read"], text="" if stays else text,
    )  # fmt: skip


def write(tables: list[TableUpdate]) -> list[Path]:
    """Write the tables that changed, each whole; BadFile where one cannot be."""
    paths = []
    for table in tables:
        if table.text:
            save(table.path, table.text, makes_folder=True)
            paths.append(table.path)
    facts.default_catalog.cache_clear()
    catalogue.forget()
    return paths

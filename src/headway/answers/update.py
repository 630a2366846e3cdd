"""`headway update [--check]`: price tables of the user's own, read again from the price packages that are installed here."""

from __future__ import annotations

from headway.core.catalog import user_folder
from headway.core.columns import Column
from headway.core.errors import HeadwayError
from headway.core.listing import Listing
from headway.economics.questions import Update
from headway.economics.sheets.update import installed, update, write
from headway.report import output
from headway.report.update import describe

COLUMNS = {
    "table": Column("", "price table, by provider"),
    "sheets": Column("count", "price sheets in it"),
    "changed": Column("count", "of them those that the packages change, add or no longer have"),
    "changes": Column("", "what changes, sheet by sheet, in USD per million tokens"),
    "packages": Column("", "packages that it is read from, with their versions"),
    "read": Column("", "day on which they were read"),
    "file": Column("", "file of the user's that holds it, or null where the table in force stays"),
}


def run(args: Update) -> output.Answer:
    """Answer with a row for each table."""
    home = user_folder()
    if home is None:
        raise HeadwayError("update: there is no home folder to write to; $XDG_CONFIG_HOME names one")
    packages = installed()
    tables = update(home, packages)
    if not args.check:
        write(tables)
    rows = [
        {
            "table": table.name, "sheets": table.sheets, "changed": len(table.changes), "changes": list(table.changes),
            "packages": table.packages, "read": table.read, "file": str(table.path) if table.text else None,
        }
        for table in tables
    ]  # fmt: skip
    versions = [f"{name} {version}" for name, version in packages.versions.items()]
    return output.Answer(Listing(rows), describe=lambda table: describe(list(table), versions, args.check), columns=COLUMNS)

"""The words of `update`."""

from __future__ import annotations

from collections.abc import Sequence

from headway.report import output
from headway.report.words import Row, sentence

MOST = 40  # changes that are told one by one


def describe(rows: Sequence[Row], versions: Sequence[str], checks: bool) -> output.Summary:
    """How many sheets change and where they go; each change."""
    changes, files = [line for row in rows for line in row["changes"]], [row["file"] for row in rows if row["file"]]
    total, packages = sum(row["sheets"] for row in rows), " and ".join(versions)
    verb, count = "changes" if len(versions) == 1 else "change", len(changes) or "none"
    place = f"; {'to write' if checks else 'written'}: {len(files)} of {len(rows)} tables"
    words = sentence(f"{packages} {verb} {count} of {total} price sheets", place if files else "; a newer package may")
    remarks = [*changes[:MOST], *([f"{len(changes) - MOST} more: -o json has them"] if len(changes) > MOST else [])]
    remarks += ["--shipped in any question goes by the tables that ship; a deleted file does too"] * (not checks and bool(files))
    return output.Summary(words, ("table", "sheets", "changed", "packages", "read", "file"), remarks=remarks)

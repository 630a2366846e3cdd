"""The facts and fits that observations rest on, as one hash: under others they are made anew from their runs."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path

from headway.core.catalog import Catalog
from headway.core.question_files import hash_of

FACTS = (  # of a catalogue's folder, that a prediction of a run reads
    "chips", "systems", "engines", "models", "aliases", "training", "efficiency.toml", "remainder.csv", "evidence.csv", "families.toml",
    "dtypes.toml", "links.toml", "memory_of_chips.toml", "reported_memory.toml", "start_up.toml", "drafts.toml", "gguf.toml", "towers.toml",
)  # fmt: skip


def facts_hash(catalog: Catalog) -> str:
    """Hash of the facts and fits of a catalogue; models, chips and fits of the user's own among them."""
    digest = hashlib.sha256()
    for root in catalog.roots:
        for name in FACTS:
            for path in _files(root / name):
                digest.update(f"{path.relative_to(root)} {_hash(path, path.stat().st_mtime_ns)}\n".encode())
    return digest.hexdigest()


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from (file for file in sorted(path.rglob("*")) if file.is_file())
    elif path.is_file():
        yield path


@functools.lru_cache(maxsize=2048)
def _hash(path: Path, changed_ns: int) -> str:
    """Hash of a file in one state of it."""
    return hash_of(path)

"""The facts and fits that observations rest on, as one hash: under others they are made anew from their runs."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from headway.core.catalog import PACKAGED, Catalog
from headway.core.question_files import hash_of
from headway.performance.calibration.key import RunKey

FITS = ("efficiency.toml", "remainder.csv", "evidence.csv", "training")  # of a catalogue's folder
FACTS = (  # that ship, and that a prediction of a run reads
    *FITS, "chips", "systems", "engines", "models", "aliases", "families.toml", "dtypes.toml", "links.toml", "memory_of_chips.toml",
    "reported_memory.toml", "start_up.toml", "drafts.toml", "gguf.toml", "towers.toml",
)  # fmt: skip


def facts_hash(catalog: Catalog, keys: Iterable[RunKey]) -> str:
    """Hash of the facts that ship, and of the user's own that these deployments rest on: fits, and their models and chips."""
    names = {(kind, name) for key in keys for kind, name in (("chips", key.chip), ("models", key.model))}
    subjects = (catalog.find(kind, name) for kind, name in sorted(names))
    user_files = [path for path in subjects if path is not None and PACKAGED not in path.parents]
    user_files += [path for root in catalog.roots if root != PACKAGED for path in _files(root, FITS)]
    return hashlib.sha256("".join([_packaged(), *(hash_of(path) for path in user_files)]).encode()).hexdigest()


@functools.cache
def _packaged() -> str:
    """Hash of the facts that ship, which do not change while a program runs."""
    lines = [f"{path.relative_to(PACKAGED).as_posix()} {hash_of(path)}" for path in _files(PACKAGED, FACTS)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _files(root: Path, names: Iterable[str]) -> Iterator[Path]:
    for path in (root / name for name in names):
        if path.is_dir():
            yield from (file for file in sorted(path.rglob("*")) if file.is_file())
        elif path.is_file():
            yield path

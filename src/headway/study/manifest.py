"""What a folder of a sweep was made of: questions, headway, the user's own files, and how the chunks are cut. It is written once."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import headway
from headway.core import user_file
from headway.core.age import EPOCH, today
from headway.core.errors import BadFile, HeadwayError
from headway.core.files import write_whole
from headway.core.question_files import hash_of
from headway.study.chunks import SweepCost
from headway.study.store import SUFFIX, room

NAME = "sweep.json"
MANIFEST = user_file.FileKind("the record of a sweep", 64 * user_file.MIB)


@dataclass(frozen=True, slots=True)
class Build:
    """Which headway this is: two that are equal answer equally."""

    version: str
    content: str  # SHA-256 of its facts and its code

    def __str__(self) -> str:
        return f"headway {self.version} (facts and code {self.content[:10]})"


@functools.cache
def build() -> Build:
    """The headway of this process."""
    root, digest = Path(headway.__file__).parent, hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.is_file() and path.suffix not in (".pyc", ".pyi", ".nbi", ".nbc")):
        digest.update(f"{path.relative_to(root).as_posix()} {hash_of(path)}\n".encode())
    return Build(headway.__version__, digest.hexdigest())


@dataclass(frozen=True, slots=True)
class Chunk:
    """Groups `first` up to `last` of a block; its part, relative to the folder."""

    block: int
    first: int
    last: int
    part: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The record of a folder."""

    questions: int
    digest: str  # of the questions
    build: Build
    day: str  # by which every chunk is answered, whenever that is
    files: Mapping[str, str]  # the user's own, by path
    steps: Sequence[int]  # groups a chunk, of each block
    cost: SweepCost

    @property
    def sweep(self) -> str:
        """Name of the sweep in each of its parts."""
        return hashlib.sha256(f"{self.digest} {self.build} {self.day} {sorted(self.files.items())}".encode()).hexdigest()[:16]

    def chunks(self, blocks: Sequence[Any]) -> Iterator[Chunk]:
        """All chunks in the order of the questions."""
        for number, (block, step) in enumerate(zip(blocks, self.steps, strict=True)):
            for first in range(0, block.groups, step):
                name = f"{block.numbers[block.span(first)[0]]:09d}{SUFFIX}"
                yield Chunk(number, first, min(first + step, block.groups), f"{block.verb}/{name}")

    def text(self) -> str:
        """The record as a file, with a hash of itself."""
        record = {"format": 1, **dataclasses.asdict(self)}
        return json.dumps({**record, "hash": _hash(record)}, indent=1) + "\n"


def _hash(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def read(folder: Path) -> Manifest | None:
    """The record of a folder; None of one that is empty or not there."""
    path = folder / NAME
    if not path.is_file():
        try:
            names = [item.name for item in folder.iterdir()] if folder.exists() else []
            names = [name for name in names if name != "locks" and not name.startswith(".")]  # a draft of a killed command, a system's own
        except OSError as error:
            raise BadFile(folder, f"cannot be a folder of answers ({error.strerror})") from None
        if names:
            raise BadFile(folder, f"has files and is no sweep ({names[0]}); --into wants a new folder, or one of this sweep")
        return None
    try:
        record = json.loads(user_file.text_of(path, MANIFEST))
        if record.pop("hash") != _hash(record) or record.pop("format") != 1:
            raise ValueError
        record |= {"build": Build(**record["build"]), "cost": SweepCost(**record["cost"])}
        return Manifest(**record)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadFile(path, "was edited or cut short: nobody knows what its parts are; --into another folder starts anew") from None


def check(folder: Path, record: Manifest, digest: str, files: Mapping[str, str]) -> None:
    """Raise HeadwayError where a folder was made of other questions, another headway, another day or other files of the user's."""
    if record.digest != digest:
        raise HeadwayError(f"{folder}: holds another sweep ({record.questions:,} questions); --into another folder, or the file as it was")
    if record.build != build():
        raise HeadwayError(f"{folder}: made by {record.build}, this is {build()}; --into another folder, so that its rows do not mix")
    if os.environ.get(EPOCH, "").isdecimal() and record.day != today().isoformat():
        raise HeadwayError(f"{folder}: its rows are of {record.day}, ${EPOCH} says {today()}; --into another folder")
    changed = [path for path in {**record.files, **files} if record.files.get(path) != files.get(path)]
    if changed:
        raise HeadwayError(f"{folder}: {changed[0]} is another file than when it began; --into another folder")


def write(folder: Path, manifest: Manifest) -> None:
    """Write the record of a new folder."""
    with room(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / NAME, manifest.text())

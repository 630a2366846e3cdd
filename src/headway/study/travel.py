"""Files of the user's on a worker of another machine: a mirror of their paths, filled by hash, in which a chunk is answered."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from headway.core import user_file
from headway.core.age import today
from headway.core.catalog import user_folder
from headway.core.errors import HeadwayError
from headway.core.files import write_whole
from headway.core.question import Question
from headway.core.question_files import catalogue_files, hash_of
from headway.models import hub

FILE = user_file.FileKind("a file that a worker needs", user_file.GIB)
HOMES = ("HEADWAY_CATALOG", "XDG_CONFIG_HOME", "HF_HUB_CACHE")  # where a process looks for a catalogue of the user's own, for models
_state = [""]  # of the files by which this process last answered


@dataclass(frozen=True, slots=True, kw_only=True)
class Luggage:
    """Where the client stands, its own files by hash, and the bytes of those that a worker lacked."""

    folder: str  # in which the client runs
    homes: Mapping[str, str]
    files: Mapping[str, str]  # absolute path -> SHA-256
    contents: Mapping[str, bytes] = field(default_factory=dict)  # by hash

    def _is_at_home(self) -> bool:
        """Whether this machine has every file at its own path, and no other in the client's catalogue folders."""
        try:
            is_same = Path(self.folder).is_dir() and all(_hash_of(path) == digest for path, digest in self.files.items())
            with _looking(self.homes):
                return is_same and {str(path) for path in catalogue_files(())} <= self.files.keys()
        except (HeadwayError, OSError):
            return False

    def missing(self) -> list[str]:
        """Hashes that neither this machine nor the luggage has."""
        if self._is_at_home():
            return []
        return [digest for digest in set(self.files.values()) if digest not in self.contents and not (_cache() / digest).is_file()]

    def loaded(self, hashes: tuple[str, ...]) -> Luggage:
        """The luggage with the bytes of these hashes."""
        paths = {digest: path for path, digest in self.files.items()}
        return replace(self, contents={digest: user_file.data_of(paths[digest], FILE) for digest in hashes})

    @contextmanager
    def unpacked(self) -> Iterator[Callable[[Question], Question] | None]:
        """Stand where the client stands while the block runs; gives what a question's absolute paths become there."""
        for digest, content in self.contents.items():
            if hashlib.sha256(content).hexdigest() == digest:
                write_whole(_cache() / digest, content)
        at_home = self._is_at_home()
        root = Path() if at_home else self._mirror()
        homes, folder = self.homes, Path.cwd()
        if not at_home:
            parts = {name: [part for part in paths.split(os.pathsep) if part] for name, paths in homes.items()}
            homes = {name: os.pathsep.join(str(_at(root, part)) for part in paths) for name, paths in parts.items()}
        with _looking(homes):
            try:
                os.chdir(self.folder if at_home else _at(root, self.folder))
                self._forget()
                yield None if at_home else lambda question: self._relocated(question, root)
            finally:
                os.chdir(folder)

    def _forget(self) -> None:
        """Drop what this process remembers of the files of another client, or of this one's as they were."""
        state = repr((self.folder, sorted(self.homes.items()), sorted(self.files.items()), today()))
        if state == _state[0]:
            return
        _state[0] = state
        for name, module in list(sys.modules.items()):
            if name.startswith("headway.") and not name.startswith("headway.study."):
                for value in vars(module).values():
                    getattr(value, "cache_clear", lambda: None)()

    def _mirror(self) -> Path:
        """A folder with the client's files at the paths that they have there."""
        root = _cache() / ("mirror-" + hashlib.sha256(repr((self.folder, sorted(self.files.items()))).encode()).hexdigest()[:16])
        for folder in (self.folder, *filter(None, self.homes["HEADWAY_CATALOG"].split(os.pathsep))):
            _at(root, folder).mkdir(parents=True, exist_ok=True)
        for path, digest in self.files.items():
            target = _at(root, path)
            if not target.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                write_whole(target, user_file.data_of(_cache() / digest, FILE))
        return root

    def _relocated(self, question: Question, root: Path) -> Question:
        """The question with each absolute path of the client's at its place in the mirror."""
        paths = sorted({*self.files, *(str(folder) for path in self.files for folder in Path(path).parents if len(folder.parts) > 2)})
        changes = {}
        for name, value in question.entries().items():
            texts = value if isinstance(value, tuple) else (value,)
            replaced = tuple(_replaced(text, paths, root) for text in texts)
            if replaced != texts:
                changes[name] = replaced if isinstance(value, tuple) else replaced[0]
        return question.replace(**changes) if changes else question


def _replaced(text: object, paths: list[str], root: Path) -> object:
    path = next((path for path in reversed(paths) if isinstance(text, str) and path in text), "")
    return text.replace(path, str(_at(root, path))) if path and isinstance(text, str) else text


def _at(root: Path, path: str | Path) -> Path:
    return root / str(path).replace(":", "").lstrip("/\\")


@contextmanager
def _looking(homes: Mapping[str, str]) -> Iterator[None]:
    """Within this block a catalogue of the user's own is looked for in these places."""
    before = {name: os.environ.get(name, "") for name in HOMES}
    try:
        _set(homes)
        yield
    finally:
        _set(before)


def _set(homes: Mapping[str, str]) -> None:
    for name, value in homes.items():
        if value:
            os.environ[name] = value
        else:
            os.environ.pop(name, None)


def _hash_of(path: str) -> str:
    status = Path(path).stat()
    return _hash_in_state(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=4096)
def _hash_in_state(path: str, changed_ns: int, size: int) -> str:
    """The hash of a file in one state of it."""
    return hash_of(Path(path))


def _cache() -> Path:
    """A folder of this user's, for files by their hash."""
    folder = Path(tempfile.gettempdir()) / f"headway-sweep-{os.environ.get('USER') or os.environ.get('USERNAME') or 'user'}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def luggage(files: Mapping[str, str]) -> Luggage:
    """What this client's workers need."""
    home, typed = user_folder(), os.environ.get("HEADWAY_CATALOG", "").split(os.pathsep)
    homes = {
        "HEADWAY_CATALOG": os.pathsep.join(str(Path(part).absolute()) for part in typed if part),
        "XDG_CONFIG_HOME": str((home.parent if home else Path("no home")).absolute()),
        "HF_HUB_CACHE": str((hub.cache() or Path("no home")).absolute()),
    }
    return Luggage(folder=str(Path.cwd()), homes=homes, files={str(Path(path).absolute()): digest for path, digest in files.items()})

"""One client a folder, or one a shard: a file that its process touches, so that a dead process holds nothing.

No lock of the operating system: those of shared disks differ. Each client writes a file of its own, then looks for others that live.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from headway.core import user_file
from headway.core.errors import HeadwayError
from headway.study.store import room

BEAT_S = 5.0
DEAD_S = 60.0  # without a touch, by the clock of the disk
FOLDER = "locks"
HOLDER = user_file.FileKind("the lock of a sweep", 10_000)


class Busy(HeadwayError):
    """A folder on which another client works."""


@dataclass(frozen=True, slots=True)
class Shard:
    """The I-th of N commands that share the chunks."""

    number: int = 1
    count: int = 1

    def takes(self, place: int) -> bool:
        """Whether the chunk at a place is its own."""
        return place % self.count == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


ALL = Shard()


@contextmanager
def hold(folder: Path, shard: Shard) -> Iterator[None]:
    """Hold the folder, or a shard of it, while the block runs; HeadwayError where a client that lives holds it."""
    path = folder / FOLDER / f"{uuid.uuid4().hex}.json"
    with room(folder):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            json.dump({"host": socket.gethostname(), "pid": os.getpid(), "shard": str(shard)}, file)
    stop = threading.Event()
    try:
        _check(path, shard)
        threading.Thread(target=_beat, args=(path, stop), daemon=True).start()
        yield
    finally:
        stop.set()
        with suppress(OSError):
            path.unlink()


def _beat(path: Path, stop: threading.Event) -> None:
    while not stop.wait(BEAT_S):
        with suppress(OSError):
            os.utime(path)


def _check(path: Path, shard: Shard) -> None:
    """Raise HeadwayError for a client that lives and works on the same chunks; remove files of dead ones."""
    now = path.stat().st_mtime  # by the clock of the disk
    for rival in path.parent.glob("*.json"):
        if rival == path:
            continue
        try:
            age, holder = now - rival.stat().st_mtime, json.loads(user_file.data_of(rival, HOLDER) or b"{}")
        except (OSError, HeadwayError, ValueError):
            continue  # gone since, or its first line is on its way: its client will see this one
        if age > DEAD_S or _is_gone(holder):
            with suppress(OSError):
                rival.unlink()
            continue
        both = f"{shard}", holder.get("shard", "1/1")
        apart = both[0] != both[1] and both[0].partition("/")[2] == both[1].partition("/")[2]
        if not apart:
            client = f"process {holder.get('pid')} of {holder.get('host')}"
            part = "" if both[1] == str(ALL) else f" (shard {both[1]})"
            raise Busy(f"{path.parent.parent}: {client} works on it{part}: wait for it, or stop it")


def _is_gone(holder: dict[str, object]) -> bool:
    """Whether the process of a lock has ended on this machine; of another machine nobody knows."""
    pid = holder.get("pid")
    if holder.get("host") != socket.gethostname() or os.name != "posix" or not isinstance(pid, int):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False

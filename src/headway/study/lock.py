"""One client a folder, or one a shard: a file that its process touches, so that a dead process holds nothing.

No lock of the operating system: those of shared disks differ. Each client writes a file of its own, then looks for others that live.
"""

from __future__ import annotations

import functools
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from headway.core import user_file
from headway.core.errors import BadFile, HeadwayError
from headway.study.store import room

BEAT_S = 5.0
LOOK_S = 1.0
DEAD_S = 60.0  # without a touch, by the clock of the disk
FOLDER, TOKEN = "locks", uuid.uuid4().hex
HOLDER = user_file.FileKind("the lock of a sweep", 10_000)


class FolderBusy(HeadwayError):
    """A folder on which another client works."""


@functools.cache
def machine() -> str:
    """What tells apart the places in which a process number means a process: containers may share a host name."""
    with suppress(OSError):
        return f"{Path('/proc/self/ns/pid').readlink()} {Path('/proc/sys/kernel/random/boot_id').read_text(encoding='utf-8').strip()}"
    return f"{socket.gethostname()} {uuid.getnode()}"


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
            json.dump({"host": socket.gethostname(), "machine": machine(), "pid": os.getpid(), "shard": str(shard), "token": TOKEN}, file)
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
    """Raise FolderBusy for a client that lives and works on the same chunks; remove files of dead ones."""
    for rival in path.parent.glob("*.json"):
        if rival != path:
            _outlive(path, rival, shard)


def _outlive(path: Path, rival: Path, shard: Shard) -> None:
    """Raise FolderBusy unless a rival works on other chunks or is dead; of another machine, that it touches its file says that it lives."""
    try:
        holder, first = json.loads(user_file.data_of(rival, HOLDER) or b"{}"), rival.stat().st_mtime
        number, _, count = str(holder.get("shard", ALL)).partition("/")
        if number != str(shard.number) and count == str(shard.count):
            return
        while not _is_gone(holder):
            beat, age = rival.stat().st_mtime, path.stat().st_mtime - rival.stat().st_mtime  # by the clock of the disk
            if age > DEAD_S:
                break
            if beat > first or holder.get("machine") == machine():
                part = "" if f"{number}/{count}" == str(ALL) else f" (shard {number}/{count})"
                client = f"process {holder.get('pid')} of {holder.get('host')}"
                raise FolderBusy(f"{path.parent.parent}: {client} works on it{part}: wait for it, or stop it")
            time.sleep(LOOK_S)
            os.utime(path)
        rival.unlink()
    except (OSError, BadFile, ValueError):
        return  # gone since, or its first line is on its way: its client will see this one


def _is_gone(holder: dict[str, object]) -> bool:
    """Whether the process of a lock has ended on this machine; of another machine nobody knows."""
    pid = holder.get("pid")
    if holder.get("machine") != machine() or os.name != "posix" or not isinstance(pid, int):
        return False
    if pid == os.getpid():
        return holder.get("token") != TOKEN  # a container that is started again has the name and the number of the one before
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False

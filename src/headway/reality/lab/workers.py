"""Worker processes as chips: memory that all of them see, a bell between any two, and jobs that they do at the same time.

They are spawned, never forked, so that every platform runs the same. They end with the process that began them, however it ends.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess, parent_process
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any, Protocol, cast

from headway.core.errors import HeadwayError
from headway.core.units import show

SHARED = Path("/dev/shm")  # of Linux
PATIENCE_S = 5.0  # until a worker that was told to end is ended


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDesk:
    """What a worker works with: its number, the memory of all, its bell to each colleague."""

    rank: int
    memory: memoryview
    bells: Mapping[int, Connection]


class WorkerPart(Protocol):
    """What a worker holds, and does when it is asked; it travels to its worker as a pickle."""

    def run(self, desk: WorkerDesk, request: Any) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A message to a worker: hold this part from now on."""

    part: WorkerPart


@dataclass(slots=True, kw_only=True)
class WorkerGroup:
    """So many workers, beginning with the block and ended with it."""

    count: int
    memory_bytes: int
    processes: list[BaseProcess] = field(default_factory=list)
    controls: list[Connection] = field(default_factory=list)
    segment: SharedMemory | None = None

    def __enter__(self) -> WorkerGroup:
        context = multiprocessing.get_context("spawn")
        try:
            self._check_room()
            self.segment = SharedMemory(create=True, size=self.memory_bytes)
            pairs = {(a, b): context.Pipe() for a in range(self.count) for b in range(a + 1, self.count)}
            with _undisturbed(signal.SIGINT):  # workers are born deaf to Ctrl-C: who began them ends them
                for rank in range(self.count):
                    bells = {sum(pair) - rank: ends[pair.index(rank)] for pair, ends in pairs.items() if rank in pair}
                    control, far_end = context.Pipe()
                    process = context.Process(target=_work, args=(rank, self.segment.name, bells, far_end), daemon=True)
                    process.start()
                    self.processes.append(process)
                    self.controls.append(control)
                    far_end.close()
            for end in (end for ends in pairs.values() for end in ends):
                end.close()  # so that a bell of a worker that ended is heard as such
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with _undisturbed(signal.SIGINT, signal.SIGTERM):
            for control in self.controls:
                control.close()  # which a waiting worker takes as its end
            for process in self.processes:
                process.terminate()
            for process in self.processes:
                process.join(PATIENCE_S)
                if process.is_alive():
                    process.kill()
            if self.segment is not None:
                self.segment.close()
                self.segment.unlink()

    def _check_room(self) -> None:
        """Memory that two processes see has a limit of its own where it is a file system, past which a write ends its process."""
        if SHARED.is_dir() and (free := shutil.disk_usage(SHARED).free) < self.memory_bytes:
            raise HeadwayError(f"{show(self.memory_bytes, 'byte')} of shared memory are more than {SHARED} has free ({show(free, 'byte')})")

    def hold(self, parts: Mapping[int, WorkerPart]) -> None:
        """Give workers their parts."""
        for rank, part in parts.items():
            self.controls[rank].send(Hold(part=part))

    def run(self, requests: Mapping[int, Any]) -> dict[int, Any]:
        """What the parts of some workers make of their requests, all at the same time."""
        for rank, request in requests.items():
            self.controls[rank].send(request)
        answers, waiting = dict[int, Any](), {self.controls[rank]: rank for rank in requests}
        while waiting:
            for control in wait(list(waiting)):
                rank = waiting.pop(control)  # type: ignore[call-overload]
                try:
                    answer = self.controls[rank].recv()
                except (EOFError, ConnectionError):
                    self.processes[rank].join(PATIENCE_S)
                    raise HeadwayError(f"worker {rank} ended (status {self.processes[rank].exitcode})") from None
                if isinstance(answer, HeadwayError):
                    raise answer
                answers[rank] = answer
        return answers


@contextlib.contextmanager
def _undisturbed(*signals: signal.Signals) -> Iterator[None]:
    """Signals that change nothing within this block; only the main thread may say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [(number, signal.signal(number, signal.SIG_IGN)) for number in signals]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def _work(rank: int, name: str, bells: Mapping[int, Connection], control: Connection) -> None:
    """A worker's life: parts and requests, until nobody asks any more."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    segment = SharedMemory(name=name)
    desk = WorkerDesk(rank=rank, memory=cast("memoryview", segment.buf), bells=bells)
    part: WorkerPart | None = None
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            message = control.recv()
            if isinstance(message, Hold):
                part = message.part
            elif part is not None:
                try:
                    answer = part.run(desk, message)
                except (EOFError, ConnectionError):
                    raise
                except Exception as error:
                    answer = HeadwayError(f"worker {rank}: {type(error).__name__}: {error}")
                control.send(answer)
    os._exit(0)  # without a word on memory that its arrays still show


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)

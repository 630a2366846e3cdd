"""Processes of this machine as an executor: they end with the client, whatever ends it, and import no script of the user's."""

from __future__ import annotations

import multiprocessing
import multiprocessing.context as context
import os
import signal
import sys
import threading
import types
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import connection
from typing import Any


class _Process(context.SpawnProcess):
    """A process that starts from an empty main module: a script that calls `sweep` is not run again in each."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = types.ModuleType("__main__")
        try:
            return context.SpawnProcess._Popen(process_obj)  # type: ignore[attr-defined]
        finally:
            sys.modules["__main__"] = main


class _Spawn(context.SpawnContext):
    """Its processes can be ended without waiting for what they do."""

    def __init__(self) -> None:
        super().__init__()
        self.processes: list[_Process] = []

    def Process(self, *args: Any, **settings: Any) -> _Process:  # type: ignore[override]
        process = _Process(*args, **settings)
        self.processes.append(process)
        return process


@contextmanager
def processes(count: int) -> Iterator[Executor]:
    """An executor of so many processes; whatever they still do when the block ends is dropped."""
    spawn = _Spawn()
    executor = ProcessPoolExecutor(count, mp_context=spawn, initializer=_begin)
    try:
        yield executor
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        for process in spawn.processes:
            process.terminate()
        for process in spawn.processes:
            process.join(1)


def _begin() -> None:
    """A worker leaves the interrupt to the client, and ends when the client has."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    client = multiprocessing.parent_process()
    if client is not None:
        threading.Thread(target=_end_with, args=(client.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)

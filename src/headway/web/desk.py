"""The worker processes behind the server: one for questions that answer at once, a few for searches and simulations."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import struct
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import headway

MOST_WAITING = 12  # questions that wait for the light worker
LIGHT_S, HEAVY_S = 10.0, 120.0  # a question is stopped after these
SLOTS = 2  # searches and simulations at a time, over all clients
START_S = 60.0
SPARE_AFTER_S = 1.5  # a worker for searches starts when the first page stands


class Busy(Exception):
    """All places are taken; the asker may come again."""


class Late(Exception):
    """A question took longer than it may."""


@dataclasses.dataclass(slots=True)
class WorkerProcess:
    """A worker with its pipes; `question` is the last question, whose result it still holds."""

    process: asyncio.subprocess.Process
    inward: asyncio.StreamWriter
    outward: asyncio.StreamReader
    question: Any = None

    async def read(self) -> dict[str, Any]:
        """The next frame of the worker; EOFError once it has ended."""
        try:
            head = await self.outward.readexactly(4)
            return json.loads(await self.outward.readexactly(struct.unpack(">I", head)[0]))
        except asyncio.IncompleteReadError:
            raise EOFError from None

    async def send(self, job: Any) -> None:
        """Hand a job over."""
        data = json.dumps(job, allow_nan=False).encode()
        self.inward.write(struct.pack(">I", len(data)) + data)
        await self.inward.drain()

    def end(self) -> None:
        """Stop it at once, whatever it does."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()


async def started() -> WorkerProcess:
    """A worker that is ready for a job."""
    home = str(Path(headway.__file__).parent.parent)
    path = os.pathsep.join(place for place in (home, os.environ.get("PYTHONPATH", "")) if place)
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "headway.web.worker", env=environment, limit=2**26,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    if process.stdin is None or process.stdout is None:
        raise EOFError
    worker = WorkerProcess(process, process.stdin, process.stdout)
    async with asyncio.timeout(START_S):
        await worker.read()
    return worker


class Desk:
    """Hands each question to a worker; refuses what has no place."""

    def __init__(self) -> None:
        self.light = asyncio.Lock()
        self.waiting = 0
        self.light_worker: WorkerProcess | None = None
        self.idle: list[WorkerProcess] = []
        self.running: set[str] = set()  # clients whose search or simulation is under way

    async def open(self) -> None:
        """Start a worker of each kind."""
        async with self.light:
            self.light_worker = await started()
        await asyncio.sleep(SPARE_AFTER_S)
        if not self.idle and not self.running:
            self.idle.append(await started())

    def close(self) -> None:
        """Stop every worker."""
        for worker in [self.light_worker, *self.idle]:
            if worker:
                worker.end()

    async def ask(self, job: Any) -> dict[str, Any]:
        """The answer to a question that answers at once."""
        if self.waiting >= MOST_WAITING:
            raise Busy
        self.waiting += 1
        try:
            async with self.light:
                return await self._ask(job)
        finally:
            self.waiting -= 1

    async def _ask(self, job: Any) -> dict[str, Any]:
        worker = self.light_worker or await started()
        self.light_worker = None  # until it has answered: whoever is cut off leaves no worker in the middle of a job
        try:
            await worker.send(job)
            async with asyncio.timeout(LIGHT_S):
                while "progress" in (message := await worker.read()):
                    pass
        except (TimeoutError, EOFError, OSError, asyncio.CancelledError) as error:
            worker.end()
            if isinstance(error, asyncio.CancelledError):
                raise
            raise Late from None
        self.light_worker = worker
        return message

    @contextmanager
    def place(self, client: str) -> Iterator[None]:
        """A place for one search or simulation: one for a client, SLOTS for all."""
        if client in self.running or len(self.running) >= SLOTS:
            raise Busy
        self.running.add(client)
        try:
            yield
        finally:
            self.running.discard(client)

    async def run(self, job: Any, key: Any) -> AsyncGenerator[dict[str, Any], None]:
        """Progress, then the answer; whoever stops listening stops the work."""
        worker = self._idle(key) or await started()
        is_answered = False
        try:
            worker.question = key
            await worker.send(job)
            end = asyncio.get_running_loop().time() + HEAVY_S
            while not is_answered:
                message = await asyncio.wait_for(worker.read(), end - asyncio.get_running_loop().time())
                is_answered = "progress" not in message
                yield message
        except (TimeoutError, EOFError, OSError):
            yield {
                "error": f"this took longer than {HEAVY_S:g} s, or more memory than a page may take: use the command line",
                "status": 503,
            }
        finally:
            if is_answered and len(self.idle) < SLOTS:
                self.idle.append(worker)
            else:
                worker.end()

    def _idle(self, key: Any) -> WorkerProcess | None:
        """A waiting worker, the one that holds the result of this question if there is one."""
        if not self.idle:
            return None
        at = next((place for place, worker in enumerate(self.idle) if worker.question == key), len(self.idle) - 1)
        return self.idle.pop(at)

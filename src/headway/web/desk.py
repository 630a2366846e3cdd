"""The worker processes behind the server: one for quick questions, a few for slow ones, searches and simulations."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import shutil
import signal
import struct
import sys
import tempfile
from collections.abc import AsyncGenerator, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import headway
from headway.web.turns import QUICK_S, Peer, Turn, Turns

WAIT_S = 20.0  # for a turn
LIGHT_S, HEAVY_S = 10.0, 120.0  # a question is stopped after these
ON_THE_WAY = {"progress", "draft"}  # messages before the answer
SLOTS = 2  # searches and simulations at a time, over all clients
START_S = 60.0
SPARE_AFTER_S = 1.5  # a worker for searches starts when the first page stands


class Busy(Exception):
    """All places are taken; the asker may come again."""

    def __init__(self, text: str = "busy: ask again in a second") -> None:
        super().__init__(text)


class Late(Exception):
    """A question took longer than it may."""

    def __init__(self) -> None:
        super().__init__("this took too long for a page: use the command line")


@dataclasses.dataclass(frozen=True, slots=True)
class Frame:
    """What a worker said: JSON, which goes on to the page as it is."""

    data: bytes

    @property
    def kind(self) -> str:
        """Its first key: of an answer, of what is on the way to it, or of what went wrong."""
        return self.data[2 : self.data.index(b'"', 2)].decode()

    @property
    def answer(self) -> bytes:
        """The JSON behind its only key."""
        return self.data[self.data.index(b":") + 1 : -1]


@dataclasses.dataclass(slots=True, eq=False)
class WorkerProcess:
    """A worker with its pipes; `question` is the last question, whose result it still holds."""

    process: asyncio.subprocess.Process
    inward: asyncio.StreamWriter
    outward: asyncio.StreamReader
    question: Any = None

    async def read(self) -> Frame:
        """The next frame of the worker; EOFError once it has ended."""
        try:
            head = await self.outward.readexactly(4)
            return Frame(await self.outward.readexactly(struct.unpack(">I", head)[0]))
        except asyncio.IncompleteReadError:
            raise EOFError from None

    async def answer(self) -> Frame:
        """The frame after those on the way to it."""
        while (frame := await self.read()).kind in ON_THE_WAY:
            pass
        return frame

    async def send(self, job: Any) -> None:
        """Hand a job over."""
        data = json.dumps(job, allow_nan=False).encode()
        self.inward.write(struct.pack(">I", len(data)) + data)
        await self.inward.drain()

    def end(self) -> None:
        """Stop it at once, whatever it does, and the processes that measure for it."""
        with contextlib.suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGTERM)  # which spares the process that clears away shared memory
            self.process.kill()


async def started(folder: str) -> WorkerProcess:
    """A worker that is ready for a job; it works in a folder of its own within `folder`, and loads no code from where the server stands."""
    home = str(Path(headway.__file__).parent.parent)
    path = os.pathsep.join(place for place in (home, os.environ.get("PYTHONPATH", "")) if place)
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "headway.web.worker", folder, env=environment, limit=2**26,
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
        self.turns = Turns(has_reserve=lambda: bool(self.idle))
        self.tasks: set[asyncio.Task[Any]] = set()
        self.quick_worker: WorkerProcess | None = None
        self.idle: list[WorkerProcess] = []
        self.working: set[WorkerProcess] = set()
        self.waiting: list[asyncio.Future[WorkerProcess]] = []
        self.starting = 0
        self.running: set[str] = set()  # clients whose search or simulation is under way
        self.folder = ""  # where workers have theirs; none where nothing can be written
        self.is_ready, self.is_closed = asyncio.Event(), False

    async def warm(self) -> None:
        """Start a worker of each kind."""
        with contextlib.suppress(OSError):
            self.folder = tempfile.mkdtemp(prefix="headway-web-")
        try:
            self.quick_worker = await started(self.folder)
        finally:
            self.is_ready.set()
        await asyncio.sleep(SPARE_AFTER_S)
        self._start_spare()

    def close(self) -> None:
        """Stop every worker."""
        self.is_closed = True
        for worker in [self.quick_worker, *self.idle, *self.working]:
            if worker:
                worker.end()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, worker: WorkerProcess) -> None:
        """Stop a worker in the middle of a job."""
        worker.end()
        self.working.discard(worker)
        self._start_spare()

    def _start_spare(self) -> None:
        """Start workers for those who want one, or one to rest."""
        async def spare() -> None:
            try:
                worker = await started(self.folder)
            except (EOFError, OSError, TimeoutError):
                return
            finally:
                self.starting -= 1
            self._rest(worker)

        if not self.is_closed and self.starting < max(len(self.waiting), not self.idle):
            self.starting += 1
            self._beside(spare())

    def _rest(self, worker: WorkerProcess, turn: Turn | None = None) -> None:
        """A worker without a job: for whoever wants one, else it waits."""
        self.working.discard(worker)
        while self.waiting and (rested := self.waiting.pop(0)):
            if not rested.done():
                rested.set_result(worker)
                return
        if turn and not turn.is_slow and self.quick_worker is None:
            self.quick_worker = worker
        elif len(self.idle) < SLOTS and not self.is_closed:
            self.idle.append(worker)
            self.turns.grant()
        else:
            worker.end()

    async def ask(self, job: Any, peer: Peer = ("", "")) -> Frame:
        """The answer to a question that answers at once; Busy where its turn does not come, Late where it takes too long."""
        turn = self.turns.enter(peer, json.dumps(job, sort_keys=True))
        message = None
        while message is None:
            try:
                async with asyncio.timeout(WAIT_S):
                    is_sent_away = not await turn.granted
            except (TimeoutError, asyncio.CancelledError) as error:
                self.turns.leave(turn)
                raise (Busy if isinstance(error, TimeoutError) else error) from None
            if is_sent_away:
                raise Busy
            try:  # an asker who leaves stops no worker in the middle of a job: a new one would cost more than the rest of the answer
                message = await asyncio.shield(self._beside(self._answered(turn, job)))
            except asyncio.CancelledError:
                turn.is_left = True
                raise
        return message

    def _beside(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Work that goes on whoever waits for it."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # told to who waits, if anybody does
        return task

    async def _answered(self, turn: Turn, job: Any) -> Frame | None:
        """What a worker answers; None where the question has to wait for a place among the slow ones."""
        worker = message = None
        start = asyncio.get_running_loop().time()
        try:
            worker = await self._worker(turn)
            start = asyncio.get_running_loop().time()
            await worker.send(job)
            message = await self._message(turn, worker)
        except (TimeoutError, EOFError, OSError):
            raise Late from None
        finally:
            if worker and message:
                self._rest(worker, turn)
            elif worker:
                self._end(worker)
            self.turns.charge(turn, asyncio.get_running_loop().time() - start, message is not None)
            if turn.is_left or turn not in self.turns.waiting:
                self.turns.leave(turn)
        return message

    async def _worker(self, turn: Turn) -> WorkerProcess:
        """A worker that rests, or the first that comes to rest; a slow question leaves one for quick ones, whose answer cannot wait."""
        await self.is_ready.wait()
        worker = None
        if not turn.is_slow:
            worker, self.quick_worker = self.quick_worker, None
        if worker is None and len(self.idle) > (turn.is_slow and self.quick_worker is None):
            worker = self.idle.pop()
        if worker is None:
            rested: asyncio.Future[WorkerProcess] = asyncio.get_running_loop().create_future()
            self.waiting.insert(len(self.waiting) if turn.is_slow else 0, rested)
            self._start_spare()
            worker = await asyncio.wait_for(rested, START_S)
        self.working.add(worker)
        self._start_spare()  # ready before it is wanted
        return worker

    async def _message(self, turn: Turn, worker: WorkerProcess) -> Frame | None:
        answer = asyncio.ensure_future(worker.answer())
        try:
            if not turn.is_slow:
                await asyncio.wait({answer}, timeout=QUICK_S)
                if not answer.done() and not self.turns.goes_on_slowly(turn):
                    return None
            return await asyncio.wait_for(answer, LIGHT_S)
        finally:
            answer.cancel()

    @contextmanager
    def place(self, client: str) -> Iterator[None]:
        """A place for one search or simulation: one for a client, SLOTS for all."""
        if client in self.running or len(self.running) >= SLOTS:
            raise Busy("a run is under way: cancel it, or ask again in a second")
        self.running.add(client)
        try:
            yield
        finally:
            self.running.discard(client)

    async def run(self, job: Any, key: Any) -> AsyncGenerator[Frame, None]:
        """Progress, then the answer; whoever stops listening stops the work."""
        at = next((place for place, worker in enumerate(self.idle) if worker.question == key), -1)  # which holds the result already
        worker = self.idle.pop(at) if self.idle else await started(self.folder)
        self.working.add(worker)
        is_answered = False
        try:
            worker.question = key
            await worker.send(job)
            end = asyncio.get_running_loop().time() + HEAVY_S
            while not is_answered:
                frame = await asyncio.wait_for(worker.read(), end - asyncio.get_running_loop().time())
                is_answered = frame.kind not in ON_THE_WAY
                yield frame
        except (TimeoutError, EOFError, OSError):
            text = f"this took longer than {HEAVY_S:g} s, or more memory than a page may take: use the command line"
            yield Frame(json.dumps({"error": text, "status": 503}).encode())
        finally:
            if is_answered:
                self._rest(worker)
            else:
                self._end(worker)

"""Chunks through an executor, a few at a time: the client holds no more of them than its workers do."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import Any

from headway.core.errors import HeadwayError
from headway.study import worker
from headway.study.columns import ERROR, QUESTION, Gathering
from headway.study.worker import AnsweredChunk, Job, Lack

DEATHS = 2  # of workers alone with one question, from which it has no answer
MOST_DEATHS = 100  # in one group, from which nothing that is left of it has
DIED = "its worker died, perhaps for want of memory"


class Workers:
    """An executor that is opened anew when its workers die, and how many jobs it has at a time."""

    def __init__(
        self, open_executor: Callable[[], AbstractContextManager[Executor]], count: int, place: str,
        deadly: tuple[type[BaseException], ...] = (), close: Callable[[], object] | None = None,
    ) -> None:  # fmt: skip
        self.open_executor, self.count, self.place, self.close = open_executor, count, place, close
        self.deadly = (BrokenExecutor, *deadly)  # what a job ends with whose worker died
        self._stack, self._executor = ExitStack(), None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()
        if self.close:
            self.close()

    def submit(self, job: Job) -> Future[AnsweredChunk | Lack]:
        """Hand a job to a worker."""
        if self._executor is None:
            self._executor = self._stack.enter_context(self.open_executor())
        try:
            return self._executor.submit(worker.answer, job)
        except BrokenExecutor as error:
            future = Future[AnsweredChunk | Lack]()
            future.set_exception(error)
            return future

    def result(self, future: Future[AnsweredChunk | Lack]) -> AnsweredChunk | Lack | None:
        """What a job has come to; None where its worker died."""
        try:
            return future.result()
        except self.deadly:
            return None
        except (OSError, CancelledError) as error:
            why = str(error) or type(error).__name__
            raise HeadwayError(f"no more word from {self.place} ({why}): every finished chunk is there, the same command goes on") from None

    def drop(self) -> None:
        """Leave an executor whose workers have died."""
        self._stack.close()
        self._executor = None


def parts(jobs: Iterable[Job], workers: Workers) -> Iterator[tuple[Job, AnsweredChunk]]:
    """The part of each job, as they come; what a dead worker had is asked again."""
    rest, again = iter(jobs), deque[Job]()
    running: dict[Future[AnsweredChunk | Lack], Job] = {}
    while True:
        while len(running) < (1 if again else 2 * workers.count):  # after a death one at a time: then the job at fault is known
            job = again.popleft() if again else next(rest, None)
            if job is None:
                break
            running[workers.submit(job)] = job
        if not running:
            return
        lost = list[Job]()
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            job, result = running.pop(future), workers.result(future)
            if result is None:
                lost.append(job)
            elif isinstance(result, Lack):
                running[workers.submit(_loaded(job, result))] = job
            else:
                yield job, result
        if lost:
            is_alone = len(lost) == 1 and not running
            again.extend([*lost, *running.values()])
            running.clear()
            workers.drop()
            if is_alone:
                job = again.pop()
                yield job, _one_by_one(job, workers)


def _loaded(job: Job, lack: Lack) -> Job:
    """A job with the bytes that a worker lacks."""
    return job if job.luggage is None else replace(job, luggage=job.luggage.loaded(lack.hashes))


def _one_by_one(job: Job, workers: Workers) -> AnsweredChunk:
    """The part of a job whose worker died alone with it: group by group, those that no worker survives without an answer."""
    return _joined(job, [_survivor(replace(job, first=group, last=group + 1), workers) for group in range(job.first, job.last)])


def _survivor(job: Job, workers: Workers) -> AnsweredChunk:
    """The part of one group: where its worker dies that of its halves, down to the questions at fault."""
    parts, pieces, deaths = list[AnsweredChunk](), [job], 0
    while pieces:
        piece = pieces.pop()
        places = [place for group in range(piece.first, piece.last) for place in piece.block.span(group)]
        for _ in range(DEATHS if len(places) == 1 else 1):
            result = workers.result(workers.submit(piece)) if deaths < MOST_DEATHS else None
            if isinstance(result, Lack):
                result = workers.result(workers.submit(_loaded(piece, result)))
            if isinstance(result, AnsweredChunk):
                parts.append(result)
                break
            workers.drop()
            deaths += 1
        else:
            if len(places) == 1 or deaths >= MOST_DEATHS:
                parts.append(_without_answer(piece, places))
            else:
                pieces += [_of_places(piece, places[len(places) // 2 :]), _of_places(piece, places[: len(places) // 2])]
    return _joined(job, parts)


def _of_places(job: Job, places: list[int]) -> Job:
    """Some questions of a job, each by a call of its own."""
    lines, numbers = [job.block.differing(place) for place in places], [job.block.numbers[place] for place in places]
    return replace(job, block=replace(job.block, axes={}, fused=(), lines=lines, numbers=numbers), first=0, last=len(places))


def _without_answer(job: Job, places: list[int]) -> AnsweredChunk:
    gathering = Gathering()
    for place in places:
        gathering.add([{QUESTION: job.block.numbers[place], ERROR: DIED} | worker.inputs(job.block.differing(place))])
    return worker.part_of(gathering.table(), job, len(places), len(places), 0.0)


def _joined(job: Job, parts: list[AnsweredChunk]) -> AnsweredChunk:
    from pyarrow import parquet

    gathering = Gathering()
    gathering.tables = [parquet.ParquetFile(io.BytesIO(part.data)).read() for part in parts]
    questions, failed = sum(part.questions for part in parts), sum(part.failed for part in parts)
    return worker.part_of(gathering.table(), job, questions, failed, sum(part.seconds for part in parts))

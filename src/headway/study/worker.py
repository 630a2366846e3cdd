"""What a worker does: answers the questions of one chunk and returns their rows as the bytes of a Parquet file."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.answers.asked import calibrated
from headway.core.age import on_day
from headway.core.errors import HeadwayError
from headway.core.notes import noted
from headway.core.question import refuse_idle
from headway.core.table import Table
from headway.report import output
from headway.study import store
from headway.study.columns import ERROR, INPUT, LARGE, QUESTION, Gathering, array, arrow
from headway.study.grid import QuestionBlock
from headway.study.manifest import Build, build
from headway.study.travel import Luggage

_warm = set[str]()  # verbs that this process has answered
_turn = threading.Lock()  # a process answers one chunk at a time: the folder in which it works is one


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One chunk: groups of a block, by numbers within `block`, and what a worker must be like to answer them."""

    name: str  # of its part
    block: QuestionBlock
    first: int
    last: int
    sweep: str
    build: Build
    day: str
    luggage: Luggage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredChunk:
    """Rows of one chunk, and what they took."""

    data: bytes
    questions: int
    rows: int
    failed: int
    seconds: float
    is_warm: bool  # whether its worker had answered the verb before


@dataclass(frozen=True, slots=True)
class Lack:
    """What a worker answers that has not the files of a job: the bytes of these hashes must come with it."""

    hashes: tuple[str, ...]


class WrongWorker(HeadwayError):
    """A worker whose headway is another one."""


def answer(job: Job) -> AnsweredChunk | Lack:
    """Answer the questions of a job."""
    if build() != job.build:
        raise WrongWorker(f"a worker has {build()}, this command {job.build}: install the same on both, and start the workers again")
    with _turn, on_day(job.day):
        if job.luggage is None:
            return _answer(job)
        missing = job.luggage.missing()
        if missing:
            return Lack(tuple(missing))
        with job.luggage.unpacked() as rewritten:
            return _answer(job, rewritten)


def _answer(job: Job, rewritten: Any = None) -> AnsweredChunk:
    began, gathering, failed, questions = time.perf_counter(), Gathering(), 0, 0
    for group in range(job.first, job.last):
        span = job.block.span(group)
        questions += len(span)
        if len(span) == 1 or not _fused(job.block, group, gathering, rewritten):
            for place in span:
                failed += not _alone(job.block, place, gathering, rewritten)
    return part_of(gathering.table(), job, questions, failed, time.perf_counter() - began)


def part_of(table: Any, job: Job, questions: int, failed: int, seconds: float) -> AnsweredChunk:
    """The part with these rows."""
    about = {"sweep": job.sweep, "questions": questions, "rows": table.num_rows, "failed": failed, "seconds": round(seconds, 3)}
    is_warm = job.block.verb in _warm
    _warm.add(job.block.verb)
    data = store.encoded(table, about)
    return AnsweredChunk(data=data, questions=questions, rows=table.num_rows, failed=failed, seconds=seconds, is_warm=is_warm)


def _reply(block: QuestionBlock, differing: Mapping[str, Any], rewritten: Any) -> output.Answer:
    question = block.question(differing)
    question = rewritten(question) if rewritten else question
    with noted():
        refuse_idle(question)
        return calibrated(question)


def _alone(block: QuestionBlock, place: int, gathering: Gathering, rewritten: Any) -> bool:
    """Add the rows of one question, or the row that says why it has none; whether it has some."""
    differing = block.differing(place)
    lead = {QUESTION: block.numbers[place], ERROR: None} | inputs(differing)
    try:
        answer = _reply(block, differing, rewritten)
        if not len(answer.rows):
            output.describe(answer)
            raise HeadwayError(answer.words.headline)
    except HeadwayError as error:
        reason = " ".join(str(error).split())
    except MemoryError:
        reason = "it does not fit in memory: ask for fewer values"
    except Exception as error:  # a bug of one question must not cost the others
        reason = f"internal error, please report it ({type(error).__name__}: {error})"
    else:
        rows = answer.rows
        if isinstance(rows, Table) and len(rows) >= LARGE:
            gathering.add_table({key: _spread(value, len(rows)) for key, value in lead.items()}, rows)
        else:
            gathering.add(lead | row for row in rows)
        return True
    gathering.add([lead | {ERROR: reason}])
    return False


def _fused(block: QuestionBlock, group: int, gathering: Gathering, rewritten: Any) -> bool:
    """Add the rows of a group by one call over arrays; whether it could."""
    span, axes = block.span(group), block.shared_axes(group)
    first = block.differing(span[0])
    try:
        rows = _reply(block, first | {name: list(axis) for name, axis in axes.items()}, rewritten).rows
    except (HeadwayError, MemoryError):
        return False
    if not isinstance(rows, Table) or rows.pick is not None:
        return False
    places = {axis.name: place for place, axis in enumerate(rows.axes)}
    if any(name not in places or len(rows.axes[places[name]].values) != len(axis) for name, axis in axes.items()):
        return False
    front = [places[name] for name in axes]
    order = np.moveaxis(np.arange(len(rows)).reshape(rows.grid), front, range(len(front))).reshape(-1)
    repeat = len(rows) // len(span)
    lead: dict[str, Any] = {QUESTION: np.repeat(np.arange(block.numbers[span[0]], block.numbers[span[0]] + len(span)), repeat)}
    lead[ERROR] = None
    inner = len(span)
    for name, value in inputs(first).items():
        if name.removeprefix(INPUT) not in axes:
            lead[name] = value
            continue
        members = axes[name.removeprefix(INPUT)]
        inner //= len(members)
        places = np.tile(np.repeat(np.arange(len(members)), inner * repeat), len(span) // inner // len(members))
        lead[name] = array(members).take(arrow().array(places))
    gathering.add_table({key: _spread(value, len(rows)) for key, value in lead.items()}, rows.take(order))
    return True


def _spread(value: Any, count: int) -> Any:
    if isinstance(value, arrow().Array):
        return value
    return arrow().array(value) if isinstance(value, np.ndarray) else array([value]).take(arrow().array(np.zeros(count, dtype=np.int64)))


def inputs(differing: Mapping[str, Any]) -> dict[str, Any]:
    """Values that differ between questions, as columns: numbers and texts as the file has them, of objects their names."""
    plain = (str, bool, int, float)
    return {INPUT + name: value if isinstance(value, plain) else getattr(value, "name", str(value)) for name, value in differing.items()}

"""A worker process: answers questions that arrive on its standard input, one after another, until that closes.

Frames on both pipes: four bytes of length, then JSON. Work runs here so that a question that takes too long, or whose asker has left, ends
with its process, and the server never computes.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import json
import os
import select
import shlex
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from headway.cli.command import command
from headway.core.catalog import names_alone
from headway.core.errors import BadValue, HeadwayError
from headway.core.progress import watched
from headway.performance.calibration.profile import KIND
from headway.report.result import Result
from headway.web import board, single_file
from headway.web.question import PROFILE, PageQuestion, check_size, question
from headway.web.reply import explanation, reply

MOST_RESULTS = 2  # results that numbers of the page can still be explained from
LEAST_PAUSE_S = 0.1  # between two messages of progress
DRAFT_PAUSE_S = 1.0  # between two drafts of an answer
OWN_CATALOGUE = Path("catalogue")  # in the worker's folder: of a profile that came with a question
MOST_MEMORY = 8 << 30  # bytes of address space
FIRST = ("numpy", "headway.web.permitted", "headway.answers.serve", "headway.report.layout_pictures")  # what most answers need
LATER = ("headway.answers.plan", "headway.answers.lecture", "headway.web.drawings")  # what others need, loaded when nobody waits
SOON_S = 1.0


def write_frame(pipe: BinaryIO, message: Any) -> None:
    """Write one frame; the page reads what is in it."""
    data = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
    pipe.write(struct.pack(">I", len(data)) + data)
    pipe.flush()


def read_frame(pipe: BinaryIO) -> Any:
    """One frame; None at the end of the pipe."""
    head = pipe.read(4)
    return json.loads(pipe.read(struct.unpack(">I", head)[0])) if len(head) == 4 else None


class Worker:
    """Answers jobs, and keeps the last results so that their numbers can be explained without running again."""

    def __init__(self, pipe: BinaryIO, has_folder: bool) -> None:
        self.pipe, self.has_folder = pipe, has_folder
        self.results: collections.OrderedDict[Any, Any] = collections.OrderedDict()

    def answer(self, job: dict[str, Any]) -> Any:
        """The answer to a job: of the blackboard, or of a question."""
        if job["kind"] != "ask":
            return board.answer(job["kind"], job["query"])
        query = question(job["query"])
        result = self._result(query)
        if query.explain:
            return explanation(query.explain, result)
        answer = reply(query, result)
        if "file" in query.parts:  # of a chip with its edits, or of own runs
            document = result._answer.documents.get("toml")
            if document is None:
                raise BadValue("parts", "file", "a chip (show chip NAME), or runs of your own (calibrate)")
            answer["file"] = document()
        if "html" in query.parts:
            answer["html"] = single_file.document(answer)
        return answer

    def _result(self, query: PageQuestion) -> Any:
        if query.key not in self.results:
            check_size(query)
            if query.uploads and not self.has_folder:
                raise HeadwayError("a dropped file cannot be read, since no folder for it can be written: set TMPDIR")
            with watched(self._progress(), reader=self._drafts(query)), _uploaded(query):
                self.results[query.key] = command(shlex.join(query.argv()))
        self.results.move_to_end(query.key)
        while len(self.results) > MOST_RESULTS:
            self.results.popitem(last=False)
        return self.results[query.key]

    def _progress(self) -> Callable[[int, int], None]:
        count_done = expected = 0
        spoken = 0.0

        def listen(count: int, more: int) -> None:
            nonlocal count_done, expected, spoken
            count_done, expected = count_done + count, expected + more
            if time.monotonic() - spoken > LEAST_PAUSE_S:
                spoken = time.monotonic()
                write_frame(self.pipe, {"progress": [count_done, max(expected, count_done)]})

        return listen


    def _drafts(self, query: PageQuestion) -> Callable[[Callable[[], Any]], None]:
        """Whoever asked sees the answer as it grows."""
        spoken = 0.0
        growing = dataclasses.replace(query, parts=tuple(part for part in ("answer", "table", "pictures") if part in query.parts))

        def read(make: Callable[[], Any]) -> None:
            nonlocal spoken
            if time.monotonic() - spoken > DRAFT_PAUSE_S:
                write_frame(self.pipe, {"draft": reply(growing, Result(make(), ["headway", *query.argv()]))})
                spoken = time.monotonic()

        return read


@contextlib.contextmanager
def _uploaded(query: PageQuestion) -> Iterator[None]:
    """Dropped files under their own names in the worker's folder while the question runs; models that they name are the catalogue's."""
    paths = [(OWN_CATALOGUE / KIND if file.tool == PROFILE else Path()) / file.name for file in query.uploads]
    token = names_alone.set(True)
    try:
        for path, file in zip(paths, query.uploads, strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.text, encoding="utf-8")
        yield
    finally:
        names_alone.reset(token)
        for path in paths:
            path.unlink(missing_ok=True)


def one_line(error: BaseException) -> str:
    """What went wrong, in one line."""
    if isinstance(error, HeadwayError):
        return " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return "this question does not fit in memory: ask for fewer values"
    return f"internal error, please report it ({type(error).__name__}: {error})"


def serve(inward: BinaryIO, outward: BinaryIO, has_folder: bool) -> None:
    """Answer jobs until the pipe closes; `has_folder`: the present folder is empty and only this worker's."""
    worker = Worker(outward, has_folder)
    write_frame(outward, {"ready": True})
    if not _comes_soon(inward):
        _load(LATER)
    while (job := read_frame(inward)) is not None:
        try:
            write_frame(outward, {"answer": worker.answer(job)})
        except HeadwayError as error:
            write_frame(outward, {"error": one_line(error), "status": 422})
        except (Exception, RecursionError) as error:
            write_frame(outward, {"error": one_line(error), "status": 500})
        _load(LATER)  # while the first answer is read


def _load(modules: Sequence[str]) -> None:
    for module in modules:
        __import__(module)


def _comes_soon(inward: BinaryIO) -> bool:
    """Whether a first job comes before there is time for more than it needs."""
    try:
        return bool(select.select([inward], [], [], SOON_S)[0])
    except OSError:  # where a pipe cannot be waited for
        return False


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # where the system has no such limit
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


def main() -> None:
    """Take the two pipes for frames, leave nothing for a verb to print to or read from, and serve."""
    inward, outward = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123 -- for as long as the process lives
    sys.stdout = sys.stderr
    sys.path = [str(Path(place).absolute()) for place in sys.path]
    folders = [str(Path(folder).absolute()) for folder in os.environ.get("HEADWAY_CATALOG", "").split(os.pathsep) if folder]
    os.environ["HEADWAY_CATALOG"] = os.pathsep.join(folders)
    _limit_memory()
    _load(FIRST)
    server_folder = sys.argv[1]
    with tempfile.TemporaryDirectory(dir=server_folder) if server_folder else contextlib.nullcontext() as folder:
        os.chdir(folder or os.sep)
        if folder:
            OWN_CATALOGUE.mkdir()
            os.environ["HEADWAY_CATALOG"] = os.pathsep.join([str(OWN_CATALOGUE.absolute()), *folders])
        with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
            serve(inward, outward, folder is not None)
        os.chdir(os.sep)
    with contextlib.suppress(OSError):  # others work in it
        Path(server_folder or os.devnull).rmdir()


if __name__ == "__main__":
    main()

"""A study on its way into a folder: chunks cut, answered, settled, told."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.core.age import today
from headway.core.listing import Listing
from headway.core.progress import expect, tell, tick
from headway.core.question_files import hash_of
from headway.report import output
from headway.report import sweep as words
from headway.study import chunks, lock, manifest, run, store
from headway.study.chunks import GroupCost
from headway.study.columns import ERROR, INPUT, QUESTION
from headway.study.file import Study
from headway.study.lock import Shard
from headway.study.manifest import Chunk, Manifest
from headway.study.run import Workers
from headway.study.travel import Luggage
from headway.study.worker import AnsweredChunk, Job

INCOMPLETE = 3  # exit status where questions have no answer
FAILURES = 5  # that are printed
LONG_S = 60.0  # a first question that takes longer, with all that loads at first use, is timed once


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweeping:
    """What one command does."""

    study: Study
    folder: Path
    shard: Shard
    workers: Workers
    files: dict[str, str]
    luggage: Luggage | None
    chunk_s: float | None

    # -- before the start -------------------------------------------------------------------------------------------------------

    def begun(self) -> Manifest:
        """The record of the folder, made by whichever shard comes first."""
        record = manifest.read(self.folder)
        if record and self.chunk_s is not None:
            tell(f"--chunk says nothing here: the chunks of {self.folder} are cut")
        while record is None:
            try:
                with lock.hold(self.folder / lock.FOLDER, lock.ALL):
                    if manifest.read(self.folder) is None:
                        manifest.write(self.folder, self.planned())
            except lock.FolderBusy:
                time.sleep(random.uniform(0.2, 2.0))
            record = manifest.read(self.folder)
        manifest.check(self.folder, record, self.study.digest, self.files)
        return record

    def planned(self) -> Manifest:
        """A record with the chunks that a few timed questions suggest."""
        tell("timing a few questions of each kind ...")
        costs, groups = self._costs(), [block.groups for block in self.study.blocks]
        workers = self.workers.count * self.shard.count
        return self._record(chunks.steps(costs, groups, workers, self.chunk_s), chunks.total(costs, groups))

    def _record(self, steps: list[int], cost: chunks.SweepCost) -> Manifest:
        return Manifest(
            questions=len(self.study), digest=self.study.digest, build=manifest.build(), day=today().isoformat(), files=self.files,
            steps=steps, cost=cost,
        )  # fmt: skip

    def _costs(self) -> list[GroupCost]:
        """Estimates of a group of each block."""
        blocks = self.study.blocks
        record = self._record([], chunks.SweepCost(0, 0, 0))
        timed = list(range(len(blocks)))[: chunks.MOST_TIMED]
        verbs = {blocks[number].verb: number for number in reversed(timed)}
        again = range(self.workers.count)  # so that each worker has loaded what the verb needs
        first = self._timed([self._job(Chunk(number, 0, 1, f"{number}/{place}"), record) for number in verbs.values() for place in again])
        samples = [
            self._job(Chunk(number, group, group + 1, f"{number}/{group}"), record)
            for number in timed for group in dict.fromkeys(chunks.sampled(blocks[number].groups))
            if first.get(verbs[blocks[number].verb], GroupCost(0, 0, 0)).seconds < LONG_S
        ]  # fmt: skip
        known = first | self._timed(samples)
        return [known.get(number) or known.get(verbs.get(block.verb, 0)) or first[0] for number, block in enumerate(blocks)]

    def _timed(self, jobs: list[Job]) -> dict[int, GroupCost]:
        """Mean cost of the jobs of each block, of warm workers where there are some."""
        by_block: dict[int, list[AnsweredChunk]] = {}
        for job, part in run.parts(jobs, self.workers):
            by_block.setdefault(int(job.name.partition("/")[0]), []).append(part)
        warm = {number: [part for part in parts if part.is_warm] or parts for number, parts in by_block.items()}
        return {
            number: GroupCost(
                sum(part.seconds for part in parts) / len(parts), sum(part.rows for part in parts) / len(parts),
                sum(len(part.data) for part in parts) / len(parts),
            )
            for number, parts in warm.items()
        }  # fmt: skip

    def estimate(self, record: Manifest) -> str:
        """What the questions take that this command has to answer: chunks are cut to take like times."""
        chunks_of_folder, questions = list(record.chunks(self.study.blocks)), Counter[str]()
        lacking = [
            chunk for chunk in chunks_of_folder[self.shard.number - 1 :: self.shard.count] if not (self.folder / chunk.part).is_file()
        ]
        for chunk in lacking:
            questions[self.study.blocks[chunk.block].verb] += self._questions(chunk)
        share = len(lacking) / len(chunks_of_folder)
        return words.estimate(questions, share * record.cost.seconds, share * record.cost.bytes, self.workers.place, self.workers.count)

    def dry_answer(self, record: Manifest) -> output.Answer:
        """What a dry run answers."""
        return self._answer(record, output.Summary(self.estimate(record), words.VIEW), 0)

    # -- the run ----------------------------------------------------------------------------------------------------------------

    def _job(self, chunk: Chunk, record: Manifest) -> Job:
        block = self.study.blocks[chunk.block].part(chunk.first, chunk.last)
        first = 0 if block.lines is not None else chunk.first
        return Job(
            name=chunk.part, block=block, first=first, last=first + chunk.last - chunk.first, sweep=record.sweep, build=record.build,
            day=record.day, luggage=self.luggage,
        )  # fmt: skip

    def run(self, record: Manifest) -> None:
        """Answer every chunk of the shard that has no part."""
        for draft in store.drafts(self.folder) if self.shard.count == 1 else ():
            draft.unlink(missing_ok=True)
        blocks = self.study.blocks
        chunks_of_shard = [chunk for place, chunk in enumerate(record.chunks(blocks)) if self.shard.takes(place)]
        lacking = [chunk for chunk in chunks_of_shard if not self._about(chunk, record)]
        expect(sum(self._questions(chunk) for chunk in lacking))
        for job, part in run.parts((self._job(chunk, record) for chunk in lacking), self.workers):
            store.keep(self.folder / job.name, part.data)
            tick(part.questions)
        now = {path: hash_of(Path(path)) for path in self.files}
        manifest.check(self.folder, record, self.study.digest, now)

    def _questions(self, chunk: Chunk) -> int:
        """How many a chunk has: its groups are neighbours."""
        block = self.study.blocks[chunk.block]
        return block.span(chunk.last - 1).stop - block.span(chunk.first).start

    def _about(self, chunk: Chunk, record: Manifest) -> dict[str, Any]:
        """What the part of a chunk says of itself; nothing where it is not there."""
        path = self.folder / chunk.part
        return store.about_of(path, record.sweep) if path.is_file() else {}

    # -- what it came to --------------------------------------------------------------------------------------------------------

    def finished(self, record: Manifest) -> output.Answer:
        """The answer; once every chunk is there, the parts get one schema and all rows one hash."""
        parts = [chunk.part for chunk in record.chunks(self.study.blocks)]
        if not all((self.folder / part).is_file() for part in parts):
            return self.report(record)
        verbs = dict.fromkeys(block.verb for block in self.study.blocks)
        sorted_parts = {verb: sorted(part for part in parts if part.startswith(f"{verb}/")) for verb in verbs}
        for names in sorted_parts.values():
            store.settle([self.folder / name for name in names])
        digest = store.rows_hash((verb, self.folder / name) for verb, names in sorted_parts.items() for name in names)
        return self.report(record, digest)

    def report(self, record: Manifest, digest: str = "", status: int = 0) -> output.Answer:
        """The answer so far."""
        rows = self._rows(record)
        failed = sum(row["failed"] for row in rows)
        remaining = sum(row["chunks_left"] for row in rows)
        way_of_shards = " to other shards; the command without --shard answers what lacks"
        rest = way_of_shards if self.shard.count > 1 and not status else "; the same command goes on"
        way_on = f"{remaining:,} chunks are left{rest}" if remaining else ""
        failures = list(self._failures(record)) if failed else []
        summary = words.summary(rows, str(self.folder), digest, failures, way_on, bool(status))
        return self._answer(record, summary, status or (INCOMPLETE if failed else 0), rows)

    def _answer(self, record: Manifest, summary: output.Summary, status: int, rows: list[dict[str, Any]] | None = None) -> output.Answer:
        return output.Answer(Listing(rows if rows is not None else self._rows(record)), describe=lambda _: summary, status=status)

    def _rows(self, record: Manifest) -> list[dict[str, Any]]:
        """A row for each verb."""
        rows: dict[str, dict[str, Any]] = {}
        for block in self.study.blocks:
            row = rows.setdefault(block.verb, dict.fromkeys(words.VIEW, 0) | {"verb": block.verb})
            row["questions"] += len(block)
        for chunk in record.chunks(self.study.blocks):
            row, about = rows[self.study.blocks[chunk.block].verb], self._about(chunk, record)
            row["chunks"] += 1
            if not about:
                row["chunks_left"] += 1
                continue
            for key, name in (("answered", "questions"), ("failed", "failed"), ("rows", "rows"), ("busy_s", "seconds")):
                row[key] += about[name]
            row["file_bytes"] += (self.folder / chunk.part).stat().st_size
        return [row | {"folder": str(self.folder / row["verb"])} for row in rows.values()]

    def _failures(self, record: Manifest) -> Iterator[str]:
        """The first questions without an answer, each with its reason."""
        parts: list[str] = []
        for chunk in record.chunks(self.study.blocks):
            if self._about(chunk, record).get("failed"):
                parts += list(_failed(store.failures(self.folder / chunk.part)))
            if len(parts) >= FAILURES:
                break
        return iter(parts[:FAILURES])


def _failed(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        inputs = [f"{name.removeprefix(INPUT)} {value:g}" if isinstance(value, float) else f"{name.removeprefix(INPUT)} {value}"
                  for name, value in row.items() if name.startswith(INPUT) and value is not None]  # fmt: skip
        setting = f" ({', '.join(inputs)})" if inputs else ""
        yield f"question {row[QUESTION]}{setting}: {row[ERROR]}"

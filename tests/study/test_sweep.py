"""A study gives the rows of the verbs, whatever its chunks, shards and interruptions; what is wrong with it is one line."""

from __future__ import annotations

import functools
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import headway as hw
from headway.core.age import EPOCH, today
from headway.core.errors import HeadwayError
from headway.study import chunks, columns, lock, pool, run, verb, worker
from headway.study.file import read
from headway.study.questions import Sweep

pytest.importorskip("pyarrow")

STUDY = """
[common]
model = "llama-3.1-8b"
[[questions]]
verb = "serve"
[questions.grid]
batch = "1..4"
on = ["h100-sxm", "h200"]
context = ["1k", "8k"]
[[questions]]
verb = "train"
on = "64xh100-sxm"
[questions.grid]
global_batch = ["1M", "2M"]
seq = ["4k", 3]
"""


@contextmanager
def threads() -> Iterator[Executor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


@pytest.fixture
def in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers without the seconds that processes take to start."""
    monkeypatch.setattr(verb, "_workers", lambda _: run.Workers(threads, 2, "2 threads"))


def study(folder: Path, text: str = STUDY) -> str:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def swept(file: str, into: Path, **flags: Any) -> Any:
    args = Sweep.from_values({"file": file, "into": str(into), **flags})
    return verb.answer(read(file), args)


def headline(answer: Any) -> str:
    return answer.describe(answer.rows).headline


# -- rows -----------------------------------------------------------------------------------------------------------------------


def test_rows__are_those_of_the_verbs(tmp_path: Path, in_threads: None) -> None:
    result = hw.sweep(study(tmp_path), into=tmp_path / "out")
    rows = result.to_arrow("serve").to_pylist()
    assert [row["question"] for row in rows] == list(range(16))
    for row in rows:
        [alone] = hw.serve("llama-3.1-8b", row["in.on"], batch=row["in.batch"], context=row["in.context"]).rows()
        assert {key: row[key] for key in alone} == alone
    assert [row["batch"] for row in rows[:4]] == [1, 1, 2, 2], "the last axis turns fastest"
    trained = result.to_arrow("train").to_pylist()
    alone = hw.train("llama-3.1-8b", "64xh100-sxm", global_batch="1M", seq="4k").rows()
    assert [{key: row[key] for key in alone[0]} for row in trained if row["question"] == 16] == alone


def test_failures__are_kept_with_their_reason(tmp_path: Path, in_threads: None) -> None:
    result = hw.sweep(study(tmp_path), into=tmp_path / "out")
    assert len(result.answers("serve").where("in.batch = 2").rows()) == 4
    why = {row["question"]: row["error"] for row in result.to_arrow("train").to_pylist()}
    assert result.status == 3 and "2 of them without an answer" in result.answer
    assert [number for number, error in why.items() if error] == [17, 19] and "a multiple of the sequence" in why[17]
    assert len([note for note in result.notes if note.startswith("question 1")]) == 2


def test_hash__does_not_depend_on_chunks_shards_or_a_stop(tmp_path: Path, in_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    file = study(tmp_path)
    whole = headline(swept(file, tmp_path / "whole", chunk="1e6")).split()[-1]
    assert headline(swept(file, tmp_path / "small", chunk="1e-9")).split()[-1] == whole
    first = swept(file, tmp_path / "shards", shard="1/2", chunk="1e-9")
    assert "sha256" not in headline(first) and any("other shards" in line for line in first.describe(first.rows).after)
    assert headline(swept(file, tmp_path / "shards", shard="2/2")).split()[-1] == whole
    gone = sorted((tmp_path / "small").glob("*/*.parquet"))[::2]
    for part in gone:
        part.unlink()
    asked = []
    monkeypatch.setattr(worker, "answer", lambda job, answer=worker.answer: (asked.append(job.name), answer(job))[1])
    assert headline(swept(file, tmp_path / "small")).split()[-1] == whole
    assert sorted(asked) == [str(part.relative_to(tmp_path / "small")) for part in gone], "no finished chunk is asked again"


def test_types__are_one_however_the_chunks_are_cut(tmp_path: Path, in_threads: None) -> None:
    """A column that is whole in one chunk, broken in another and null in a third has one type in every file."""
    parquet = pytest.importorskip("pyarrow.parquet")
    swept(study(tmp_path), tmp_path / "out", chunk="1e-9")
    for folder in ("serve", "train"):
        schemas = {parquet.read_schema(part).to_string(show_field_metadata=False, show_schema_metadata=False)
                   for part in (tmp_path / "out" / folder).iterdir()}  # fmt: skip
        assert len(schemas) == 1


def test_groups__cover_every_question_once() -> None:
    from headway.study.grid import grid

    axes = {"on": ["h100", "h200"], "batch": range(1, 1001), "tp": [1, 2, 4], "prompt": [f"{n}k" for n in range(1, 8)], "output": [1, 2, 3]}
    block = grid("", "serve", {}, {name: list(axis) for name, axis in axes.items()}, 5)
    assert list(block.axes) == ["on", "tp", "batch", "prompt", "output"]
    places = [place for group in range(block.groups) for place in block.span(group)]
    assert places == list(range(len(block))) and len(block) == 2 * 1000 * 3 * 7 * 3
    for group in range(block.groups):
        shared, span = block.shared_axes(group), block.span(group)
        product = [{}]
        for name, axis in shared.items():
            product = [values | {name: member} for values in product for member in axis]
        assert [{name: block.differing(place)[name] for name in shared} for place in span] == product


def test_list__of_a_csv_file(tmp_path: Path, in_threads: None) -> None:
    (tmp_path / "runs.csv").write_text("on,batch,context\nh100-sxm,1,1k\nh200,,8k\nh100-sxm,1,1k\n")
    result = hw.sweep(study(tmp_path, '[[questions]]\nverb="serve"\nmodel="llama-3.1-8b"\nlist="runs.csv"\n'), into=tmp_path / "out")
    rows = result.to_arrow("serve").to_pylist()
    assert [(row["in.on"], row["in.context"], row["batch"]) for row in rows] == [
        ("h100-sxm", "1k", 1), ("h200", "8k", 1), ("h100-sxm", "1k", 1)]  # fmt: skip


# -- kills ----------------------------------------------------------------------------------------------------------------------


class Fragile(Executor):
    """Answers in this process; dies with each job whose name is in `deadly`, and with the `mortal`-th of all."""

    def __init__(self, deadly: Callable[[worker.Job], bool], mortal: list[int]) -> None:
        self.deadly, self.mortal, self.is_broken = deadly, mortal, False

    def submit(self, call: Any, /, *args: Any, **keywords: Any) -> Future[Any]:
        if self.is_broken:
            raise BrokenExecutor
        self.mortal[0] -= 1
        future = Future[Any]()
        if self.deadly(args[0]) or not self.mortal[0]:
            self.is_broken = True
            future.set_exception(BrokenExecutor())
        else:
            future.set_result(call(*args))
        return future


@pytest.mark.parametrize("mortal", [1, 3, 4])
def test_worker__that_dies_costs_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mortal: int) -> None:
    file = study(tmp_path)
    count, poison = [mortal], list[int]()

    @contextmanager
    def fragile() -> Iterator[Executor]:
        yield Fragile(lambda job: job.block.verb == "train" and any(n in poison for n in job.block.numbers[job.first : job.last]), count)

    monkeypatch.setattr(verb, "_workers", lambda _: run.Workers(fragile, 2, "2 fragile"))
    plain = headline(swept(file, tmp_path / f"plain{mortal}", chunk="1e6")).split()[-1]
    count[0] = 1_000_000
    assert headline(swept(file, tmp_path / "again", chunk="1e6")).split()[-1] == plain
    poison.append(18)
    swept(file, tmp_path / "timed", chunk="1e-9")
    table = hw.sweep(file, into=tmp_path / "timed").to_arrow("train").to_pylist()
    assert {row["error"] for row in table if row["question"] == 18} == {run.DIED}
    assert {row["question"] for row in table if not row["error"]} == {16}


def test_worker__that_dies_with_one_question_of_a_call_costs_that_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen questions are two calls; two questions of one are deadly, the others of it have their rows, in order."""
    file, poison = study(tmp_path), list[int]()

    def is_deadly(job: worker.Job) -> bool:
        places = [place for group in range(job.first, job.last) for place in job.block.span(group)]
        return job.block.verb == "serve" and any(job.block.numbers[place] in poison for place in places)

    @contextmanager
    def fragile() -> Iterator[Executor]:
        yield Fragile(is_deadly, [1_000_000])

    monkeypatch.setattr(verb, "_workers", lambda _: run.Workers(fragile, 2, "2 fragile"))
    swept(file, tmp_path / "out", chunk="1e-9")
    plain = hw.sweep(file, into=tmp_path / "out").to_arrow("serve").to_pylist()
    for part in (tmp_path / "out" / "serve").iterdir():
        part.unlink()
    poison += [1, 6]
    rows = hw.sweep(file, into=tmp_path / "out").to_arrow("serve").to_pylist()
    assert [row["error"] for row in rows] == [run.DIED if number in poison else None for number in range(16)]
    assert [row for row in rows if not row["error"]] == [row for row in plain if row["question"] not in poison]


def test_processes__are_gone_with_their_client() -> None:
    code = "import os, time\nfrom headway.study import pool\nwith pool.processes(1) as executor:\n print(executor.submit(os.getpid).result(), flush=True)\n time.sleep(60)"  # noqa: E501
    client = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert client.stdout
    process = int(client.stdout.readline())
    client.kill()
    client.wait()
    client.stdout.close()
    for _ in range(100):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{process}/stat").is_file() and Path(f"/proc/{process}/stat").read_text().split()[2] == "Z":
            return
        time.sleep(0.1)
    raise AssertionError("a worker outlives its client")


def test_pool__answers_in_another_process() -> None:
    with pool.processes(1) as executor:
        assert executor.submit(os.getpid).result() != os.getpid()


# -- one client -----------------------------------------------------------------------------------------------------------------


def beat(path: Path, ahead_s: float) -> None:
    moment = time.time() + ahead_s
    os.utime(path, (moment, moment))


def test_lock__of_a_client_that_lives_and_of_dead_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with lock.hold(tmp_path, lock.ALL):
        for shard in (lock.ALL, lock.Shard(1, 2)):
            with pytest.raises(HeadwayError, match=f"process {os.getpid()} of .* works on it"), lock.hold(tmp_path, shard):
                pass
    with lock.hold(tmp_path, lock.Shard(1, 2)), lock.hold(tmp_path, lock.Shard(2, 2)):
        with pytest.raises(HeadwayError, match="shard 2/2"), lock.hold(tmp_path, lock.Shard(2, 2)):
            pass
        with pytest.raises(HeadwayError), lock.hold(tmp_path, lock.Shard(1, 3)):
            pass
    locks = tmp_path / lock.FOLDER
    for name, host, age in (("dead", "elsewhere", 2 * lock.DEAD_S), ("lives", "elsewhere", 0)):
        (locks / f"{name}.json").write_text(json.dumps({"host": host, "pid": 1, "shard": "1/1"}))
        beat(locks / f"{name}.json", -age)
    monkeypatch.setattr(lock, "LOOK_S", 0.01)
    monkeypatch.setattr(lock.time, "sleep", lambda _: beat(locks / "lives.json", 5))
    with pytest.raises(HeadwayError, match="process 1 of elsewhere"), lock.hold(tmp_path, lock.ALL):
        pass
    monkeypatch.setattr(lock.time, "sleep", lambda _: beat(locks / "lives.json", -2 * lock.DEAD_S))
    os.utime(locks / "lives.json")
    with lock.hold(tmp_path, lock.ALL):
        assert not {"dead.json", "lives.json"} & {path.name for path in locks.iterdir()}
    forerunner = {
        "host": "pod",
        "machine": lock.machine(),
        "pid": os.getpid(),
        "shard": "1/1",
        "token": "of a pod that had my name and number",
    }
    (locks / "pod.json").write_text(json.dumps(forerunner))
    with lock.hold(tmp_path, lock.ALL):
        assert not (locks / "pod.json").exists()
    monkeypatch.setattr(lock.time, "sleep", lambda _: beat(locks / "twin.json", 5))
    twin = {"host": socket.gethostname(), "machine": "a container of the same name", "pid": 2**22 + 1, "shard": "1/1"}  # no process here
    (locks / "twin.json").write_text(json.dumps(twin))
    with pytest.raises(HeadwayError, match="works on it"), lock.hold(tmp_path, lock.ALL):
        pass


# -- what is wrong --------------------------------------------------------------------------------------------------------------

PLAN = '[[questions]]\nverb = "plan"\nmodel = "llama-3.1-8b"\non = "h100-sxm"\n'
OPEN = PLAN.partition("on =")[0]
WRONG = {
    "": "empty",
    "x = 1": "has 'x'; wants a study",
    "[[questions]]\nmodel = 'a'": "no verb of questions[1] named ''",
    PLAN.replace("plan", "plann"): "did you mean plan",
    PLAN.replace("plan", "sweep"): "questions[1].verb: got 'sweep'",
    PLAN.replace("plan", "web"): "got 'web'",
    PLAN + "batchs = 3": "no field of plan named 'batchs'",
    PLAN + "prompt = '8q'": "prompt",
    PLAN + "prompt = nan": "prompt",
    OPEN + "[questions.grid]\non = []": "questions[1].grid.on: got '[]'; wants at least one value",
    OPEN + "[questions.grid]\non = ['h100', 'h100']": "each value once",
    PLAN + "[questions.grid]\non = ['h100']": "it once: it is an axis",
    OPEN + "[questions.grid]\non = ['h100', 'h10000']": "questions[1].grid.on: no ",
    PLAN + "[questions.grid]\nprompt = '1..1000000'\noutput = '1..1000000'": "1,000,000 x 1,000,000 = 1,000,000,000,000 questions",
    PLAN + "list = 'none.csv'": "none.csv: cannot be read",
    PLAN + "[common]\ntps = 3": "under [common]",
    "common = 3\n" + PLAN: "[common] wants a table",
    "[common]\ntimeline = 'x.json'\n" + PLAN.replace("plan", "sim"): "timeline: got 'a file to write'",
    OPEN + "list = 'broken.parquet'": "broken.parquet: is no whole file of Parquet",
    "[[questions]]\nverb = 'plan'": "the following arguments are required",
}


@pytest.mark.parametrize("text", WRONG)
def test_file__that_is_wrong_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(HeadwayError) as error:
        swept(study(tmp_path, text), tmp_path / "out")
    assert WRONG[text] in str(error.value) and "\n" not in str(error.value) and not (tmp_path / "out").exists()


def test_folder__of_another_sweep_or_edited(tmp_path: Path, in_threads: None) -> None:
    refused = functools.partial(pytest.raises, HeadwayError)
    file, out = study(tmp_path), tmp_path / "out"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    with refused(match="has files and is no sweep"):
        swept(file, tmp_path / "full")
    swept(file, out)
    swept(file, out, chunk="1s")
    part = next((out / "serve").iterdir())
    content = part.read_bytes()
    part.write_bytes(content[:-100])
    with refused(match="is no whole part of this sweep"):
        swept(file, out)
    part.write_bytes(content)
    record = (out / "sweep.json").read_text()
    (out / "sweep.json").write_text(record.replace('"questions": 20', '"questions": 21'))
    with refused(match="was edited or cut short"):
        swept(file, out)
    (out / "sweep.json").write_text(record)
    with refused(match="holds another sweep"):
        swept(study(tmp_path, STUDY.replace("8k", "9k")), out)
    with refused(match="I/N"):
        swept(file, out, shard="3/2")


def test_worker__of_another_build_is_refused(tmp_path: Path, in_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "build", lambda: "headway 0.0.1 (facts and code 123)")
    with pytest.raises(HeadwayError, match=r"a worker has headway 0\.0\.1"):
        swept(study(tmp_path), tmp_path / "out")


def test_disk__that_is_full_is_one_line(tmp_path: Path, in_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from headway.study import store

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "write_whole", full)
    with pytest.raises(HeadwayError, match="No space left on device: every finished chunk is there"):
        swept(study(tmp_path), tmp_path / "out")


def test_questions__of_python_write_no_file_and_refuse_what_is_idle(tmp_path: Path) -> None:
    asked = {"model": "llama-3.1-8b", "on": "h100-sxm"}
    with pytest.raises(HeadwayError, match="timeline: got 'a file to write'"):
        hw.sweep([{"verb": "sim", **asked, "timeline": str(tmp_path / "x.json")}])
    with pytest.raises(HeadwayError, match="no --cluster beside it"):
        hw.sweep([{"verb": "plan", **asked}], cluster="tcp://127.0.0.1:1", processes=3)
    assert not list(tmp_path.iterdir())


def test_truth__of_a_list_is_read_as_people_write_it(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("prompt,shipped\n1k,True\n2k,FALSE\n", encoding="utf-8")
    [block] = read(study(tmp_path, '[[questions]]\nverb="bill"\nsheet="gpt-5.4"\nlist="runs.csv"\n')).blocks
    assert [line["shipped"] for line in block.lines or ()] == [True, False]


def test_part__that_is_damaged_within_is_told(tmp_path: Path, in_threads: None) -> None:
    result = hw.sweep(study(tmp_path), into=tmp_path / "out")
    part = next((tmp_path / "out" / "serve").iterdir())
    content = bytearray(part.read_bytes())
    content[100:900] = bytes(800)
    part.write_bytes(content)
    for read_all in (result.to_arrow, lambda: swept(study(tmp_path), tmp_path / "out")):
        with pytest.raises(HeadwayError, match=f"{part.name}: is no whole part of this sweep"):
            read_all()


def test_estimate__is_of_what_the_command_has_to_answer(tmp_path: Path, in_threads: None) -> None:
    file, out = study(tmp_path), tmp_path / "out"
    swept(file, out, chunk="1e-9", shard="1/2")
    assert headline(swept(file, out, dry_run=True, shard="1/2")) == "Every question is answered."
    half = int(headline(swept(file, out, dry_run=True)).split()[0])
    assert 0 < half < 16 and headline(swept(file, out, dry_run=True, shard="2/2")).split()[0] == str(half)


def test_shard__that_is_stopped_goes_on_by_the_same_command(tmp_path: Path, in_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(verb.Sweeping, "run", stop)
    answer = swept(study(tmp_path), tmp_path / "out", shard="1/2")
    assert answer.status == verb.INTERRUPTED and answer.describe(answer.rows).after[0].endswith("chunks are left; the same command goes on")


def test_axis__is_checked_to_its_last_text(tmp_path: Path) -> None:
    text = OPEN + f"on = 'h100'\n[questions.grid]\nprompt = {[f'{n}k' for n in range(1, 2100)] + ['8q']}"
    with pytest.raises(HeadwayError, match="8q"):
        swept(study(tmp_path, text), tmp_path / "out")


def test_dry_run__has_no_rows(tmp_path: Path, in_threads: None) -> None:
    with pytest.raises(HeadwayError, match="no answers are there yet"):
        hw.sweep(study(tmp_path), into=tmp_path / "out", dry_run=True).to_arrow("serve")


# -- what changes while it runs ---------------------------------------------------------------------------------------------------


def test_day__is_that_of_the_first_command(tmp_path: Path, in_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards on both sides of midnight, or of a change of prices, answer alike."""
    days = set[str]()
    monkeypatch.setattr(worker, "_answer", lambda job, _=None, answer=worker._answer: (days.add(str(today())), answer(job))[1])
    monkeypatch.setenv(EPOCH, "1790000000")
    swept(study(tmp_path), tmp_path / "out", shard="1/2", chunk="1e-9")
    monkeypatch.setenv(EPOCH, "1800000000")
    with pytest.raises(HeadwayError, match=r"its rows are of 2026-09-21, .* says 2027-01-15"):
        swept(study(tmp_path), tmp_path / "out", shard="2/2")
    monkeypatch.delenv(EPOCH)
    assert "sha256" in headline(swept(study(tmp_path), tmp_path / "out", shard="2/2")) and days == {"2026-09-21"}


def test_file__that_changes_while_it_runs_is_told(tmp_path: Path, in_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    chip = tmp_path / "own" / "chips" / "zeta_9.toml"
    chip.parent.mkdir(parents=True)
    chip.write_text('[facts]\npeak_bf16 = "1 PFLOPS"\nhbm = "100 GB"\nhbm_bw = "5 TB/s"\n', encoding="utf-8")
    file = study(tmp_path, PLAN.replace("h100-sxm", "zeta-9") + f"catalog = ['{chip.parents[1].as_posix()}']\n")
    out = chip.parents[1] / "out"  # within the catalogue folder, of which it is no part
    swept(file, out)
    swept(file, out)
    (out / "plan" / next((out / "plan").iterdir()).name).unlink()
    text = chip.read_text(encoding="utf-8")

    def edited(job: worker.Job, answer: Any = worker.answer) -> Any:
        chip.write_text(text + "\n", encoding="utf-8")
        return answer(job)

    monkeypatch.setattr(worker, "answer", edited)
    with pytest.raises(HeadwayError, match=r"zeta_9\.toml is another file than when it began"):
        swept(file, out)


def test_folder__of_a_command_killed_at_its_record_begins_anew(tmp_path: Path, in_threads: None) -> None:
    (tmp_path / "out").mkdir()
    for name in (".sweep.json.abcd", ".DS_Store", ".nfs01"):
        (tmp_path / "out" / name).write_text("{")
    assert "sha256" in headline(swept(study(tmp_path), tmp_path / "out"))


def test_columns__of_whole_numbers_that_no_double_has_are_cast() -> None:
    tables = [columns.arrow().table({"x": [2**53 + 1]}), columns.arrow().table({"x": [0.5]})]
    types = columns.joined_types([table.schema for table in tables])
    assert columns.cast(tables[0], types).to_pylist() == [{"x": 2.0**53}]


def test_dry_run__writes_nothing(tmp_path: Path, in_threads: None) -> None:
    answer = swept(study(tmp_path), tmp_path / "out", dry_run=True)
    assert headline(answer).startswith("16 serve and 4 train questions: about ") and not (tmp_path / "out").exists()


def test_steps__fill_chunks_and_workers() -> None:
    costs = [chunks.GroupCost(0.1, 1, 1), chunks.GroupCost(100.0, 1, 1), chunks.GroupCost(0.001, 20_000, 1)]
    assert chunks.steps(costs, [1000, 3, 100], 2, None) == [40, 1, 10]
    assert sum(chunks.sampled(1)) == 0 and set(chunks.sampled(100)) <= set(range(100))

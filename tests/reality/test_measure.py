"""The machine measured: by a clock of the test's own, so that no result depends on how fast or quiet the test machine is."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator

import pytest

from headway.core.cores import LIMIT_FILE, OLDER_FILES, granted
from headway.core.errors import BadValue, HeadwayError
from headway.reality.here import Host
from headway.reality.measure import processor
from headway.reality.measure.record import MATMUL, MachineRecord, of_dict
from headway.reality.measure.run import MeasureRequest, measured
from headway.reality.measure.timing import FEWEST, Rounds, timed
from headway.reality.threads import VARIABLES, environment, in_child

TINY = processor.MeasureSizes(shapes=(1.0,), 
    rows=(1, 4), width=8, ring_bytes=4096, looped_width=8, vector_rows=(1,), vector_width=8, contexts=(4,), sequences=(2,), prompts=(4,),
    rounds=Rounds(most=FEWEST),
)  # fmt: skip
HOST = Host(processor="Test CPU", memory=8 * 10**9, cards=())


def clock_of(durations: Iterator[float]) -> Callable[[], float]:
    """A clock that is read before and after each round, which then took the next of these times."""
    readings, now = itertools.count(), [0.0]

    def read() -> float:
        if next(readings) % 2:
            now[0] += next(durations)
        return now[0]

    return read


def test_timed__takes_the_fastest_and_tells_the_scatter() -> None:
    result = timed(lambda: None, Rounds(budget_s=4.0), clock_of(iter([9.0, 3.0, 2.0, 4.0, 3.0, 3.0])))  # the first warms up
    assert (result.fastest_s, result.median_s, result.rounds) == (2.0, 3.0, 5)
    assert result.spread == pytest.approx(0.5)


def test_timed__goes_on_until_the_spread_is_small_or_time_is_up() -> None:
    def rounds_of(budget: float) -> int:
        return timed(lambda: None, Rounds(budget_s=budget, most=50), clock_of(itertools.cycle([2.0, 1.0, 2.0]))).rounds

    assert FEWEST <= rounds_of(10.0) < rounds_of(40.0) <= 50


def test_timed__short_calls_are_timed_together() -> None:
    count = itertools.count()
    result = timed(lambda: next(count), Rounds(most=FEWEST), clock_of(iter([1e-4, 2e-4, 4e-4, 8e-4, 16e-4, *[16e-4] * FEWEST])))
    assert (result.fastest_s, next(count)) == (pytest.approx(1e-4), 31 + 16 * FEWEST)  # 16 calls a round


def test_processor__measures_each_kind_once() -> None:
    times = processor.measure(TINY, clock_of(itertools.repeat(1e-2)))
    assert [(time.format, time.rows) for time in times.matmuls if time.native] == [
        ("float32", 1), ("float32", 4), ("float64", 1), ("float64", 4),
    ]  # fmt: skip
    assert {time.format for time in times.matmuls if not time.native} == {"float16", "int8"}
    assert {stream.kind for stream in times.streams} == {"read", "matvec", "copy"}
    assert {(time.sequences, time.queries) for time in times.attentions} == {(2, 1), (1, 4)}


def record(**changes: object) -> MachineRecord:
    """A machine of 100 GFLOP/s and 20 GB/s."""
    matmuls = [
        {
            "format": "float32",
            "native": True,
            "rows": rows,
            "inner": 1000,
            "columns": 1000,
            "element": 4,
            "seconds": seconds,
            "spread": 0.01,
        }
        for rows, seconds in ((1, 2e-4), (1000, 2e-2))
    ]
    document = {
        "device": "Test CPU", "library": "numpy 2", "date": "2026-11-27", "cores": 2, "threads": 2, "memory": 8 * 10**9,
        "matmuls": matmuls, "streams": [{"kind": "read", "bytes": 10**8, "seconds": 5e-3, "spread": 0.02}],
        "calls": [{"kind": MATMUL, "seconds": 1e-6, "spread": 0.03}],
    }  # fmt: skip
    return of_dict({**document, **changes})


def test_record__rates_and_ridge() -> None:
    machine = record()
    assert machine.peak().flop_per_s == pytest.approx(100e9)
    assert machine.read().bytes_per_s == pytest.approx(20e9)
    assert machine.ridge == pytest.approx(5.0)
    assert machine.is_quiet
    assert not record(calls=[{"kind": MATMUL, "seconds": 1e-6, "spread": 0.3}]).is_quiet


def test_record__through_json() -> None:
    machine = record()
    assert of_dict(json.loads(json.dumps(machine.as_dict()))) == machine


def test_measured__names_the_machine_and_fixes_threads() -> None:
    asked = {}

    def child(module: str, request: object, threads: int) -> dict[str, object]:
        asked.update(module=module, request=request, threads=threads)
        return {"library": "numpy 2"}

    machine = measured(MeasureRequest(threads=3, cores=4, quick=True), HOST, child)
    assert (machine.device, machine.threads, machine.cores, machine.memory) == ("Test CPU", 3, 4, 8 * 10**9)
    assert asked["threads"] == 3


def test_measured__too_little_memory_is_refused() -> None:
    with pytest.raises(BadValue, match="past the caches"):
        measured(MeasureRequest(threads=1, cores=1, limit_memory=1e6), HOST)


def test_environment__every_library_has_the_same_number() -> None:
    assert {environment(2, {})[name] for name in VARIABLES} == {"2"}


def test_child__its_error_is_one_line() -> None:
    with pytest.raises(HeadwayError, match="No module named"):
        in_child("headway.no_such_module", {}, 1)


def files(texts: dict[str, str]) -> Callable[[str], str]:
    """The files of a system."""
    return lambda path: texts.get(path, "")


def test_granted__part_of_a_core_counts_as_one() -> None:
    assert granted(files({LIMIT_FILE: "50000 100000\n"})) == 1
    assert granted(files({})) == 0
    assert granted(files({OLDER_FILES[0]: "400000\n", OLDER_FILES[1]: "100000\n"})) == 4
    assert granted(files({OLDER_FILES[0]: "-1\n", OLDER_FILES[1]: "100000\n"})) == 0

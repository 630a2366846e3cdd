"""Ctrl-C in the middle of a simulation: a real signal to a real command, which prints what it has and says so."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from headway.simulation.compiled import available

pytestmark = pytest.mark.slow

ASKED = "sim llama-3.1-70b --on 8xh100-sxm --tp 8 --prompt 2k --output 100 --requests 3M"
# The command itself sends the signal, some slices into the run of the load: no clock decides what a test sees.
CHILD = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what it puts in the background with Ctrl-C ignored
from headway.simulation import simulate, streamed
from headway.cli.main import guarded
inner, piecewise, slices, played = simulate.PlayableTraffic.idle, streamed.StreamedPlay.play, int(sys.argv[1]), []
def idle(self, states, where, number):
    if len(self.served) >= 100_000:  # the load, not its capacity before it
        played.append(number)
        if len(played) == slices:
            os.kill(os.getpid(), signal.SIGINT)
    return inner(self, states, where, number)
def play(self, *piece):  # of a run whose requests are not kept
    played.append(len(played))
    if len(played) == slices:
        os.kill(os.getpid(), signal.SIGINT)
    return piecewise(self, *piece)
simulate.PlayableTraffic.idle, streamed.StreamedPlay.play = idle, play
sys.exit(guarded(sys.argv[2:]))
"""


def child(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", *argv], capture_output=True, text=True, check=False)


def interrupted(command: str, slices: int = 3) -> tuple[int, Any, str]:
    """Exit status, the answer, and what stands on standard error."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(slices), *command.split(), "-o", "json"], capture_output=True, text=True, check=False
    )
    found = json.loads(done.stdout) if done.stdout else None
    return done.returncode, found, done.stderr


@pytest.mark.parametrize("how", ["plain", "compiled"])
def test_interrupt__run_prints_completed_requests(how: str) -> None:
    if how == "compiled" and not available():
        pytest.skip("without numba")
    command = f"{ASKED} --rate 3 --loop {how}".replace("3M", "3M" if how == "compiled" else "200k")
    status, found, err = interrupted(command)
    [row] = found["rows"]
    assert status == 130
    assert not err
    assert 0 < row["completed"] < row["requests"]
    assert row["completed"] + row["cancelled"] == row["requests"]
    assert row["stable"]  # who has not been sent yet does not wait
    assert row["offered_req_per_s"] == pytest.approx(3.0, rel=0.1)
    warm_up = 0.1 * (row["requests"] if how == "compiled" else row["completed"])  # of a run whose requests are not kept as was planned
    assert row["measured"] == pytest.approx(row["completed"] - warm_up, rel=0.05)
    assert row["p99_ttft_s"] > row["mean_ttft_s"] > 0
    assert [note for note in found["notes"] if note.startswith(f"interrupted: {row['completed']:,} of")]


@pytest.mark.skipif(not available(), reason="without numba")
def test_interrupt__within_the_warm_up_tells_no_latency() -> None:
    status, found, _ = interrupted(f"{ASKED} --rate 3 --warmup 0.9 --loop compiled", 2)
    assert status == 130 and found["rows"][0]["measured"] == 0 < found["rows"][0]["completed"]
    assert "has no latency to tell" in found["answer"] and "TTFT" not in found["answer"]


def test_interrupt__replicas_stop_together() -> None:
    command = "sim llama-3.1-8b --on 4xh100-sxm --replicas 4 --rate 12 --prompt 500 --output 50 --requests 100k --loop plain"
    status, found, _ = interrupted(command, 10)
    assert status == 130
    assert found["rows"][0]["offered_req_per_s"] == pytest.approx(12.0, rel=0.5)


def test_interrupt__finished_loads_are_printed_and_later_ones_not_begun() -> None:
    subject = ASKED.partition(" --prompt")[0]
    status, found, _ = interrupted(f"{subject} --requests 100k --rate 30,40,50 --output 1 --prompt 10 --loop plain", 10)
    assert status == 130
    assert 1 <= len(found["rows"]) < 3


def test_interrupt__nothing_to_show_is_one_line() -> None:
    child = "import headway.simulation.run as t\ndef stop(*_): raise KeyboardInterrupt\nt.Trial.run = stop\n" + CHILD
    done = subprocess.run(
        [sys.executable, "-c", child, "1", *ASKED.replace("3M", "10").split(), "--rate", "1"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 130
    assert done.stdout == ""
    assert done.stderr == "headway: interrupted, with nothing to show\n"

"""A Dask scheduler with two workers, started as a person would, answers as processes do."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("distributed")
pytest.importorskip("pyarrow")

pytestmark = pytest.mark.slow

STUDY = """
[common]
model = "llama-3.1-8b"
[[questions]]
verb = "serve"
[questions.grid]
batch = "1..4"
on = ["h100-sxm", "h200"]
[[questions]]
verb = "capacity"
[questions.grid]
on = ["h100-sxm", "l40s"]
context = ["1k", "8k"]
"""
HEADWAY = [sys.executable, "-m", "headway"]
DASK = [sys.executable, "-m", "dask"]


def environment() -> dict[str, str]:
    """That of the workers, who import the headway that these tests do."""
    import headway

    return {**os.environ, "PYTHONPATH": str(Path(headway.__file__).parents[1])}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    address = f"127.0.0.1:{free_port()}"
    host, _, port = address.partition(":")
    commands = [
        [*DASK, "scheduler", "--host", host, "--port", port, "--dashboard-address", "127.0.0.1:0"],
        *[[*DASK, "worker", f"tcp://{address}", "--nthreads", "1", "--no-nanny", "--dashboard-address", "127.0.0.1:0"]] * 2,
    ]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment()}
    processes = [subprocess.Popen(command, **quiet) for command in commands]
    yield f"tcp://{address}"
    for process in processes:
        process.kill()
        process.wait()


def swept(study: Path, into: str, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [*HEADWAY, "sweep", str(study), "--into", str(study.parent / into), *flags]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=300)


def test_cluster__gives_the_rows_of_processes(tmp_path: Path, address: str) -> None:
    study = tmp_path / "study.toml"
    study.write_text(STUDY, encoding="utf-8")
    by_cluster = swept(study, "cluster", "--cluster", address)
    for _ in range(30):  # until scheduler and workers have met
        if by_cluster.returncode:
            time.sleep(1)
            by_cluster = swept(study, "cluster", "--cluster", address)
    by_processes = swept(study, "processes", "--processes", "1")
    assert by_cluster.returncode == by_processes.returncode == 0, by_cluster.stderr
    hashes = [re.findall(r"\b[0-9a-f]{16,64}\b", done.stdout) for done in (by_cluster, by_processes)]
    assert hashes[0] == hashes[1] != []


def test_cluster__that_is_not_there_is_one_line(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(STUDY, encoding="utf-8")
    done = swept(study, "nowhere", "--cluster", f"tcp://127.0.0.1:{free_port()}")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "dask scheduler" in done.stderr

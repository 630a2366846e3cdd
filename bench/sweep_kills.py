"""`kill -9` of the client, of a worker and of the scheduler at random moments (frozen seed): nothing lost, no finished chunk repeated.

python bench/sweep_kills.py [KILLS] [SEED]     needs dask and distributed beside headway for the scheduler; else it is left out

A study of short trainings is answered once in peace. Then again and again, each time with a kill after a random time; a client that
died is started again with the same command. At the end: the hash is that of the first, and no part was written again (its time of change).
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pyarrow import parquet

STUDY = """
[[questions]]
verb = "train"
model = "llama-3.2-1b"
[questions.grid]
on = ["h100-sxm", "8xh100-sxm", "h200", "8xh200"]
micro_batch = [1, 2, 4]
seq = "4096..73728+4096"
"""
COMMAND = [sys.executable, "-m", "headway", "sweep"]
ADDRESS = "tcp://127.0.0.1:18788"
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def children(pid: int) -> list[int]:
    """Worker processes of a client."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            line = (path.parent / "cmdline").read_bytes().decode()
        except OSError:
            continue
        if int(fields[1]) == pid and "spawn_main" in line:
            found.append(int(path.parent.name))
    return found


def dask(*words: str) -> subprocess.Popen[bytes]:
    """A process of a cluster, as a person starts it."""
    return subprocess.Popen([sys.executable, "-m", "dask", *words], **QUIET)


class Cluster:
    """A scheduler and two workers, of which any may die; workers under a nanny, which starts them again."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        self.stop()
        scheduler = dask("scheduler", "--port", ADDRESS.rpartition(":")[2], "--host", "127.0.0.1", "--dashboard-address", ":0")
        time.sleep(4)
        self.processes = [scheduler, *(dask("worker", ADDRESS, "--nthreads", "1", "--no-nanny") for _ in range(2))]
        time.sleep(6)

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def kill(self, victim: str) -> None:
        place = 0 if victim == "scheduler" else random.randrange(1, 3)
        self.processes[place].kill()
        self.processes[place].wait()
        if victim == "worker":
            self.processes[place] = dask("worker", ADDRESS, "--nthreads", "1", "--no-nanny")


def hash_of(text: str) -> str:
    match = re.search(r"sha256 ([0-9a-f]{64})", text)
    return match[1] if match else ""


def work(folder: Path) -> dict[str, float]:
    """The seconds that each part took, as it says itself: a chunk that is answered again takes others."""
    metadata = {str(part): parquet.read_schema(part).metadata for part in folder.glob("train/*.parquet")}
    return {part: json.loads(about[b"headway.sweep"])["seconds"] for part, about in metadata.items()}


def attempt(command: list[str], into: Path, victim: str, delay: float, cluster: Cluster | None) -> tuple[str, str, dict[str, float]]:
    """One command in which a kill falls: what it printed, what was killed, the parts that stood at that moment."""
    client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until = time.time() + delay
    while client.poll() is None and time.time() < until:
        time.sleep(0.02)
    killed, parts = "", work(into)
    if client.poll() is None:
        killed = victim
        if victim == "client":
            client.send_signal(signal.SIGKILL)
        elif cluster is not None:
            cluster.kill(victim)
        elif workers := children(client.pid):
            os.kill(random.choice(workers), signal.SIGKILL)
        else:
            killed = ""
    return client.communicate()[0], killed, parts


def series(study: Path, peace: str, victim: str, kills: int, length: float, cluster: Cluster | None) -> None:
    """Kills of one kind until there were enough."""
    flags = ["--cluster", ADDRESS] if cluster else ["--processes", "2"]
    done = repeated = wrong = runs = 0
    while done < kills:
        runs += 1
        into = Path(tempfile.mkdtemp(prefix="sweep-kill-")) / "out"
        for _ in range(8):
            chunk = [] if (into / "sweep.json").exists() else ["--chunk", "0.3s"]
            command = [*COMMAND, str(study), "--into", str(into), *flags]
            text, killed, parts = attempt([*command, *chunk], into, victim, random.uniform(0.2, length), cluster)
            done += bool(killed)
            after = work(into)
            repeated += sum(after.get(part) != seconds for part, seconds in parts.items())
            if "internal error" in text or "Traceback" in text:
                print("   ", text.strip()[-300:])
            if killed == "scheduler" and cluster:
                cluster.start()
            if hash_of(text) or done >= kills:
                break
        if not hash_of(text):
            text = attempt([*COMMAND, str(study), "--into", str(into), *flags], into, victim, 1e9, None)[0]
        wrong += hash_of(text) != peace
    how = "cluster" if cluster else "processes"
    print(f"{victim:9} {how:9} {done} kills in {runs} sweeps: {wrong} wrong hashes, {repeated} parts written again", flush=True)


def main() -> None:
    """All series."""
    kills, seed = (int(word) for word in [*sys.argv[1:3], *("10", "20261127")[len(sys.argv[1:3]) :]])
    random.seed(seed)
    folder = Path(tempfile.mkdtemp(prefix="sweep-kills-"))
    study = folder / "study.toml"
    study.write_text(STUDY, encoding="utf-8")
    began = time.perf_counter()
    command = [*COMMAND, str(study), "--into", str(folder / "peace"), "--processes", "2"]
    text = subprocess.run(command, capture_output=True, text=True, check=False)
    length = time.perf_counter() - began
    peace = hash_of(text.stdout)
    print(f"in peace {length:.1f} s: {text.stdout.splitlines()[0] if text.stdout else text.stderr}", flush=True)
    for victim in ("client", "worker"):
        series(study, peace, victim, kills, length, None)
    if importlib.util.find_spec("distributed"):
        cluster = Cluster()
        cluster.start()
        for victim in ("worker", "scheduler"):
            series(study, peace, victim, kills, length, cluster)
        cluster.stop()


if __name__ == "__main__":
    main()

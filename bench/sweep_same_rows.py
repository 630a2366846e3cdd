"""2,000 plans by processes, by two shards and on a Dask cluster of two workers: one hash of all rows, whatever the chunks.

python bench/sweep_same_rows.py [PLANS] [MODE ...]     modes: processes chunks one shards dask (all)

Prints a line a mode: wall time, highest resident memory of the client, hash. `dask` needs dask and distributed beside headway.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

STUDY = """
[[questions]]
verb = "plan"
model = "llama-3.2-1b"
on = "h100-sxm"
tp = 1
pp = 1
weights = "bf16"
kv = "bf16"
disaggregate = "never"
[questions.grid]
prompt = "100..{last}+100"
output = "10..100+10"
batch = [1, 2, 4, 8, 16, 32, 64, 96, 128, 192]
"""
COMMAND = [sys.executable, "-m", "headway", "sweep"]
MODES = ("processes", "chunks", "one", "shards", "dask")


def resident(process: subprocess.Popen[str], highest: list[int]) -> None:
    """Follow a client's resident memory, in kB."""
    while process.poll() is None:
        try:
            match = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
        except OSError:
            return
        highest.append(int(match[1]) if match else 0)
        time.sleep(0.2)


def run(*flags: str) -> tuple[str, int]:
    """What one client prints, and its highest resident memory in kB."""
    highest = [0]
    process = subprocess.Popen([*COMMAND, *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    watcher = threading.Thread(target=resident, args=(process, highest))
    watcher.start()
    text = process.communicate()[0]
    watcher.join()
    return text, max(highest)


def cluster(address: str, workers: int) -> list[subprocess.Popen[bytes]]:
    """A scheduler and its workers, as a person starts them."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    port = address.rpartition(":")[2]
    dask = [sys.executable, "-m", "dask"]
    scheduler = subprocess.Popen([*dask, "scheduler", "--port", port, "--host", "127.0.0.1", "--dashboard-address", ":0"], **quiet)
    time.sleep(5)
    return [scheduler, *(subprocess.Popen([*dask, "worker", address, "--nthreads", "1", "--no-nanny"], **quiet) for _ in range(workers))]


def main() -> None:
    """Run the modes that were named."""
    plans = int(next((word for word in sys.argv[1:] if word.isdecimal()), "2000"))
    modes = [word for word in sys.argv[1:] if word in MODES] or MODES
    folder = Path(tempfile.mkdtemp(prefix="sweep-bench-"))
    study = folder / "study.toml"
    study.write_text(STUDY.format(last=plans), encoding="utf-8")
    for mode in modes:
        began = time.perf_counter()
        into = ["--into", str(folder / mode)]
        if mode == "shards":
            clients = [[*COMMAND, str(study), *into, "--processes", "1", "--shard", f"{shard}/2"] for shard in (1, 2)]
            shards = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for words in clients]
            for shard in shards:
                shard.communicate()
            text, memory = run(str(study), *into)
        elif mode == "dask":
            address = "tcp://127.0.0.1:18786"
            processes = cluster(address, 2)
            time.sleep(8)
            began = time.perf_counter()
            text, memory = run(str(study), *into, "--cluster", address)
            for process in processes:
                process.kill()
        else:
            flags = {"processes": ["--processes", "2"], "chunks": ["--processes", "2", "--chunk", "1s"], "one": ["--processes", "1"]}[mode]
            text, memory = run(str(study), *into, *flags)
        parts = len(list((folder / mode).glob("*/*.parquet")))
        seconds = time.perf_counter() - began
        print(f"{mode:10} {seconds:7.1f} s  client {memory / 1000:.0f} MB  {parts} parts  {text.splitlines()[0]}", flush=True)


if __name__ == "__main__":
    main()

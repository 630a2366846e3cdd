"""Resident memory of the client over 200 and 2,000 short trainings: it does not grow with the questions.

python bench/sweep_memory.py [COUNT ...]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from sweep_same_rows import run

STUDY = '[[questions]]\nverb = "train"\nmodel = "llama-3.2-1b"\non = "h100-sxm"\ntp = 1\n[questions.grid]\nseq = "1024..{last}+1"\n'


def main() -> None:
    """A line a count."""
    for count in map(int, sys.argv[1:] or ("200", "2000")):
        folder = Path(tempfile.mkdtemp(prefix="sweep-memory-"))
        (folder / "study.toml").write_text(STUDY.format(last=1023 + count), encoding="utf-8")
        began = time.perf_counter()
        text, memory = run(str(folder / "study.toml"), "--into", str(folder / "out"), "--processes", "2", "--chunk", "0.2s")
        parts = len(list((folder / "out").glob("*/*.parquet")))
        seconds = time.perf_counter() - began
        print(f"{count} trainings: {seconds:.0f} s, client {memory / 1000:.0f} MB, {parts} parts; {text.splitlines()[0]}")


if __name__ == "__main__":
    main()

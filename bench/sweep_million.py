"""A million `serve` points and 200 trainings: the verbs alone in one process, and a sweep of one file with one process.

python bench/sweep_million.py [FORM]     FORM: grid (a million questions), list (one question of lists)

Alone: `headway serve ... -o parquet`, then 200 calls of `headway.train` whose rows go into one Parquet file. Wall and processor seconds.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BATCH, CONTEXT = "1..1000", "100..100000+100"
SEQ, TRAININGS = "1024..51200+1024", 200
STUDY = """
[common]
model = "llama-3.1-8b"
[[questions]]
verb = "serve"
on = "h100-sxm"
{serve}
[[questions]]
verb = "train"
[questions.grid]
on = ["8xh100-sxm", "64xh100-sxm", "8xh200", "64xh200"]
seq = "1024..51200+1024"
"""
FORMS = {
    "grid": f'[questions.grid]\nbatch = "{BATCH}"\ncontext = "{CONTEXT}"',
    "list": f'batch = "{BATCH}"\ncontext = "{CONTEXT}"',
}
ALONE = """
import sys
import headway as hw
from pyarrow import parquet
rows = []
for machine in ("8xh100-sxm", "64xh100-sxm", "8xh200", "64xh200"):
    for seq in range(1024, 51201, 1024):
        try:
            rows.append(hw.train("llama-3.1-8b", machine, seq=seq).to_arrow())
        except hw.HeadwayError:
            rows.append(None)
assert len(rows) == 200
parquet.write_table(next(table for table in rows if table is not None), sys.argv[1])
"""


def timed(*words: str, out: Path | None = None) -> tuple[float, float, str]:
    """Wall seconds, processor seconds and output of a command."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with (out or Path("/dev/null")).open("wb") as file:
        process = subprocess.run(words, stdout=file if out else subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    text = "" if out else process.stdout.decode()
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, text


def main() -> None:
    """Both ways."""
    folder = Path(tempfile.mkdtemp(prefix="sweep-million-"))
    headway = [sys.executable, "-m", "headway"]
    form = next((word for word in sys.argv[1:] if word in FORMS), "grid")
    words = ["serve", "llama-3.1-8b", "--on", "h100-sxm", "--batch", BATCH, "--context", CONTEXT, "-o", "parquet"]
    serve = timed(*headway, *words, out=folder / "serve.parquet")
    train = timed(sys.executable, "-c", ALONE, str(folder / "train.parquet"))
    print(f"alone: serve {serve[0]:.1f} s ({serve[1]:.1f} s of processor), 200 trainings {train[0]:.1f} s ({train[1]:.1f}) {train[2]}")
    study = folder / "study.toml"
    study.write_text(STUDY.format(serve=FORMS[form]), encoding="utf-8")
    sweep = timed(*headway, "sweep", str(study), "--into", str(folder / "out"), "--processes", "1")
    print(f"sweep ({form}): {sweep[0]:.1f} s ({sweep[1]:.1f} s of processor); {sweep[1] / (serve[1] + train[1]):.2f} of the processor, "
          f"{sweep[0] / (serve[0] + train[0]):.2f} of the wall\n{sweep[2][:900]}")  # fmt: skip


if __name__ == "__main__":
    main()

"""Diagnoses of simulated runs: python bench/score_runs.py [HOW MANY] [SEED] [FOLDER OF RECORDED RUNS].

Each run is drawn by the seed, simulated, written as a benchmark or a gateway would, and diagnosed by `headway score`. Every help must be
what its own command answers, and better; the parts of a time must sum to it; no floor may exceed a measurement. Recorded runs of vLLM
(a folder each, with requests.jsonl and meta.json) are diagnosed beside them. Ends with status 1 where something does not hold.
"""

import csv
import json
import random
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.score_runs import drawn, problems, score_command

CARDS = {"RTX4090": "rtx4090", "RTXPRO6000": "rtx-pro-6000"}


def recorded(folder, into):
    """`score` of each recorded run, on the cards that its settings name."""
    for run in sorted(path.parent for path in Path(folder).glob("*/requests.jsonl")):
        settings = json.loads((run / "meta.json").read_text())["engine_kwargs"]
        requests = [json.loads(line) for line in (run / "requests.jsonl").read_text().splitlines()]
        path = into / f"{run.name}.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("start_s", "ttft_s", "e2e_s", "prompt_tokens", "output_tokens"))
            for line in requests:
                ends = (line["first_token_ts"] - line["queued_ts"], line["last_token_ts"] - line["queued_ts"])
                writer.writerow((line["arrival_time"] - requests[0]["arrival_time"], *ends, line["input_toks"], line["output_toks"]))
        tp, dp = settings["tensor_parallel_size"], settings["data_parallel_size"]
        words = ["score", "--requests", str(path), "--model", settings["model"], "--on", f"{tp * dp}x{CARDS[run.name.split('_')[0]]}"]
        words += ["--tp", str(tp)] + (["--dp", str(dp)] if dp > 1 else [])
        yield run.name, words + (["--ep", str(tp * dp)] if settings["enable_expert_parallel"] else [])


def main():
    """Diagnose and count what does not hold."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns() % 1_000_000
    print(f"seed {seed}, {count} runs", flush=True)
    rng, wrong = random.Random(seed), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases = [drawn(rng) for _ in range(count)]
        checks = [(str(case), partial(score_command, case, folder, number % 2 == 1)) for number, case in enumerate(cases)]
        if len(sys.argv) > 3:
            checks += [(run, partial(list, words)) for run, words in recorded(sys.argv[3], folder)]
        for text, words in checks:
            found = list(problems(words()))
            wrong += bool(found)
            for line in found:
                print(f"  {text}\n    {line}", flush=True)
    print(f"{len(checks)} runs, {wrong} with something that does not hold")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

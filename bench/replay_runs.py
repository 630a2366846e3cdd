"""Recorded runs of vLLM against their replay: python bench/replay_runs.py FOLDER [--no-prefixes], which holds a folder for each run.

A run's folder has requests.jsonl, timeseries.csv and meta.json. What its prompts share is in a file *.jsonl.gz of FOLDER: a line for each
request with input_length and hash_ids, as Mooncake's, of the engine's own blocks. Curves: mean absolute difference over the mean of the
measured curve.
"""

import sys
from pathlib import Path

from headway.core.errors import BadFile

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from reference.replayed_runs import fitted_replay, fleet_of, measured_stats, read_run, replay, with_prefixes

TTFT, CURVE, TPOT = 0.15, 0.10, 0.12  # what is asked of the scaled replay, and of the TPOT from first principles
ROW = "{:12} {:>7} {:>9} {:>8} {:>9} {:>8} {:>9} {:>9}"


def said(error, most):
    """An error, marked where it is more than was asked."""
    return f"{error:+.1%}{'' if abs(error) <= most else ' !'}"


def line(name, found, ttft=99.0, tpot=99.0, curve=99.0):
    """One replay."""
    ttft_text, tpot_text = f"{found.simulated.ttft_s:.3f}", f"{found.simulated.tpot_s * 1e3:.2f}"
    times = ttft_text, said(found.ttft_error, ttft), tpot_text, said(found.tpot_error, tpot)
    curves = said(found.running_error, curve), said(found.waiting_error, curve)
    print(ROW.format(name, f"{found.factor:.3f}", *times, *curves), f"{found.preemptions} preemptions")


def known(run, folder):
    """The run with what its prompts share, where a file says it."""
    for path in sorted(Path(folder).glob("*.jsonl.gz")):
        try:
            return with_prefixes(run, path, run.settings.block)
        except BadFile:
            continue
    return run


def main(folder, shared):
    """Every run under a folder."""
    for path in sorted(found.parent for found in Path(folder).glob("**/requests.jsonl")):
        run = known(read_run(path), folder) if shared else read_run(path)
        made, measured = fleet_of(run), measured_stats(run)
        print(f"\n{run.name}: {len(run.arrival)} requests; measured TTFT {measured.ttft_s:.3f} s, TPOT {measured.tpot_s * 1e3:.2f} ms")
        print(ROW.format("steps", "factor", "TTFT s", "error", "TPOT ms", "error", "running", "waiting"))
        line("scaled", fitted_replay(run, made), ttft=TTFT, curve=CURVE)
        line("as fitted", replay(run, made), tpot=TPOT)
        for factor in (0.9, 1.1):
            line(f"{factor - 1:+.0%}", replay(run, made, factor))


if __name__ == "__main__":
    main(sys.argv[1], "--no-prefixes" not in sys.argv)

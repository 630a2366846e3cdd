"""Tables of figures that a page states, each made from the file or the runs that it is of: `<!-- figures: NAME -->` stands above one.

`python tests/support/page_answers.py` writes them anew with the answers; the same test compares.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from headway.simulation.results import measured
from support.paths import ROOT
from support.served_runs import RUNS, curves, from_first_principles, replayed

LAW_NUMBERS = {
    "dense_mfu": "share of the peak that a dense model's prompts reach",
    "sparse_exponent": "how fast that falls with total over active parameters",
    "eff_compute": "share of the peak that decoding reaches",
    "eff_memory": "share of the bandwidth that it reaches",
    "step_fixed": "fixed time of a decode step, of each chip",
}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def inversion_laws() -> str:
    """The numbers of the cost laws that read prices backwards."""
    facts = tomllib.loads((ROOT / "src" / "headway" / "data" / "inversion.toml").read_text(encoding="utf-8"))["facts"]
    rows = []
    for name, meaning in LAW_NUMBERS.items():
        fact = facts[name]
        rows.append((f"`{name}`", f"{fact['value']:g} {fact['unit']}".strip(), meaning, str(fact["date"])))
    return table(("number", "value", "meaning", "date"), rows)


def served_runs() -> str:
    """Recorded runs of vLLM against their replay, and their TPOT from first principles."""
    rows = []
    for name in RUNS:
        seen, run = replayed(name)
        ttft = float(np.mean(measured(run, 0.0).ttft_s) / np.mean(seen["first_token_s"] - seen["arrival_s"]))
        apart = [f"{np.mean(np.abs(now - was)) / was.mean():.0%}" if was.max() > 20 else "-" for was, now in curves(seen, run)]
        errors = [f"{from_first_principles(name, engine):+.0%}" for engine in ("vllm", "none")]
        rows.append((name.replace("_", ", "), str(len(seen["output"])), f"{ttft - 1:+.0%}", *apart, *errors))
    head = ("run", "requests", "mean TTFT", "curve of running", "of waiting", "TPOT, `--engine vllm`", "TPOT, `--engine none`")
    return table(head, rows)


FIGURES: dict[str, Callable[[], str]] = {"inversion laws": inversion_laws, "served runs": served_runs}

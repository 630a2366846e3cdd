"""Simulated runs drawn at random, and what must hold of the diagnosis of any run, whoever measured it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headway.core import units
from support.benchmark_file import FaultyRun, write, write_log
from support.command import command

WORDS = 30
SUM, CLOCK, DIGITS = 1e-9, 1.02, 0.006  # of parts; of floors; of a number with three digits
EFFECT = re.compile(r"(TTFT|TPOT|tokens/s) (.+?)(?: as it should run)? -> (.+?) \(90 %: .*; try: headway (.*)")
LOOSE = re.compile(r"(TTFT|TPOT) .+? -> between (\S+) and (\S+) (\S+) \(90 %\).*; try: headway (.*)")  # ends further apart than ten times
COLUMNS = {"TTFT": "mean_ttft_s", "TPOT": "mean_tpot_s", "tokens/s": "output_tok_per_s"}
SETUPS: tuple[dict[str, Any], ...] = (
    {"model": "llama-3.1-8b", "tp": 1}, {"model": "llama-3.1-8b", "tp": 1, "chip": "l40s"},
    {"model": "llama-3.1-8b", "tp": 1, "replicas": 2},
    {"model": "llama-3.1-70b", "tp": 8}, {"model": "llama-3.1-70b", "tp": 4, "pp": 2},
    {"model": "qwen2.5-32b", "tp": 4, "chip": "h200-sxm"},
    {"model": "qwen3-30b-a3b", "tp": 2}, {"model": "qwen3-30b-a3b", "tp": 1, "dp": 4, "ep": 4}, {"model": "gpt-oss-120b", "tp": 4},
    {"model": "qwen3-next-80b-a3b", "tp": 4}, {"model": "gpt-oss-20b", "tp": 1},
)  # fmt: skip


def drawn(rng: random.Random) -> FaultyRun:
    """A run: light to far overloaded, in a closed loop, at a rate or all at once, short or long, slower by a known factor."""
    setup, count = rng.choice(SETUPS), rng.choice((60, 150, 400))
    lengths: dict[str, Any] = {"prompt": rng.choice((200, 1000, 4000)), "output": rng.choice((50, 150, 400))}
    kind = rng.choice(("users", "rate", "burst"))
    load: dict[str, Any] = {"users": count} if kind == "burst" else {}
    load |= {"users": min(rng.choice((1, 4, 16, 64, 200)), count - 1)} if kind == "users" else {}
    load |= {"rate": rng.choice((0.5, 3.0, 12.0, 60.0))} if kind == "rate" else {}
    limit = rng.choice((None, None, None, 16))
    spread: dict[str, Any] = {"spread": rng.choice((0.0, 0.8)), "output_spread": rng.choice((0.0, 0.7))}
    slower = rng.choice((0.9, 1.0, 1.0, 1.3, 2.5))
    return FaultyRun(cause="", requests=count, max_seqs=limit, slower=slower, **setup, **lengths, **load, **spread)


def score_command(case: FaultyRun, folder: Path, log: bool) -> list[str]:
    """`score` of the run's file, with the deployment as it should be."""
    path = write_log(case, folder / "requests.csv") if log else write(case, folder / "bench.json")
    argv = ["score", "--requests" if log else "--vllm", str(path), "--on", f"{case.chips}x{case.chip}", "--tp", str(case.tp)]
    argv += ["--model", case.model] if log else []
    degrees = {"pp": case.pp, "dp": case.dp * case.replicas, "ep": case.ep}
    return argv + [word for name, degree in degrees.items() if degree > 1 for word in (f"--{name}", str(degree))]


def problems(argv: Sequence[str]) -> Iterator[str]:
    """What does not hold of an answer of `score`: its first sentence, its parts, its floors, and each help beside its own command."""
    answer = command(*argv, "-o", "json").json
    if len(answer["answer"].split()) > WORDS or re.search(r"\de[+-]\d|nan|inf\b", answer["answer"]):
        yield f"sentence: {answer['answer']}"
    for row in answer["rows"]:
        yield from _row_problems(row)
    for helps in answer["helps"]:
        yield from _help_problems(helps)


def _row_problems(row: Mapping[str, Any]) -> Iterator[str]:
    measured, parts = row["measured"], row.get("parts") or {}
    if measured is None:
        return
    if row["of_limit"] > CLOCK:
        yield f"floor of {row['measure']}: {row['floor']:.4g} for {measured:.4g} {row['unit']}"
    if parts and abs(sum(parts.values()) - measured) > SUM * measured:
        yield f"parts of {row['measure']} sum to {sum(parts.values())} of {measured}"
    if any(not 0 <= part <= measured * (1 + SUM) for part in parts.values()):
        yield f"parts of {row['measure']} beyond 0 to 100 %: {parts}"


def _help_problems(helps: Mapping[str, Any]) -> Iterator[str]:
    found, loose = EFFECT.fullmatch(helps["effect"]), LOOSE.fullmatch(helps["effect"])
    if loose is not None:
        yield from _loose_problems(*loose.groups())
        return
    if found is None:
        yield f"effect: {helps['effect']}"
        return
    name, before, after, tried = found.groups()
    unit = "token/s" if name == "tokens/s" else "s"
    old, new = (units.parse(text, unit, name) for text in (before, after))
    row = command(*tried.split(), "-o", "json").rows[0]
    value, stem = row[COLUMNS[name]], COLUMNS[name].removesuffix("_s")
    if not row["stable"] or value is None:
        yield f"overloaded: {tried}"
        return
    low, high = row.get(f"{stem}_lo_s") or 0.0, row.get(f"{stem}_hi_s") or float("inf")
    if abs(new / value - 1) > DIGITS or (unit == "s" and not low * (1 - DIGITS) <= new <= high * (1 + DIGITS)):
        yield f"{name} {after} promised, {value:.4g} answered by {tried}"
    if (new >= old) if unit == "s" else (new <= old):
        yield f"no better: {helps['effect']}"


def _loose_problems(name: str, low: str, high: str, unit: str, tried: str) -> Iterator[str]:
    """Ends too far apart for a middle: what the command answers lies between them."""
    row = command(*tried.split(), "-o", "json").rows[0]
    ends = [units.parse(f"{end} {unit}", "s", name) for end in (low, high)]
    if not row["stable"] or not ends[0] <= row[COLUMNS[name]] <= ends[1]:
        yield f"{name} between {low} and {high} {unit} promised, {row[COLUMNS[name]]} answered by {tried}"

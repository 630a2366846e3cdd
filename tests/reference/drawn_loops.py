"""Random loads of both verbs: `serve` (a law) and `sim` (its independent truth) asked the same with the same flags.

Closed loops are asked as benchmarks run them: every user begins at once and asks ten times. Half have answers of one length, whose users
march in step, and half have lengths that scatter.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from support.command import command

MODELS = ("llama-3.1-8b", "llama-3.1-70b", "qwen3-32b", "qwen3-30b-a3b", "qwen3-235b-a22b", "gpt-oss-120b", "deepseek-v3", "mixtral-8x7b")
MACHINES = (
    ("h100-sxm", 1), ("2xh100-sxm", 2), ("8xh100-sxm", 8), ("8xh200-sxm", 8), ("b200", 1), ("8xb200", 8), ("8xmi300x", 8),
    ("4xa100-sxm-80", 4),
)  # fmt: skip
ENGINES = ("vllm", "sglang", "trtllm")
SEATS = 1024  # of an engine, unless the cache has room for fewer
HALF_WIDTHS = (0.0, 0.0, 0.0, 0.2, 0.4, 0.8)  # of uniform lengths, over their mean


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnLoop:
    """A closed loop as both verbs see it."""

    about: tuple[str, ...]
    engine: str
    users: int
    prompt: int
    output: int
    half_width: float

    @property
    def length_cv(self) -> float:
        """Standard deviation of the lengths over their mean."""
        return self.half_width / 3**0.5

    def served(self) -> dict[str, float] | None:
        """What `serve` says; None where it does not fit."""
        load = ("--batch", self.users, "--prompt", self.prompt, "--output", self.output, "--length-cv", f"{self.length_cv:.4f}")
        found = command("serve", *self.about, *load, "-o", "json")
        return found.rows[0] if found.status == 0 and found.rows[0]["fits"] else None

    def simulated(self) -> dict[str, float]:
        """What `sim` says."""
        lengths = ("--prompt", self.lengths(self.prompt), "--output", self.lengths(self.output))
        return command("sim", *self.about, "--users", self.users, *lengths, "--sensitivity", 0, "-o", "json").rows[0]

    def lengths(self, mean: int) -> str:
        """Lengths of a mean, in the words of `sim`."""
        ends = [max(1, round(mean * (1 + side * self.half_width))) for side in (-1, 1)]
        return f"uniform:{ends[0]},{ends[1]}" if self.half_width else str(mean)


def between(rng: random.Random, least: float, most: float) -> int:
    """A whole number, as likely in each octave."""
    return round(least * (most / least) ** rng.random())


def drawn_loops(count: int, seed: int) -> Iterator[tuple[DrawnLoop, dict[str, float], dict[str, float]]]:
    """So many random closed loops that fit, with the rows of both verbs."""
    rng = random.Random(seed)
    while count:
        model, (machine, tp), engine = rng.choice(MODELS), rng.choice(MACHINES), rng.choice(ENGINES)
        loop = DrawnLoop(
            about=(model, "--on", machine, "--tp", str(tp), "--engine", engine), engine=engine, users=between(rng, 1, 256),
            prompt=between(rng, 128, 8192), output=between(rng, 64, 2048), half_width=rng.choice(HALF_WIDTHS),
        )  # fmt: skip
        row = loop.served()
        if row is not None:
            count -= 1
            yield loop, row, loop.simulated()


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnCapacity:
    """What both verbs promise at most of requests that arrive at a rate."""

    words: str
    prompt: int
    output: int
    served: float  # requests per second by the law
    simulated: float
    in_whole: bool  # the cache holds whole answers of all seats

    @property
    def promised(self) -> float:
        """By how much the law promises more."""
        return self.served / self.simulated - 1


def drawn_capacities(count: int, seed: int, longest: int = 8192) -> Iterator[DrawnCapacity]:
    """So many random loads that fit; lengths up to `longest` tokens of prompt, a quarter of it of answer."""
    rng = random.Random(seed)
    while count:
        model, (machine, tp), engine = rng.choice(MODELS), rng.choice(MACHINES), rng.choice((*ENGINES, "other"))
        prompt, output = between(rng, 16, longest), between(rng, 4, longest / 4)
        about = (model, "--on", machine, "--tp", str(tp), "--engine", engine)
        load = ("--prompt", prompt, "--output", output, "-o", "json")
        served = command("serve", *about, "--rate", 0.01, *load)
        if served.status or not served.rows[0]["fits"]:
            continue
        row = served.rows[0]
        rate = row["capacity_req_per_s"] / 2
        simulated = command("sim", *about, "--rate", rate, *load, "--requests", 500, "--sensitivity", 0).rows[0]
        count -= 1
        yield DrawnCapacity(
            words=" ".join((*about, f"--prompt {prompt} --output {output}")), prompt=prompt, output=output, served=2 * rate,
            simulated=simulated["capacity_req_per_s"], in_whole=row["max_concurrency"] >= SEATS,
        )  # fmt: skip

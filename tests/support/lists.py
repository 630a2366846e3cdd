"""Lists of machines, models and formats put to `plan`: the winner of a list beside the cheapest of its members, each asked alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from support.command import Answer, unhelped

MACHINES = ("h100-sxm", "h200-sxm", "b200-sxm", "mi300x", "a100-sxm", "mi325x", "gb200-nvl72")
FIXED = ("8xh100-sxm", "8xh200-sxm", "8xb200-sxm", "8xmi300x", "16xh100-sxm", "8xa100-sxm")
MODELS = ("llama-3.1-8b", "qwen3-32b", "llama-3.1-70b", "qwen3-30b-a3b", "gpt-oss-120b", "qwen3-235b-a22b", "deepseek-v3.1")
CLOSE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedQuestion:
    """A question with one list: the flag before the list ("" for the model), its members, and the other words."""

    flag: str
    members: tuple[str, ...]
    words: tuple[str, ...]

    def command(self, members: Sequence[str]) -> list[str]:
        """The command with some of the members."""
        text = ",".join(members)
        return ["plan", *([text] if not self.flag else []), *self.words, *([self.flag, text] if self.flag else []), "-o", "json"]


def drawn(rng: random.Random, models: Sequence[str] = MODELS, machines: Sequence[str] = MACHINES, loaded: bool = True) -> ListedQuestion:
    """A random question with a list of 2 to 4 members: machines mostly, else models or formats of weights."""
    words = ["--prompt", str(rng.choice((500, 1000, 2000, 4000))), "--output", str(rng.choice((100, 200, 600)))]
    words += ["--tpot", rng.choice(("25ms", "40ms", "60ms"))]
    if loaded:
        words += ["--users", str(rng.choice((50, 200, 800)))] if rng.random() < 0.25 else ["--rate", str(rng.choice((2, 5, 12, 40)))]
        words += rng.choice((["--ttft-p95", "1.5s"], ["--ttft-p95", "3s"], ["--e2e-p90", "40s"], []))
    else:
        words += rng.choice((["--ttft", "2s"], []))
    words += rng.choice((["--launch", "vllm"], ["--launch", "sglang"], [], [], [], []))
    kind = rng.random()
    pool = list(machines if loaded else FIXED)
    if kind < 0.7:
        return ListedQuestion(flag="--on", members=tuple(rng.sample(pool, rng.choice((2, 3, 4)))), words=(rng.choice(models), *words))
    words += ["--on", rng.choice(pool)]
    if kind < 0.85:
        return ListedQuestion(flag="", members=tuple(rng.sample(models, 2)), words=tuple(words))
    return ListedQuestion(flag="--weights", members=("bf16", "fp8"), words=(rng.choice(models), *words))


def cost(answer: dict[str, Any]) -> float | None:
    """What the first sentence names: dollars per month at a load, else of a thousand requests; None where nothing keeps the limits."""
    row = answer["rows"][0]
    loaded = row.get("rate") is not None or row.get("nodes") is not None
    holds = row["fits"] and not row["why"] and not answer["answer"].startswith("No layout")
    return (row["usd_per_month"] if loaded else row["usd_per_1k_requests"]) if holds else None


def _asked(question: ListedQuestion, members: Sequence[str]) -> float | None:
    with unhelped():
        answer = Answer.of(question.command(members))
    return None if answer.status else cost(answer.json)


def disagreement(question: ListedQuestion) -> str:
    """How the winner of the list, in both orders, differs from the cheapest of the members alone; "" if it does not."""
    alone = {member: _asked(question, [member]) for member in question.members}
    known = [value for value in alone.values() if value is not None]
    for members in (question.members, question.members[::-1]):
        winner = _asked(question, members)
        ratio = None if winner is None or not known else winner / min(known)
        mixed = question.flag == "--tp" and ratio is not None and ratio < 1  # two pools take a degree each, which no member alone has
        if (winner is None) != (not known) or (ratio is not None and abs(ratio - 1) > CLOSE and not mixed):
            return f"{' '.join(question.command(members))}: {winner}, alone {alone}"
    return ""

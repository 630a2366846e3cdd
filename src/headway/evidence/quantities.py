"""What each kind of task asks of its machine: times and rates, expected and at the floor, all rows of a kind at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.evidence.machines import Machines
from headway.laws.closed_loop import Loop, closed_loop
from headway.laws.queue import prompt_chunks
from headway.laws.serving import (
    causal_pairs,
    decode_tok_per_s,
    final_context,
    held_kv_tokens,
    per_chip,
    pipelined_s,
    tpot_s,
)
from headway.laws.step import step_floor_s, step_s

NOTHING = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What rows of one kind ask: arrays along them, NaN where a kind has no such number."""

    prompt: Any
    output: Any
    context: Any
    batch: Any
    users: Any  # of all replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantities:
    """Predictions of rows: arrays along them, NaN where a kind has no such quantity."""

    ttft: Any
    tpot: Any
    rate: Any  # tokens/s of all chips: generated, of a prefill read
    per_chip: Any


def quantities(kind: str, m: Machines, load: Load, floor: bool) -> Quantities:
    """All quantities of rows of one kind, at the expected efficiencies or at the floor."""
    return KINDS[kind](m, load, functools.partial(step_floor_s if floor else step_s, m.step))


def _missing(load: Load) -> Any:
    return np.full(np.shape(load.prompt), np.nan)


def _decode(m: Machines, load: Load, step: Callable[..., Any]) -> Quantities:
    """A decode step at a stated context and batch."""
    tpot = step(load.batch, held_kv_tokens(load.batch, load.context), NOTHING, NOTHING)
    rate = decode_tok_per_s(load.batch, tpot, m.replicas)
    return Quantities(ttft=_missing(load), tpot=tpot, rate=rate, per_chip=per_chip(rate, m.chips))


def _mean_tpot(load: Load, batch: Any, step: Callable[..., Any]) -> Any:
    """TPOT over the growing context of a batch that starts together."""
    contexts = (load.prompt, load.prompt + load.output / 2, final_context(load.prompt, load.output))
    return tpot_s(*(step(batch, held_kv_tokens(batch, context), NOTHING, NOTHING) for context in contexts))


def _prompt_s(m: Machines, load: Load, prompts: Any, step: Callable[..., Any]) -> Any:
    """Prompts with nothing beside them, a chunk in each step; the chunks follow one another through the pipeline."""
    tokens, pairs = prompts * load.prompt, prompts * causal_pairs(load.prompt)
    chunks = prompt_chunks(tokens, m.scheduling.budget * m.step.dp)
    return pipelined_s(step(NOTHING, NOTHING, tokens / chunks, pairs / chunks), chunks, m.step.pp)


def _whole(m: Machines, load: Load, step: Callable[..., Any]) -> Quantities:
    """A fixed batch from its prompts to its last tokens: the rate counts the prefill's time."""
    ttft, tpot = _prompt_s(m, load, load.batch, step), _mean_tpot(load, load.batch, step)
    rate = load.batch * load.output / (ttft + (load.output - 1) * tpot) * m.replicas
    return Quantities(ttft=ttft, tpot=tpot, rate=rate, per_chip=per_chip(rate, m.chips))


def _prefill(m: Machines, load: Load, step: Callable[..., Any]) -> Quantities:
    ttft = _prompt_s(m, load, load.batch, step)
    rate = load.batch * load.prompt / ttft * m.replicas
    return Quantities(ttft=ttft, tpot=_missing(load), rate=rate, per_chip=per_chip(rate, m.chips))


def _unloaded(m: Machines, load: Load, step: Callable[..., Any]) -> Quantities:
    ttft = _prompt_s(m, load, 1.0, step) + m.scheduling.request
    return Quantities(ttft=ttft, tpot=_mean_tpot(load, 1.0, step), rate=_missing(load), per_chip=_missing(load))


def loop_of(m: Machines, load: Load, users: Any) -> Loop:
    """A closed loop of so many users on one replica."""
    s = m.scheduling
    return Loop(
        users=users, seats=m.seats(load.prompt, load.output), prompt=load.prompt, output=load.output, budget=s.budget * m.step.dp,
        mixed=s.mixed, together=s.together, overhead=s.request,
    )  # fmt: skip


def _serving(m: Machines, load: Load, step: Callable[..., Any]) -> Quantities:
    """A closed loop of users."""
    seen = closed_loop(step, loop_of(m, load, np.maximum(load.users / m.replicas, 1)))
    rate = seen.rate * load.output * m.replicas
    return Quantities(ttft=seen.ttft, tpot=seen.tpot, rate=rate, per_chip=per_chip(rate, m.chips))


def _offline(m: Machines, load: Load, step: Callable[..., Any]) -> Quantities:
    """As many sequences as the machine holds, or as were asked for, always in service."""
    seats = m.seats(load.prompt, load.output)
    users = np.where(np.isnan(load.users), seats, np.minimum(load.users / m.replicas, seats))
    seen = closed_loop(step, loop_of(m, load, users))
    rate = seen.rate * load.output * m.replicas
    return Quantities(ttft=_missing(load), tpot=seen.tpot, rate=rate, per_chip=per_chip(rate, m.chips))


KINDS: dict[str, Callable[..., Quantities]] = {
    "decode": _decode, "decode_e2e": _whole, "prefill": _prefill, "serving": _serving, "serving_unloaded": _unloaded,
    "offline": _offline, "static": _whole, "disagg": _serving,
}  # fmt: skip

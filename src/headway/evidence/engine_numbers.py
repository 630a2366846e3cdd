"""The numbers of engines that serving rows decide: what each means, and what is believed of it before any row is seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from headway.efficiency import Efficiencies
from headway.quantity import known

MS, US = 1e-3, 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineNumber:
    """One number: fixed when `spread` is 0, else believed within a factor exp(spread) of `prior` (one standard deviation)."""

    section: str
    key: str
    prior: float
    spread: float
    unit: str
    meaning: str
    most: float

    def at(self, z: float) -> float:
        """The number so many standard deviations of the prior away from it."""
        return min(self.prior * math.exp(self.spread * z), self.most)


MEANINGS = {
    "launch": ("", "factor on kernels' fixed costs: below 1 where it fuses what was measured apart, or launches ahead"),
    "step": ("s", "the engine's own work in each step, exposed"),
    "layer": ("s", "and in each layer: launches that no graph hides, kernels that are not fused"),
    "split": ("s", "and in each layer for each chip that it is split over, where the host joins the parts"),
    "sequence": ("s", "and for each sequence of a rank: sampling, bookkeeping"),
    "stream": ("s", "and where answers are streamed: de-tokenising, sending"),
    "compute": ("", "share of peak FLOP/s that its kernels reach, over the best measured"),
    "memory": ("", "share of HBM bandwidth that its kernels reach, over the best measured"),
    "weight_only": ("", "both shares again, in dense matmuls of weights that are widened first"),
    "attention": ("", "both shares again, in attention"),
    "expert": ("", "both shares again, in routed experts"),
    "request": ("s", "work on a request before and after the model's: HTTP, tokenising, scheduling"),
    "together": ("", "share of requests whose prompts come all at once: those of a run's start, or all where prompts go before decodes"),
    "company": ("", "other prompts that come with one even so"),
    "budget": ("token", "prompt tokens that a step of one rank takes at most"),
    "mixed": ("", "1 where prompt chunks ride along with decodes, 0 where prompts go in steps of their own"),
    "reserve": ("", "part of an answer whose cache is set aside when it is admitted"),
    "limit": ("", "sequences of one rank at most"),
    "pipeline": ("", "share of a prompt's chunks that overlap in pipeline stages"),
    "hbm": ("", "memory for weights and cache over the datasheet's capacity in GB"),
}


SHARES = ("together", "pipeline", "mixed", "reserve")


def number(section: str, key: str, prior: float, spread: float = 0.0) -> EngineNumber:
    """A number with what its key means."""
    unit, meaning = MEANINGS[key]
    streams = key == "memory" and section.startswith("engine.")  # no faster than the kernels measured: the rest is the platform's
    most = 1.0 if key in SHARES or streams else math.inf
    return EngineNumber(section=section, key=key, prior=prior, spread=spread, unit=unit, meaning=meaning, most=most)


def numbers() -> tuple[EngineNumber, ...]:
    """Every number of engines and platforms, free or fixed."""
    none = [number("engine.none", key, 0.0) for key in ("step", "layer", "split", "sequence", "stream")]
    none += [number("engine.none", key, 1.0) for key in ("launch", "compute", "memory", "attention", "expert")]
    fallback = [
        number("engine.other", "launch", 0.8, 0.4), number("engine.other", "step", 0.5 * MS, 0.7), number("engine.other", "layer", 0.0),
        number("engine.other", "split", 0.0), number("engine.eager", "layer", 200 * US, 0.7),
        number("engine.waiting", "step", 1.0 * MS, 0.7), number("engine.other", "weight_only", 0.95, 0.15),
        number("engine.other", "sequence", 5 * US, 1.0), number("engine.other", "stream", 5 * US, 1.0),
        number("engine.other", "compute", 0.9), number("engine.other", "memory", 0.95, 0.15),
        number("engine.other", "attention", 1.0), number("engine.other", "expert", 0.9, 0.2),
        number("engine.other", "request", 15 * MS), number("engine.other", "together", 0.1), number("engine.other", "company", 0.5, 0.8),
        number("engine.other", "budget", 8192.0), number("engine.other", "mixed", 1.0), number("engine.other", "reserve", 0.5),
        number("engine.other", "limit", 1024.0), number("engine.other", "pipeline", 0.8), number("engine.other", "hbm", 0.95, 0.02),
    ]  # fmt: skip
    served = [
        number("engine.vllm", "step", 0.5 * MS, 0.7), number("engine.vllm", "compute", 0.9, 0.15),
        number("engine.vllm", "memory", 0.95, 0.15), number("engine.vllm", "request", 15 * MS, 0.7),
        number("engine.vllm", "together", 0.1, 0.5),
        number("engine.sglang", "step", 1.5 * MS, 0.7), number("engine.sglang", "request", 15 * MS, 0.7),
        number("engine.sglang", "together", 0.6, 0.5), number("engine.sglang", "mixed", 0.0),
        number("engine.trtllm", "step", 1.0 * MS, 0.7), number("engine.trtllm", "compute", 0.9, 0.15),
        number("engine.trtllm", "memory", 0.95, 0.15),
        number("engine.trtllm", "request", 15 * MS, 0.7), number("engine.trtllm", "together", 0.1, 0.5),
        number("engine.trtllm", "reserve", 1.0),
    ]  # fmt: skip
    local = [
        number("engine.llamacpp", "launch", 1.0), number("engine.llamacpp", "step", 0.3 * MS),
        number("engine.llamacpp", "layer", 30 * US, 0.7), number("engine.llamacpp", "budget", 512.0),
        number("engine.llamacpp", "compute", 0.6, 0.5), number("engine.llamacpp", "attention", 0.5, 0.7),
        number("engine.llamacpp", "memory", 0.9), number("engine.llamacpp", "request", 0.0),
        number("engine.llamacpp", "pipeline", 0.6, 0.5), number("engine.llamacpp", "split", 100 * US, 0.7),
        number("engine.llamacpp", "weight_only", 1.0, 0.15), number("engine.llamacpp.card", "memory", 0.95, 0.2),
        number("engine.llamacpp.datacenter", "memory", 0.9, 0.2),
    ]  # fmt: skip
    platforms = [number("platform.other", "compute", 1.0), number("platform.other", "memory", 1.0)]
    platforms += [number("platform.card", "memory", 1.0, 0.2)]
    platforms += [number("platform.amd", "compute", 0.8, 0.1), number("platform.amd", "memory", 0.85, 0.1)]
    return (*none, *fallback, *served, *local, *platforms)


def table_at(base: Efficiencies, engine_numbers: Sequence[EngineNumber], values: Sequence[float]) -> Efficiencies:
    """The efficiencies with these numbers in place of what they had."""
    sections = {name: dict(section) for name, section in base.sections.items() if not name.startswith(("engine.", "platform."))}
    for entry, value in zip(engine_numbers, values, strict=True):
        fact = known(value, f"{entry.section}.{entry.key}", entry.unit, "fitted", entry.meaning)
        sections.setdefault(entry.section, {})[entry.key] = fact
    return Efficiencies(sections)

"""Numbers of engines and platforms that are fitted or stated: priors, meanings, and their lines in data/efficiency.toml."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headway.evidence.fit.priors import PriorNumber, overlaid
from headway.performance.achieved import Efficiencies

MS, US = 1e-3, 1e-6

MEANINGS = {
    "launch_factor": ("", "factor on kernels' fixed costs: below 1 where it fuses what was measured apart, or launches ahead"),
    "prompt_launch_s": ("s", "the host's time for each kernel of a step with prompts, which no captured graph replays"),
    "prompt_routed_s": ("s", "and for each layer of routed experts in such a step: their choice, sorting, grouped kernels"),
    "captured_tokens": ("token", "tokens of a step with prompts up to which captured graphs replay its kernels"),
    "step_overhead_s": ("s", "the engine's own work in each step, exposed"),
    "layer_overhead_s": ("s", "and in each layer: launches that no graph hides, kernels that are not fused"),
    "split_overhead_s": ("s", "and in each layer for each chip that it is split over, where the host joins the parts"),
    "sequence_overhead_s": ("s", "and for each sequence of a rank: sampling, bookkeeping"),
    "streaming_overhead_s": ("s", "and where answers are streamed: de-tokenising, sending"),
    "compute_factor": ("", "share of peak FLOP/s that its kernels reach, over the best measured"),
    "memory_factor": ("", "share of HBM bandwidth that its kernels reach, over the best measured"),
    "weight_only_factor": ("", "both shares again, in dense matmuls of weights that are widened first"),
    "attention_factor": ("", "both shares again, in attention"),
    "expert_factor": ("", "both shares again, in routed experts"),
    "request_overhead_s": ("s", "work on a request before and after the model's: HTTP, tokenising, scheduling"),
    "synchronised_share": (
        "",
        "share of requests of one length whose prompts come all at once: where prompts go before decodes, all end together",
    ),
    "concurrent_prompts": ("", "other prompts that come with one even so"),
    "step_budget_tokens": ("token", "prompt tokens that a step of one rank takes at most"),
    "chunked_prefill": ("", "1 where prompt chunks ride along with decodes, 0 where prompts go in steps of their own"),
    "reserved_output_share": ("", "part of an answer whose cache is set aside when it is admitted"),
    "max_sequences": ("", "sequences of one rank at most"),
    "pipeline_overlap_share": ("", "share of a prompt's chunks that overlap in pipeline stages"),
    "yearly_growth": ("", "growth a year back in time of launches and of an engine's own work, in the logarithm"),
    "first_round_share": ("", "share of a run's requests whose prompts come all at once at its start: benchmarks send some ten a user"),
    "start_share": ("", "share of requests that come at once where prompts have workers of their own: those of a run's start"),
    "mma_share": ("", "share of the peak of chips with matrix instructions of several warps that it reaches without them"),
    "power_exponent": ("", "of power per FLOP over A100's: how the clocks of cards follow it, and those under llama.cpp"),
    "usable_hbm_factor": ("", "memory for weights and cache over the datasheet's capacity in GB"),
}


OVERHEADS = ("step_overhead_s", "layer_overhead_s", "split_overhead_s", "sequence_overhead_s", "streaming_overhead_s", "prompt_launch_s",
             "prompt_routed_s")  # fmt: skip
FACTORS = ("launch_factor", "compute_factor", "memory_factor", "attention_factor", "expert_factor")
SHARES = ("first_round_share", "start_share", "synchronised_share", "pipeline_overlap_share", "chunked_prefill", "reserved_output_share")


def number(section: str, key: str, prior: float, spread: float = 0.0) -> PriorNumber:
    """Engine number with unit, meaning and limit of its key."""
    unit, meaning = MEANINGS[key]
    streams = key == "memory_factor" and section.startswith("engine.")  # at most that of the measured kernels
    most = 1.0 if key in SHARES or streams else math.inf
    return PriorNumber(section=section, key=key, prior=prior, spread=spread, unit=unit, meaning=meaning, most=most)


def numbers() -> tuple[PriorNumber, ...]:
    """All numbers of engines and platforms, free or fixed."""
    none = [number("engine.none", key, 0.0) for key in OVERHEADS] + [number("engine.none", key, 1.0) for key in FACTORS]
    fallback = [
        number("engine.other", "launch_factor", 0.8, 0.4), number("engine.other", "step_overhead_s", 0.5 * MS, 0.7),
        number("engine.other", "layer_overhead_s", 0.0), number("engine.other", "split_overhead_s", 0.0),
        number("engine.eager", "layer_overhead_s", 200 * US, 0.7), number("engine.waiting", "step_overhead_s", 1.0 * MS, 0.7),
        number("engine.other", "weight_only_factor", 0.95, 0.15), number("engine.other", "yearly_growth", 0.2, 0.7),
        number("engine.other", "sequence_overhead_s", 5 * US, 1.0), number("engine.other", "streaming_overhead_s", 5 * US, 1.0),
        number("engine.other", "compute_factor", 0.9), number("engine.other", "memory_factor", 0.95, 0.15),
        number("engine.other", "attention_factor", 1.0), number("engine.other", "expert_factor", 0.9, 0.2),
        number("engine.other", "request_overhead_s", 15 * MS), number("engine.other", "synchronised_share", 0.0),
        number("engine.other", "prompt_launch_s", 20 * US, 0.7), number("engine.other", "concurrent_prompts", 2.0, 0.8),
        number("engine.other", "prompt_routed_s", 0.3 * MS, 0.7), number("engine.other", "captured_tokens", 0.0),
        number("engine.other", "start_share", 0.1, 0.7),
        number("engine.other", "first_round_share", 0.1, 0.2),
        number("engine.other", "step_budget_tokens", 8192.0), number("engine.other", "chunked_prefill", 1.0),
        number("engine.other", "reserved_output_share", 0.5), number("engine.other", "max_sequences", 1024.0),
        number("engine.other", "pipeline_overlap_share", 0.8), number("engine.other", "usable_hbm_factor", 0.95, 0.02),
    ]  # fmt: skip
    local = [
        number("engine.llamacpp", "launch_factor", 1.0), number("engine.llamacpp", "prompt_launch_s", 0.0),
        number("engine.llamacpp", "prompt_routed_s", 0.0),
        number("engine.llamacpp", "step_overhead_s", 0.3 * MS),
        number("engine.llamacpp", "layer_overhead_s", 30 * US, 0.7), number("engine.llamacpp", "step_budget_tokens", 512.0),
        number("engine.llamacpp", "compute_factor", 0.6, 0.5), number("engine.llamacpp", "attention_factor", 0.5, 0.7),
        number("engine.llamacpp", "memory_factor", 0.9), number("engine.llamacpp", "request_overhead_s", 0.0),
        number("engine.llamacpp", "pipeline_overlap_share", 0.6, 0.5), number("engine.llamacpp", "split_overhead_s", 100 * US, 0.7),
        number("engine.other", "mma_share", 1.0), number("engine.llamacpp", "mma_share", 0.62, 0.2),
        number("engine.llamacpp", "weight_only_factor", 1.0, 0.15), number("engine.llamacpp.card", "memory_factor", 0.95, 0.2),
        number("engine.native", "launch_factor", 1.0), number("engine.native", "yearly_growth", 0.0),
        number("engine.llamacpp.datacenter", "memory_factor", 0.9, 0.2),
    ]  # fmt: skip
    return (*none, *fallback, *_servers(), *local, *_platforms())


def _servers() -> list[PriorNumber]:
    """Numbers of the engines that serve many users."""
    return [
        number("engine.vllm", "step_overhead_s", 0.5 * MS, 0.7), number("engine.vllm", "compute_factor", 0.9, 0.15),
        number("engine.vllm", "memory_factor", 0.95, 0.15), number("engine.vllm", "request_overhead_s", 15 * MS, 0.4),
        number("engine.vllm", "concurrent_prompts", 2.0, 0.8),
        number("engine.vllm", "captured_tokens", 512.0),  # the largest of its default capture sizes
        number("engine.sglang", "step_overhead_s", 1.5 * MS, 0.7), number("engine.sglang", "request_overhead_s", 15 * MS, 0.4),
        number("engine.sglang", "synchronised_share", 0.6, 0.5), number("engine.sglang", "chunked_prefill", 0.0),
        number("engine.trtllm", "step_overhead_s", 1.0 * MS, 0.7), number("engine.trtllm", "compute_factor", 0.9, 0.15),
        number("engine.trtllm", "memory_factor", 0.95, 0.15), number("engine.trtllm", "request_overhead_s", 15 * MS, 0.4),
        number("engine.trtllm", "concurrent_prompts", 2.0, 0.8), number("engine.trtllm", "reserved_output_share", 1.0),
    ]  # fmt: skip


def _platforms() -> list[PriorNumber]:
    """Numbers of kinds of machines."""
    platforms = [number("platform.other", "compute_factor", 1.0), number("platform.other", "memory_factor", 1.0)]
    platforms += [number("platform.other", "power_exponent", 0.4, 0.5), number("platform.card", "memory_factor", 1.0, 0.2)]
    platforms += [number("platform.host", "compute_factor", 1.0, 0.3), number("platform.host", "memory_factor", 1.0, 0.2)]
    platforms += [number("platform.amd", "compute_factor", 0.8, 0.1), number("platform.amd", "memory_factor", 0.85, 0.1)]
    return platforms


def table_at(base: Efficiencies, engine_numbers: Sequence[PriorNumber], values: Sequence[float]) -> Efficiencies:
    """Efficiencies whose engine and platform numbers are replaced by these values."""
    other_sections = {name: section for name, section in base.sections.items() if not name.startswith(("engine.", "platform."))}
    return overlaid(other_sections, engine_numbers, values)

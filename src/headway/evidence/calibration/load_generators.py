"""A run as commands of the usual load generators, whose results `calibrate` reads.

Flags as documented (read 2026-11-26): vLLM, docs.vllm.ai/en/latest/cli/bench/serve and .../bench/throughput; NVIDIA AIPerf,
docs.nvidia.com/aiperf/reference/command-line-options; GuideLLM, github.com/vllm-project/guidellm, README, `guidellm benchmark run`.
Answers go on to their full length, so that a run has the lengths that it is predicted for.
"""

from __future__ import annotations

from dataclasses import dataclass

REQUESTS_A_USER = 10  # of a run, as InferenceX sends them (SemiAnalysisAI/InferenceX, benchmarks: num-prompts): most of it is steady
FEWEST_REQUESTS = 32  # of which a mean is worth something
OFFLINE_REQUESTS = 1000  # the default of vllm bench throughput
URL = "http://localhost:8000"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLoad:
    """Load of a run to make: lengths in tokens, and users at a time; None where all requests come at once."""

    model: str
    prompt: int
    output: int
    users: int | None = None

    @property
    def requests(self) -> int:
        """Requests of the run."""
        return OFFLINE_REQUESTS if self.users is None else max(REQUESTS_A_USER * self.users, FEWEST_REQUESTS)


def commands(load: RunLoad) -> tuple[str, ...]:
    """The commands that make a run, each of another generator; offline vLLM's own.

    >>> print(commands(RunLoad(model="llama-3.1-8b", prompt=1000, output=100))[0])
    vllm bench throughput --model llama-3.1-8b --dataset-name random --random-input-len 1000 --random-output-len 100 --num-prompts 1000 \
--output-json run.json
    """
    lengths = f"--dataset-name random --random-input-len {load.prompt} --random-output-len {load.output} --num-prompts {load.requests}"
    if load.users is None:
        return (f"vllm bench throughput --model {load.model} {lengths} --output-json run.json",)
    return (
        f"vllm bench serve --model {load.model} {lengths} --ignore-eos --max-concurrency {load.users} --save-result",
        f"aiperf profile --model {load.model} --url {URL} --endpoint-type completions --streaming --isl {load.prompt} --osl {load.output} "
        f"--extra-inputs ignore_eos:true --concurrency {load.users} --request-count {load.requests}",
        f"guidellm benchmark run --target {URL} --profile concurrent --rate {load.users} --max-requests {load.requests} "
        f'--data "prompt_tokens={load.prompt},output_tokens={load.output}"',
    )

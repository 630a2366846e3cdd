"""What a probe sends, stage by stage, before anything is sent: warm-up, requests at random moments, then rising concurrency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headway.reality.probe.budget import Limits
from headway.reality.probe.prompts import FRAME

WARM_UP, SPARSE, LOAD = "warm-up", "sparse", "load"
SPARSE_REQUESTS, SPARSE_TOKENS = 24, 4  # one by one, at moments that follow no clock: their waits show departures
ROUNDS, LEAST = 3, 6  # requests of each user of a stage, and of a stage
UNEVEN = 0.25  # by which an answer of a load is longer or shorter, so that requests do not end in step


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeStage:
    """So many requests of about these lengths, so many at once."""

    kind: str
    prompt: int
    output: int
    concurrency: int
    requests: int

    @property
    def most_in(self) -> int:
        """Tokens that are reserved for a prompt of it, once the server has counted one."""
        return round(1.1 * self.prompt) + FRAME


def stages(prompts: Sequence[int], output: int, concurrencies: Sequence[int]) -> Iterator[ProbeStage]:
    """Every stage in order, the gentlest first."""
    for prompt in sorted(prompts):
        yield ProbeStage(kind=WARM_UP, prompt=prompt, output=output, concurrency=1, requests=1)
    yield ProbeStage(kind=SPARSE, prompt=min(prompts), output=min(output, SPARSE_TOKENS), concurrency=1, requests=SPARSE_REQUESTS)
    for concurrency in sorted(concurrencies):
        for prompt in sorted(prompts):
            requests = max(ROUNDS * concurrency, LEAST)
            yield ProbeStage(kind=LOAD, prompt=prompt, output=output, concurrency=concurrency, requests=requests)


def schedule(prompts: Sequence[int], output: int, concurrencies: Sequence[int], most: Limits) -> tuple[list[ProbeStage], list[ProbeStage]]:
    """The stages that a budget of requests and tokens holds, and those that it does not; a larger one of the same length never follows."""
    planned, beyond = list[ProbeStage](), list[ProbeStage]()
    requests = tokens_in = tokens_out = 0
    for stage in stages(prompts, output, concurrencies):
        sums = (requests + stage.requests, tokens_in + stage.requests * stage.prompt, tokens_out + stage.requests * stage.output)
        reserved = tokens_in + stage.requests * stage.most_in
        fits = sums[0] <= most.requests and reserved <= most.tokens_in and sums[2] <= most.tokens_out
        if fits and not any(larger.prompt <= stage.prompt and larger.kind in (stage.kind, WARM_UP) for larger in beyond):
            planned.append(stage)
            requests, tokens_in, tokens_out = sums
        else:
            beyond.append(stage)
    return planned, beyond

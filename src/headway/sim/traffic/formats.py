"""The formats of traces, each told by the names in its first line."""

from __future__ import annotations

from dataclasses import dataclass

from headway.sim.traffic import cells

CONVERSATION = ("conversation", "Session ID".lower(), "Session_ID".lower(), "Session".lower())


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFormat:
    """A table of requests: what its columns are called (lower case) and what they mean."""

    name: str
    arrival: str
    prompt: str
    output: str
    time: cells.Column  # how an arrival is written
    tick_s: float  # what it counts
    failures: bool  # a row without output tokens is a request that failed, not a malformed line

    @property
    def header(self) -> str:
        return f"{self.arrival},{self.prompt},{self.output}"


TABLES = (
    TraceFormat(
        name="azure", arrival="timestamp", prompt="contexttokens", output="generatedtokens", time=cells.stamps, tick_s=1e-9, failures=False
    ),
    TraceFormat(
        name="burstgpt",
        arrival="timestamp",
        prompt="request tokens",
        output="response tokens",
        time=cells.seconds,
        tick_s=1.0,
        failures=True,
    ),
    TraceFormat(
        name="vidur",
        arrival="arrived_at",
        prompt="num_prefill_tokens",
        output="num_decode_tokens",
        time=cells.seconds,
        tick_s=1.0,
        failures=False,
    ),
    TraceFormat(name="plain", arrival="arrival_s", prompt="prompt", output="output", time=cells.seconds, tick_s=1.0, failures=False),
)
KNOWN = (
    "; ".join(f"{table.name} ({table.header})" for table in TABLES) + "; mooncake (JSON lines with timestamp, input_length, output_length)"
)


def recognised(header: list[str]) -> TraceFormat | None:
    """The format whose three columns are all named, in any order and letter case."""
    return next((table for table in TABLES if {table.arrival, table.prompt, table.output} <= set(header)), None)

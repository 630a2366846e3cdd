"""Requests of a bill from the command line: a trace, drawn traffic, or the totals of a day."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

from headway.core import schema, units
from headway.core.errors import BadValue
from headway.core.notes import note
from headway.economics.bill_requests import requests_of, requests_of_totals
from headway.simulation.traffic.distributions import parse_arrivals, parse_lengths
from headway.simulation.traffic.generate import ConversationTurns, generate, generate_conversations, parse_turns
from headway.simulation.traffic.read import read_trace
from headway.simulation.traffic.requests import LONGEST

REQUESTS = 10_000
GAP_S = 60.0
ARRIVALS, SEED = "poisson", "0"
MOST_TOKENS = 1e18
SAMPLE_SOURCE = "drawn from the workload given"
TOTALS = ("input", "cached", "output")
CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


def read(args: Any) -> Any:
    """The requests that are billed."""
    if args.tokens:
        alone = [
            schema.flag(key)
            for key in ("requests", "prompt", "shared", "output", "rate", "turns", "trace_block")
            if getattr(args, key) is not None
        ]
        if alone:
            raise BadValue("--tokens", f"beside {', '.join(alone)}", "totals alone")
        note("totals only: priced as short prompts, whatever their number and lengths")
        return _totals(args.tokens)
    if args.requests and not re.fullmatch(r"-?[\d.eE+_kM]+", args.requests.strip()):
        return _trace(args)
    return _described(args)


def blocked_trace(path: str, block: str | None) -> Any:
    """Trace from a file; `block` is the number of tokens per prefix id, if given."""
    if block is None:
        return read_trace(path)
    trace = read_trace(
        path, block=int(schema.scalar(block, schema.Field("token", integer=True, low=1, open_low=False, high=1e9), "--trace-block"))
    )
    if not len(trace.traffic.blocks):
        raise BadValue("--trace-block", block, f"a trace with hash_ids, which this one in {trace.format} format has not")
    return trace


def start_s(text: str) -> float:
    """Seconds since midnight of HH:MM."""
    match = CLOCK.fullmatch(text.strip())
    if not match:
        raise BadValue("--start", text, "a time of day in UTC such as 08:30")
    return 3600.0 * int(match[1]) + 60.0 * int(match[2])


def _totals(text: str) -> Any:
    totals: dict[str, float] = {}
    for part in text.split(","):
        key, equals, value = (item.strip() for item in part.partition("="))
        if not equals or key not in TOTALS:
            raise BadValue("--tokens", text, "input=608B,cached=342B,output=168B, the cached ones among the input")
        if key in totals:
            raise BadValue("--tokens", text, f"{key} once")
        totals[key] = units.parse(value, "token", f"--tokens {key}")
        if not 0 <= totals[key] <= MOST_TOKENS:
            raise BadValue(f"--tokens {key}", value, f"0 to {MOST_TOKENS:g} tokens")
    if not totals.get("input"):
        raise BadValue("--tokens", text, "at least the input's tokens")
    prompt, hits, answers = (totals.get(name, 0.0) for name in TOTALS)
    return requests_of_totals(prompt, hits, answers, "totals given by the user")


def _trace(args: Any) -> Any:
    if args.prompt or args.output or args.turns:
        raise BadValue("--requests", args.requests, "a trace alone, which has its own lengths; --shared and --rate may stand beside it")
    if args.arrivals != ARRIVALS or args.seed != SEED:
        raise BadValue("--requests", args.requests, "a trace without --arrivals and --seed: nothing is drawn")
    trace = blocked_trace(args.requests, args.trace_block)
    traffic = trace.traffic.at_rate(_rate(args.rate)) if args.rate else trace.traffic
    shared = _shared(args)
    note(*trace.notes())
    if not len(traffic.blocks) and not shared and not (traffic.conversation >= 0).any():
        note("the trace does not say what prompts share, so a cache finds nothing: --shared says what all begin with")
    note(*_shorter(traffic, shared))
    return requests_of(traffic, Path(args.requests).name, shared)


def _shorter(traffic: Any, shared: int) -> list[str]:
    """Note on prompts shorter than the shared prefix."""
    count = int((traffic.prompt < shared).sum())
    text = f"{count:,} of {len(traffic):,} prompts are shorter than --shared {shared:,}: all of each is taken for the beginning of it"
    return [text] if count else []


def _described(args: Any) -> Any:
    """Requests drawn from the distributions on the command line."""
    if args.trace_block:
        raise BadValue("--trace-block", args.trace_block, "--requests TRACE beside it")

    if not args.prompt or not args.output or not args.rate:
        wants = "--requests TRACE, or a workload: --prompt 8k --shared 6k --output 500 --rate 2/min --requests 1000 --turns 5"
        missing = [flag for flag, value in (("--output", args.output), ("--rate", args.rate)) if not value]
        raise BadValue("bill", "no requests" if not args.prompt else f"no {' and no '.join(missing)}", wants)
    rate, shared = _rate(args.rate), _shared(args)
    prompt, output = parse_lengths(args.prompt, "--prompt"), parse_lengths(args.output, "--output", answers=True)
    count, seed = (_whole_number(text, flag) for text, flag in ((args.requests or str(REQUESTS), "--requests"), (args.seed, "--seed")))
    arrivals = parse_arrivals(args.arrivals, rate)
    if not args.turns:
        if not shared:
            note("prompts share nothing, so a cache finds nothing: --shared and --turns say what they share")
        traffic = generate(arrivals, prompt, output, count, seed)
        note(*_shorter(traffic, shared))
        return requests_of(traffic, SAMPLE_SOURCE, shared)
    typed = parse_turns(args.turns if "," in args.turns else f"{args.turns},{GAP_S}s")
    turns = ConversationTurns(mean=typed.mean, gap=typed.gap, shared=shared, block=LONGEST)
    traffic = generate_conversations(arrivals, rate, UncachedLengths(prompt, shared), output, turns, count, seed)
    plain = dataclasses.replace(traffic, blocks=traffic.blocks[:0], block_start=traffic.block_start * 0, block_tokens=0)
    return requests_of(plain, SAMPLE_SOURCE, shared)


@dataclasses.dataclass(frozen=True, slots=True)
class UncachedLengths:
    """Length distribution of the part of prompts after the shared prefix."""

    lengths: Any
    shared: int

    def draw(self, rng: Any, count: int) -> Any:
        """Draw `count` lengths, each at least 1."""
        return (self.lengths.draw(rng, count) - self.shared).clip(1)


def _rate(text: str) -> float:
    return float(schema.scalar(text, schema.Field("1/s", high=1e12), "--rate"))


def _shared(args: Any) -> int:
    return int(schema.scalar(args.shared, schema.Field("token", integer=True, open_low=False, high=1e9), "--shared")) if args.shared else 0


def _whole_number(text: str, flag: str) -> int:
    value = units.parse(text, "", flag)
    if value != int(value) or value < 0:
        raise BadValue(flag, text, "a whole number of 0 or more")
    return int(value)

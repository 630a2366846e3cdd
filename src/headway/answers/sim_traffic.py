"""Traffic of `sim` from its flags: a trace, draws at a rate, users of a closed loop; and draws of it by seed for --find."""

from __future__ import annotations

from typing import Any

from headway.answers import arguments
from headway.core import schema, units
from headway.core.errors import BadValue
from headway.core.notes import note
from headway.simulation.capacity import MOST
from headway.simulation.question import CHEAP, REQUESTS, SEEDS
from headway.simulation.run import LoadingPlan
from headway.simulation.traffic.distributions import parse_arrivals, parse_lengths
from headway.simulation.traffic.generate import (
    conversation_turns,
    generate,
    generate_conversations,
    generate_loop,
    parse_think,
    parse_turns,
)
from headway.simulation.traffic.read import read_trace

MOST_LOADS = 1000  # rates, or numbers of users, each simulated
RATE = schema.Field("1/s", high=1e12)


def read(args: Any) -> tuple[list[Any], bool]:
    """Loads, and whether they represent a sustained load."""
    rates = _axis(args.rate, RATE, "--rate")
    users = _axis(args.users, schema.Field(integer=True, low=1, open_low=False), "--users")
    if args.trace:
        if users or args.prompt or args.output or args.turns or args.think:
            raise BadValue("--trace", args.trace, "a trace alone, which has its own lengths; --rate scales it")
        return _trace(args, rates), False
    if users and args.turns:
        raise BadValue("--turns", args.turns, "arrivals at a --rate: users of a closed loop send requests of their own")
    if not users and args.think:
        raise BadValue("--think", args.think, "--users beside it; the pause between turns is in --turns")
    if args.find and len(rates) > 1:
        raise BadValue("--rate", args.rate, "no rate, or one, where the rate is looked for")
    if args.find and not rates and not users:
        rates = (1.0,)  # placeholder: --find searches the rate
    if bool(rates) == bool(users):
        raise BadValue("traffic", "both" if rates else "neither", "--trace FILE, --rate 40/s or --users 64")
    prompt, output = _lengths(args)
    count, seed_value = _whole_number(args.requests, "--requests") or REQUESTS, seed(args)
    if args.trace_block:
        raise BadValue("--trace-block", args.trace_block, "--trace FILE beside it")
    if users:
        return _loops(args, users, prompt, output, count, seed_value), False
    return _rate_loads(args, rates, prompt, output, count, seed_value), True


def seed(args: Any) -> int:
    """Seed of the random draws: arrivals, lengths, priority classes."""
    return _whole_number(args.seed, "--seed", 0)


def _trace(args: Any, rates: tuple[float, ...]) -> list[Any]:
    block = _whole_number(args.trace_block, "--trace-block")
    trace = read_trace(args.trace, block=block) if block else read_trace(args.trace)
    if block and not len(trace.traffic.blocks):
        raise BadValue("--trace-block", args.trace_block, f"a trace with hash_ids, which this one in {trace.format} format has not")
    count = _whole_number(args.requests, "--requests")
    traffic = trace.traffic.head(count) if count else trace.traffic
    if not len(traffic):
        raise BadValue("--trace", args.trace, "at least one request")
    rates = () if args.find else rates  # --find scales the trace itself
    loadings = [LoadingPlan(traffic=traffic.at_rate(rate), rate=rate) for rate in rates] or [LoadingPlan(traffic=traffic, rate=None)]
    note(*trace.notes())
    return loadings


def _rate_loads(args: Any, rates: Any, prompt: Any, output: Any, count: int, seed: int) -> list[Any]:
    loadings, population = [], None
    if args.turns:
        population = conversation_turns(prompt, output, parse_turns(args.turns), MOST, seed)
    elif count < MOST:
        population = generate(parse_arrivals("even", 1.0), prompt, output, MOST, seed)
    for rate in rates:
        arrivals = parse_arrivals(args.arrivals, rate)
        if args.turns:
            traffic = generate_conversations(arrivals, rate, prompt, output, parse_turns(args.turns), count, seed)
        else:
            traffic = generate(arrivals, prompt, output, count, seed)
        loadings.append(LoadingPlan(traffic=traffic, rate=rate, population=population))
    return loadings


def loads_by_seed(args: Any, loadings: list[Any]) -> dict[int, Any]:
    """Seed -> the load at a rate, for the seeds over which --find looks: the user's first; of a trace that one."""
    first, count = seed(args), seeds(args, loadings)
    if args.trace:
        return {first: lambda rate: LoadingPlan(traffic=loadings[0].traffic.at_rate(rate), rate=rate)}
    prompt, output = _lengths(args)
    requests = len(loadings[0].traffic)
    return {
        number: lambda rate, number=number: _rate_loads(args, (rate,), prompt, output, requests, number)[0]
        for number in range(first, first + count)
    }


def seeds(args: Any, loadings: list[Any]) -> int:
    """Number of seeds over which --find looks; without --find one."""
    if args.seeds and (args.trace or not args.find):
        raise BadValue("--seeds", args.seeds, "--find rate beside it, of traffic that is drawn")
    if not args.find or args.trace:
        return 1
    return _whole_number(args.seeds, "--seeds") or (SEEDS if len(loadings[0].traffic) <= CHEAP else 1)


def _loops(args: Any, users: Any, prompt: Any, output: Any, count: int, seed: int) -> list[Any]:
    loops = [generate_loop(number, parse_think(args.think or "0s"), prompt, output, max(count, number), seed) for number in users]
    return [LoadingPlan(traffic=loop.traffic, rate=None, users=loop.users, think=loop.think) for loop in loops]


def _lengths(args: Any) -> tuple[Any, Any]:
    lengths = {key: value for key, value in (("prompt", args.prompt), ("output", args.output)) if value is not None}
    filled = arguments.requested(lengths)
    for key, text in lengths.items():
        if ".." in text or ("," in text and ":" not in text):
            raise BadValue(f"--{key}", text, "one length, or a distribution such as lognormal:2k,1.2; lists are of --rate or --users")
    texts = {key: value if isinstance(value, str) else str(int(value)) for key, value in filled.items()}
    return parse_lengths(texts["prompt"], "--prompt"), parse_lengths(texts["output"], "--output", answers=True)


def _axis(text: str | None, q: schema.Field, field: str) -> tuple[Any, ...]:
    if text is None:
        return ()
    values, notes = schema.axis(text, q, field, MOST_LOADS)
    note(*notes)
    return schema.several(values)


def _whole_number(text: str | None, field: str, least: int = 1) -> int:
    if text is None:
        return 0
    value = units.parse(text, "", field)
    if value != int(value) or value < least:
        raise BadValue(field, text, f"a whole number of at least {least}")
    return int(value)

"""What a simulation will take of memory: told before it begins, and refused above `--limit-memory`; and whether its requests are kept."""

from __future__ import annotations

from collections.abc import Sequence

from headway.core import schema
from headway.core.errors import BadValue
from headway.core.listing import format_value
from headway.core.notes import note
from headway.core.progress import tell
from headway.core.units import PerSecond
from headway.performance.layout import Layout
from headway.simulation import run, settled
from headway.simulation.compiled import available
from headway.simulation.memory_need import MemoryNeed
from headway.simulation.questions import PLAINLY, STREAMED, Simulate
from headway.simulation.traffic.generate import parse_turns

FLAG = "--limit-memory"
MUCH = 1e9  # bytes from which a run is told of without being asked
LIMIT = schema.Field("byte", low=1, open_low=False)


def streams(args: Simulate, count: int) -> bool:
    """Whether requests are forgotten when they have ended: many, drawn, alike, and where nothing asks for single ones."""
    single = (args.plan, args.fast, args.timeline, args.patience, args.departures, args.prefix_cache, args.turns, args.trace, args.users)
    alone = "disaggregated" not in (args.policy or "") and not any(single)
    return count >= STREAMED and alone and available() and args.loop != PLAINLY


def longest_run(args: Simulate, count: int, plain: bool, rate: PerSecond) -> int:
    """Requests of the longest run that `count` at so many a second may need.

    Of a search its replays, of a prefix cache the run whose hits have settled or that after a stop, of users who leave conversations all
    turns of the pool of these.
    """
    if args.users and args.turns and args.patience:
        return round(2 * run.TALKS_EACH * count * parse_turns(args.turns).mean)
    if args.trace or args.users:
        return count
    if args.find:
        return max(count, settled.PLAIN_MOST if plain else settled.MOST_PLAYED)
    if not args.prefix_cache:
        return count
    talk = parse_turns(args.turns) if args.turns else None
    return max(count, settled.stop(talk.mean * talk.gap if talk else 0.0, rate, plain)[1])


def within_memory(args: Simulate, counts: Sequence[int], rate: PerSecond = 0.0) -> None:
    """Tell what a run of loads of so many requests, at most at this rate, will take, and refuse more than its limit."""
    replicas = schema.axis(args.replicas or "1", schema.fields(Layout)["replicas"][0], "--replicas", 1000)[0]
    plain = args.loop == PLAINLY or not available()
    most, count = longest_run(args, max(counts), plain, rate), max(counts)
    need = MemoryNeed(
        requests=[*counts, most] if most > count else counts, replicas=int(max(schema.several(replicas))),
        streamed=streams(args, count), turns=bool(args.turns), users=bool(args.users), plain=plain,
    ).total  # fmt: skip
    text, takes = f"about {format_value(need, 'byte')}", "this run takes" if most <= count else "its longest run may take"
    if args.limit_memory and need > float(schema.scalar(args.limit_memory, LIMIT, FLAG)):
        raise BadValue(FLAG, args.limit_memory, f"{text}, which {takes}, of {most:,} requests")
    if args.limit_memory or need > MUCH:
        tell(f"{takes} {text} of memory")
        note(f"{takes} {text} of memory, more if its queue grows; {FLAG} refuses more before it begins")

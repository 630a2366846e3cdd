"""What a simulation will take of memory: told before it begins, and refused above `--limit-memory`; and whether its requests are kept."""

from __future__ import annotations

from collections.abc import Sequence

from headway.core import schema
from headway.core.errors import BadValue
from headway.core.listing import format_value
from headway.core.notes import note
from headway.core.progress import tell
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


def longest_run(args: Simulate, count: int, plain: bool) -> int:
    """Requests of the longest run that `count` may need.

    Of a search its replays, of a prefix cache the run whose hits have settled or that after a stop, of users who leave conversations all
    turns of the pool of these.
    """
    if args.users and args.turns and args.patience:
        return round(2 * run.TALKS_EACH * count * parse_turns(args.turns).mean)
    if args.trace or args.users:
        return count
    if args.find:
        return max(count, run.PLAIN_MOST if plain else run.MOST)
    return max(count, settled.PLAIN_MOST if plain else settled.MOST) if args.prefix_cache else count


def within_memory(args: Simulate, counts: Sequence[int]) -> None:
    """Tell what a run of loads of so many requests will take, and refuse more than its limit."""
    replicas = schema.axis(args.replicas or "1", schema.fields(Layout)["replicas"][0], "--replicas", 1000)[0]
    plain = args.loop == PLAINLY or not available()
    most = longest_run(args, max(counts), plain)
    need = MemoryNeed(
        requests=[*counts, most] if most > max(counts) else counts, replicas=int(max(schema.several(replicas))),
        streamed=streams(args, max(counts)), turns=bool(args.turns), users=bool(args.users), plain=plain,
    ).total  # fmt: skip
    text = f"about {format_value(need, 'byte')}"
    if args.limit_memory:
        fewer = f"which this run takes, or fewer --requests than {most:,}"
        if need > float(schema.scalar(args.limit_memory, LIMIT, FLAG)):
            wants = fewer if most <= max(counts) else f"which its longest run may take, of {most:,} requests"
            raise BadValue(FLAG, args.limit_memory, f"{text}, {wants}")
    if args.limit_memory or need > MUCH:
        takes = "takes" if most <= max(counts) else "may take"
        tell(f"{takes} {text} of memory")
        note(f"the run {takes} {text} of memory, more if its queue grows; {FLAG} refuses more before it begins")

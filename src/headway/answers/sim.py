"""`headway sim MODEL --on MACHINE --trace FILE | --rate R --prompt LENGTHS --output LENGTHS`: latencies of simulated requests.

`headway sim --plan FILE.json` plays a saved plan."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from headway.answers import arguments, sim_plan
from headway.answers.no_effect import search_notes
from headway.answers.sim_memory import streams, within_memory
from headway.core import columns, schema, units
from headway.core.errors import INTERRUPTED, BadValue
from headway.core.listing import Listing, format_value
from headway.core.notes import note
from headway.core.quantity import user_input
from headway.laws.roofline.balance import drain_s
from headway.laws.serving.request import interval_share
from headway.models.precision import Precision
from headway.models.work import work_of
from headway.performance.achieved import OTHER_FAMILY, family
from headway.performance.assumptions import Assumptions
from headway.performance.compile import halves
from headway.performance.intervals import spread
from headway.performance.layout import UNHALVED, Layout, ModelShape, check, shape
from headway.performance.nearest import subject
from headway.performance.workload import SLO
from headway.report import output, sim
from headway.serving.plan.sensitivity import values_by_name
from headway.serving.pools import POOL_DEGREES
from headway.serving.serve import checked_load, deployment
from headway.simulation import fleet
from headway.simulation import results as run_results
from headway.simulation.capacity import MOST, saturated_sample
from headway.simulation.compiled import choose_form, plain_s, runner, saturated_s
from headway.simulation.prefix_tiers import parse_tiers
from headway.simulation.questions import (
    CHEAP,
    FEWEST,
    PER_USER,
    PERCENTILE_LIST,
    REQUESTS,
    SEEDS,
    STEPS,
    STREAMED,
    WARMUP,
    Policy,
    Simulate,
)
from headway.simulation.run import REPLAYS, LoadedTrial, LoadingPlan, Trial
from headway.simulation.settled import TIMES_LONGER
from headway.simulation.sketch import RELATIVE_ERROR
from headway.simulation.step_law import StepLaw, parse
from headway.simulation.traffic.distributions import Constant, Lengths, parse_arrivals
from headway.simulation.traffic.generate import (
    conversation_turns,
    generate,
    generate_conversations,
    generate_loop,
    generate_talking_users,
    parse_think,
    parse_turns,
)
from headway.simulation.traffic.read import read_trace
from headway.simulation.traffic.requests import Traffic
from headway.simulation.traffic.stream import DrawnTraffic

EVERY_BATCH = 10**9  # users where their number is open: some batch of theirs can be halved
MOST_CASES = 200  # combinations of schedulers, formats and assumptions, each simulated
ONE_VALUE = ("requests", "seed", "seeds", "warmup", "fast", "sensitivity", "trace_block")
MOST_PERCENTILES = 20
TRIED = 10  # rates that a search simulates, about
BANDED = 3  # simulations per load with the sensitivity: as estimated, shorter, longer
COMPILED_S = 1.0  # compile time in seconds from which a note states it

MARCH = (
    "users whose answers have one length march in step: those whose prompts end in one step come back together. Lengths that scatter undo "
    "it (--output uniform:900,1100), as `serve` assumes (--length-cv 0 there: of one length)"
)
DRAIN = "drain"  # --departures drain: the interval is the drain time of the HBM


def run(args: Simulate) -> output.Answer:
    """Answer with a row per layout and rate; of a saved plan with its latencies beside its limits."""
    saved = None
    if args.plan:
        saved = sim_plan.read_plan(args.plan)
        args = sim_plan.played(args, saved)
    elif bool(args.model) != bool(args.on) or not (args.model or args.step):
        raise BadValue("sim", args.model or args.on or "nothing", 'MODEL --on MACHINE, --step "5ms + 0.1ms*n", or --plan FILE.json')
    _check(args)
    loadings, lasting = loads_of(args)
    so_that = _conditions(args)
    _check_single_token(args, loadings, so_that)
    default = WARMUP if lasting else 0.0
    warmup = float(schema.scalar(args.warmup, schema.Field(open_low=False, high=0.9), "--warmup") if args.warmup else default)
    limits = sim_plan.checked_limits(saved, loadings, warmup) if saved else ()
    percentiles = _percentiles(args)
    results = _simulated(args, loadings, (warmup, lasting), so_that)
    status = INTERRUPTED if results.interrupted else 0
    if saved is not None:
        return sim_plan.answer(results, warmup, limits, percentiles, status)
    return output.Answer(
        Listing(results.rows), describe=partial(sim.describe, percentiles=percentiles), pictures=sim.pictures(results.last, so_that),
        status=status, checked=sim.checked(results.rows),
    )  # fmt: skip


def _simulated(
    args: Simulate, loadings: list[Any], sample: tuple[float, bool], so_that: dict[str, float]
) -> SimulationProgress:
    """Rows of every layout under every load; `sample` is the warm-up and whether the traffic samples an endless load."""
    warmup, lasting = sample
    results = SimulationProgress(rows=[], seeds_typed=bool(args.seeds))
    try:
        sources = loads_by_seed(args, loadings) if args.find else {}
        for trial, labels in _trials(args, loadings, warmup, lasting):
            results.add(trial, loadings, so_that, sources, labels)
            if results.interrupted:
                break
    except KeyboardInterrupt:
        if not results.rows:
            raise
        results.interrupted = True
        note("interrupted: rows that are missing were not simulated")
    if warmup:
        note(f"latencies leave out the first {warmup:.0%} of requests")
    if args.timeline and results.last is not None:
        note(f"{args.timeline}: {run_results.save(results.last, args.timeline)} requests of the last run, for ui.perfetto.dev")
    return results


@dataclass(slots=True)
class SimulationProgress:
    """Rows so far, which are printed even if the user interrupts the rest."""

    rows: list[dict[str, Any]]
    last: Any = None  # run behind the last row
    interrupted: bool = False
    seeds_typed: bool = False

    def add(self, trial: Any, loadings: list[Any], so_that: dict[str, float], sources: dict[int, Any], labels: dict[str, Any]) -> None:
        """Add the rows of one fleet, with its labels: under each load, or at the highest rate within the limits."""
        count = len(self.rows)
        if trial.compile_s > COMPILED_S:
            note(f"compiled in {trial.compile_s:.1f} s, before the runs; kept for later commands")
        if trial.fleet.pace is None:
            self.rows += [{"rate": load.rate} | answer_of(trial) for load in loadings]
        elif so_that:
            self._search(trial, so_that, sources, len(loadings[0]))
        else:
            self._under_each(trial, loadings)
        self.rows[count:] = [labels | row | labels for row in self.rows[count:]]

    def _search(self, trial: Any, so_that: dict[str, float], sources: dict[int, Any], requests: int) -> None:
        (_, at_rate), *more_sources = sources.items()
        rows, ended = trial.highest(at_rate, so_that)
        if not (rows or self.rows or ended):
            raise KeyboardInterrupt
        self.rows += rows
        note(*(f"the search ended there: {sim.beyond(row, so_that)}" for row in rows if row["kind"] == "beyond"))
        self._stop("the search was interrupted: higher rates may keep the limits too", not ended)
        lasting = ended and rows and rows[0]["kind"] == "found"
        if lasting and rows[0]["requests"] > requests:
            note(f"looked for with {rows[0]['requests']:,} requests: {requests:,} do not show the latencies of a lasting load")
        if lasting and more_sources and (self.seeds_typed or rows[0]["requests"] <= CHEAP):
            try:
                rows[0] |= trial.over_seeds(dict(more_sources), so_that, rows[0]["rate"], rows[0]["requests"])
            except KeyboardInterrupt:
                self._stop("interrupted: the rate was looked for with one seed alone", True)

    def _under_each(self, trial: Any, loadings: list[Any]) -> None:
        loaded_trial = LoadedTrial(trial=trial, load=loadings[0])
        for load in loadings:
            loaded_trial.turn_to(load)
            rows, self.last = loaded_trial.rows()
            self.rows += rows
            progress = f"{rows[0]['completed']:,} of {len(load):,} requests had ended; figures are of those"
            self._stop(f"interrupted: {progress}", self.last.interrupted)
            if self.interrupted:
                break

    def _stop(self, text: str, interrupted: bool) -> None:
        if interrupted:
            self.interrupted = True
            note(text)


def answer_of(trial: Any) -> dict[str, Any]:
    """Row of a layout that cannot run."""
    return run_results.impossible(trial.fleet)


def _check(args: Simulate) -> None:
    for name in ONE_VALUE:
        text = getattr(args, name) or ""
        if "," in text or ".." in text:
            raise BadValue(schema.flag(name), text, "one value, of the whole run; lists are for load, layout, scheduler, assumptions")
    if args.hit_rate and args.prefix_cache:
        raise BadValue("--hit-rate", args.hit_rate, "either a hit rate or --prefix-cache, which finds its own")
    if args.length_cv:
        raise BadValue("--length-cv", args.length_cv, "lengths that are drawn, such as --output uniform:900,1100")
    if args.find not in (None, "rate"):
        raise BadValue("--find", args.find, "rate")
    if bool(args.find) != bool(args.so_that):
        raise BadValue("--find", args.find or "nothing", "--find rate --so-that p99_ttft_s=1s,p99_tpot_s=50ms")
    if args.find and args.users:
        raise BadValue("--find", "rate", "traffic with a rate, not --users")
    if args.fast and args.users:
        raise BadValue("--fast", args.fast, "arrivals at a rate or of a trace, not --users: there is one class of users")
    if args.find and args.timeline:
        raise BadValue("--timeline", args.timeline, "loads that are given, such as --rate 10, not --find")
    if args.ttl and not args.prefix_cache:
        raise BadValue("--ttl", args.ttl, "--prefix-cache beside it")
    policy = {name: value for name, (_, value) in schema.fields(Policy).items()}
    if args.reload not in (None, policy["reload"]) and not args.prefix_cache:
        raise BadValue("--reload", args.reload, "--prefix-cache with tiers beside it, such as --prefix-cache hbm,host")
    _check_routing(args, policy["routing"])
    if args.swap_space and args.preemption != "swap":
        raise BadValue("--swap-space", args.swap_space, "--preemption swap beside it")
    if args.prefill_replicas and args.policy != "disaggregated":
        raise BadValue("--prefill-replicas", args.prefill_replicas, "--policy disaggregated beside it")
    if args.prefill and args.policy != "disaggregated":
        raise BadValue("--prefill", args.prefill, "--policy disaggregated beside it")
    if args.timeline and not Path(args.timeline).absolute().parent.is_dir():
        raise BadValue("--timeline", args.timeline, "a file in a folder that there is")


def _check_routing(args: Simulate, usual: str) -> None:
    """Refuse a routing that changes nothing: beside one replica, and where who waits for an answer is the router."""
    apart, routing = args.policy == "disaggregated", (args.routing or "").strip().lower()
    receivers, flag = (args.prefill_replicas, "--prefill-replicas") if apart else (args.replicas, "--replicas")
    wants = ""
    if args.users and (apart or routing != usual):
        goes = "go to the least loaded of either kind" if apart else "are dealt to replicas once, in turn"
        wants = f"arrivals at a rate or of a trace: users {goes}"
    elif apart and usual in routing:
        wants = "least-loaded (as without the flag) or prefix-aware: prefill steps are too long for turns"
    elif routing != usual and receivers in (None, "1"):
        wants = f"{'a plan of several replicas' if args.plan else f'{flag} above 1 beside it'}: one replica gets every request"
    if routing and wants:
        raise BadValue("--routing", args.routing, wants)


def _check_single_token(args: Simulate, loadings: list[Any], so_that: dict[str, float]) -> None:
    """Refuse limits on the time between tokens where every answer has one token."""
    if max(load.traffic.output.max() for load in loadings) > 1:
        return
    wants = "answers of at least 2 tokens: those of one token have no time between tokens"
    for name in (name for name in schema.fields(SLO) if name.startswith(("tpot", "itl")) and getattr(args, name, None) is not None):
        raise BadValue(schema.flag(name), getattr(args, name), wants)
    for name in (name for name in so_that if "_tpot_" in name or "_itl_" in name):
        raise BadValue("--so-that", name, wants)


def _conditions(args: Simulate) -> dict[str, float]:
    """Upper limits by column, from text such as `p99_ttft_s=1s,p99_tpot_s=50ms`."""
    limits, marks = {}, schema.fields(SLO)
    for text in args.so_that.split(",") if args.so_that else ():
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or columns.unit(key) != "s" or not (key in columns.declared() or columns.percentile(key)):
            raise BadValue("--so-that", text, "a latency and the most it may be, such as p99_ttft_s=1s")
        if key in limits:
            raise BadValue("--so-that", args.so_that, f"{key} once")
        stem = next((name for name in ("ttft", "tpot", "e2e") if f"_{name}_" in key), "tpot" if "_itl_" in key else "e2e")
        limits[key] = float(schema.scalar(value, marks[stem][0], f"--so-that {key}"))
    return limits


def _percentiles(args: Simulate) -> tuple[float, ...]:
    """The percentiles that the user chose, none without a choice."""
    if not args.percentiles:
        return ()
    values, notes = schema.axis(args.percentiles, PERCENTILE_LIST, "--percentiles", MOST_PERCENTILES)
    note(*notes)
    return tuple(map(float, schema.several(values)))


def _trials(args: Simulate, loadings: list[Any], warmup: float, lasting: bool) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Trial of each requested layout and scheduler, and the inputs that tell its rows from those of others."""
    tries = TRIED * seeds(args, loadings) if args.find else 1
    tries += REPLAYS if args.find and lasting else 0
    band = _band(args, sum(map(len, loadings)) * tries)
    runs = tries * (BANDED if band else 1)
    limits, tails = _single_values(args, SLO), {*columns.PERCENTILES, *_percentiles(args)}
    tails |= {percent for key in _conditions(args) if (percent := columns.percentile(key))}
    fast = float(schema.scalar(args.fast, schema.Field(open_low=False, high=1), "--fast")) if args.fast else 0.0
    for compiled, policy, refit, labels in _fleets(args, loadings, 2 if fast else 1):
        how, compile_s = args.loop, 0.0
        if compiled.pace:
            takes_s = sum(plain_s(load.traffic, compiled.prefix is not None) * len(load) / len(load.traffic) for load in loadings) * runs
            if compiled.prefix is not None and lasting:  # a longer run, where hits have not settled
                takes_s *= 1 + TIMES_LONGER
            if not loadings[0].users:  # the capacity is measured with full batches on all ranks
                takes_s += saturated_s(*saturated_sample(loadings[0].requests, compiled.scheduler.rules))
            meet = compiled.pools is not None or (policy.routing != "round-robin" and compiled.replicas > 1)
            shared = compiled.prefix is not None and compiled.prefix.shared
            how = choose_form(compiled.pace.source, takes_s, args.loop, meet, shared)
            compile_s = runner(compiled.pace.source, compiled.pace.step, takes_s, how, meet, shared).compile_s
        yield Trial(
            fleet=compiled, limits={f"{key}_s": float(value) for key, value in limits.items()}, warmup=warmup, lasting=lasting, how=how,
            routing=policy.routing, fast=fast, seed=seed(args), compile_s=compile_s, band=band, refit=refit,
            percentiles=sorted(tails),
        ), labels  # fmt: skip


def _band(args: Simulate, requests: int) -> float:
    """Relative change of step times for the sensitivity: as the user states, else none if the simulation is long.

    Else 10 %, and on a chip whose kernels were not measured what the interval of its steps says.
    """
    if args.sensitivity is None and args.step:  # which has no error of its own
        return 0.0
    if args.sensitivity is None:
        return unmeasured_band(args) if requests <= CHEAP and not args.find else 0.0
    return float(schema.scalar(args.sensitivity, schema.Field(open_low=False, high=0.9), "--sensitivity"))


def unmeasured_band(args: Simulate) -> float:
    """Relative change of step times that stands for what is not known of them."""
    chip, assumptions = arguments.systems(args)[0][0].chip, schema.defaults(Assumptions, {})
    if family(chip) != OTHER_FAMILY:
        return STEPS
    about = subject(arguments.models(args)[0], chip, assumptions.engine)
    return float(interval_share(spread(about, assumptions, "decode", chip)))


def _fleets(args: Simulate, loadings: list[Any], classes: int) -> Iterator[tuple[Any, Any, Any, dict[str, Any]]]:
    """Compiled fleet of each requested layout and scheduler, with its policy, the same for other traffic, and what varies."""
    law = parse(args.step) if args.step else None
    if law is not None and not args.model:
        yield from _fleets_of_law(args, law, loadings, classes)
        return
    models, systems = arguments.models(args), arguments.systems(args)
    if len(models) > 1 or len(systems) > 1:
        raise BadValue("sim", f"{len(models)} models on {len(systems)} machines", "one model on one machine")
    model, system = models[0], systems[0][0]
    args, drain_text = _drained(args, system.chip)
    cases, traffic = _cases(args), loadings[0].traffic
    load = checked_load(prompt=float(traffic.prompt.mean()), output=float(traffic.output.mean()))
    if not args.plan:
        note(*search_notes(args, {"prompt": load.prompt, "output": load.output}, asdict(Layout()) | schema.read(args, Layout)))
    note(*filter(None, [drain_text]))
    formed = shape(work_of(model).blocks, args.weights or "")
    layouts, prefill = arguments.ranked(formed, schema.read(args, Layout)), _prefill_layout(args, formed)
    tiers = parse_tiers(args.prefix_cache, args.ttl, arguments.catalog(args)) if args.prefix_cache else ()
    for policy, formats, assumptions, labels in cases:
        request = deployment(model, system, layouts, load, formats, assumptions)
        for layout in _halved(layouts, assumptions, loadings):
            closed = loadings[0].users > 0
            refit = partial(
                fleet.fleet, request, layout, policy, classes=classes, closed=closed, tiers=tiers, prefill=prefill,
                law=law,
            )  # fmt: skip
            sim_fleet = refit(traffic)
            about = request.notes if law is None else (law.words(sim_fleet.scheduler.rules.seats),)  # those of the request are of its steps
            note(*about, *sim_fleet.scheduler.notes)
            yield sim_fleet, policy, refit, labels


def _fleets_of_law(args: Simulate, law: StepLaw, loadings: list[Any], classes: int) -> Iterator[tuple[Any, Any, Any, dict[str, Any]]]:
    """The fleet of each scheduler and number of replicas where a step law stands alone, as `_fleets` gives it."""
    for name, word in (("policy", "disaggregated"), ("preemption", "swap"), ("departures", DRAIN)):
        if word in str(getattr(args, name) or "").lower():
            raise BadValue(schema.flag(name), word, "MODEL --on MACHINE beside it: a step law alone has no chips")
    for policy, _, assumptions, labels in _cases(args):
        for replicas in schema.several(schema.read(args, Layout).get("replicas", 1)):
            refit = partial(
                fleet.fleet_of_law, law, int(replicas), policy, assumptions, classes=classes, closed=loadings[0].users > 0
            )  # fmt: skip
            sim_fleet = refit(loadings[0].traffic)
            note(*sim_fleet.scheduler.notes)
            yield sim_fleet, policy, refit, labels


def _prefill_layout(args: Simulate, formed: ModelShape) -> Layout | None:
    """The layout of replicas that only prefill, where it is not that of the others."""
    if not args.prefill:
        return None
    degrees = {name: q for name, (q, _) in schema.fields(Layout).items() if name in POOL_DEGREES and name != "replicas"}
    values = values_by_name(args.prefill, degrees, "--prefill", "tp=4 pp=2")
    return check(Layout(**{name: user_input(int(value), name) for name, value in values.items()}), formed)


def _cases(args: Simulate) -> list[tuple[Any, Precision, Assumptions, dict[str, Any]]]:
    """Scheduler, formats and assumptions of every combination of listed values, with those that vary."""
    parts = [arguments.combinations(args, record) for record in (Policy, Precision, Assumptions)]
    cases = list(itertools.islice(itertools.product(*parts), MOST_CASES + 1))
    if len(cases) > MOST_CASES:
        raise BadValue("sim", "too many combinations of schedulers, formats and assumptions", f"at most {MOST_CASES}")
    inputs = [policy | formats | assumptions for policy, formats, assumptions in cases]
    varying = [key for key in inputs[0] if any(values[key] != inputs[0][key] for values in inputs)]
    return [
        (Policy(**policy), Precision(**formats), schema.defaults(Assumptions, assumptions), {key: values[key] for key in varying})
        for (policy, formats, assumptions), values in zip(cases, inputs, strict=True)
    ]


def _drained(args: Simulate, chip: Any) -> tuple[Any, str]:
    """The question with the drain time of the chip's HBM in place of `--departures drain`, and a note on it."""
    if args.departures is None or args.departures.strip().lower() != DRAIN:
        return args, ""
    interval = float(drain_s(chip.need("hbm"), chip.need("hbm_bw")))
    return args.replace(departures=f"{interval!r}s"), (
        f"departures every {format_value(interval, 's')}: the time to read all HBM of {chip.name} once (--departures {DRAIN})"
    )


def _halved(layouts: list[Layout], assumptions: Assumptions, loadings: list[Any]) -> list[Layout]:
    """Layouts whose batches two-batch overlap can halve at some load, all of them without it; a note says how many it cannot."""
    if assumptions.communication != "two-batch":
        return layouts
    users = max(load.users or EVERY_BATCH for load in loadings)
    legal = [layout for layout in layouts if halves(layout, math.ceil(users / layout.replicas))]
    if not legal:
        raise BadValue("communication", "two-batch", UNHALVED)
    if len(legal) < len(layouts):
        note(f"two-batch: dropped {len(layouts) - len(legal)} of {len(layouts)} layouts, which lack {UNHALVED}")
    return legal


def _single_values(args: Simulate, record: type) -> dict[str, Any]:
    """Fields of a record, each a single value; a list raises an error."""
    values = schema.read(args, record)
    for key, value in values.items():
        if isinstance(value, tuple):
            raise BadValue(schema.flag(key), ", ".join(map(str, value)), "one value: a goodput has one limit of each kind")
    return values


MOST_LOADS = 1000  # rates, or numbers of users, each simulated
RATE = schema.Field("1/s", high=1e12)


def loads_of(args: Simulate) -> tuple[list[Any], bool]:
    """Loads, and whether they represent a sustained load."""
    rates = _axis(args.rate, RATE, "--rate")
    users = _axis(args.users, schema.Field(integer=True, low=1, open_low=False), "--users")
    if args.trace:
        if users or args.prompt or args.output or args.turns or args.think:
            raise BadValue("--trace", args.trace, "a trace alone, which has its own lengths; --rate scales it")
        return _trace(args, rates), False
    if not users and args.think:
        raise BadValue("--think", args.think, "--users beside it; the pause between turns is in --turns")
    if args.find and len(rates) > 1:
        raise BadValue("--rate", args.rate, "no rate, or one, where the rate is looked for")
    if args.find and not rates and not users:
        rates = (1.0,)  # placeholder: --find searches the rate
    if bool(rates) == bool(users):
        raise BadValue("traffic", "both" if rates else "neither", "--trace FILE, --rate 40/s or --users 64")
    prompt, output = _lengths(args)
    count, seed_value = _whole_number(args.requests, "--requests"), seed(args)
    if args.trace_block:
        raise BadValue("--trace-block", args.trace_block, "--trace FILE beside it")
    if users and args.turns:
        return _talking_users(args, users, prompt, output, count), False
    if users:
        return _loops(args, users, prompt, output, count), False
    within_memory(args, [count or REQUESTS] * len(rates), max(rates))
    return _rate_loads(args, rates, prompt, output, count or REQUESTS, seed_value), True


def _loops(args: Simulate, users: tuple[int, ...], prompt: Lengths, output: Lengths, count: int) -> list[LoadingPlan]:
    """Closed loops as a benchmark runs them: all users begin at once, and each asks ten times unless the user says how many."""
    think = parse_think(args.think or "0s")
    if isinstance(output, Constant) and not think.exponential and max(users) > 1:
        note(MARCH)
    totals = [max(count or max(PER_USER * number, FEWEST), number) for number in users]
    within_memory(args, totals)
    loops = [generate_loop(number, think, prompt, output, total, seed(args)) for number, total in zip(users, totals, strict=True)]
    return [LoadingPlan(traffic=loop.traffic, rate=None, users=loop.users, think=loop.think) for loop in loops]


def _talking_users(args: Simulate, users: tuple[int, ...], prompt: Lengths, output: Lengths, count: int) -> list[LoadingPlan]:
    """Closed loops of users who go on with conversations: each has ten of them unless the user says how many requests all send."""
    turns, think = parse_turns(args.turns), parse_think(args.think) if args.think else None
    pause = f"{args.think} (--think)" if think else f"a pause like those between turns, {turns.gap:g} s on average (or --think)"
    note(f"a user who has ended a conversation begins the next after {pause}")
    totals = [max(count or max(round(PER_USER * number * turns.mean), FEWEST), number) for number in users]
    within_memory(args, totals)
    pools = [partial(generate_talking_users, number, think, prompt, output, turns, seed=seed(args)) for number in users]
    return [_talking_load(pool, number, total, total) for pool, number, total in zip(pools, users, totals, strict=True)]


def _talking_load(pool: Callable[..., Traffic], users: int, sends: int, count: int) -> LoadingPlan:
    """Users who send so many requests of conversations, of which there are `count` and some more."""
    longer = partial(_talking_load, pool, users, sends)
    return LoadingPlan(traffic=pool(count=count), rate=None, users=users, sends=sends, longer=longer)


def seed(args: Simulate) -> int:
    """Seed of the random draws: arrivals, lengths, priority classes."""
    return _whole_number(args.seed, "--seed", 0)


def _trace(args: Simulate, rates: tuple[float, ...]) -> list[Any]:
    block = _whole_number(args.trace_block, "--trace-block")
    trace = read_trace(args.trace, block=block) if block else read_trace(args.trace)
    if block and not len(trace.traffic.blocks):
        raise BadValue("--trace-block", args.trace_block, f"a trace with hash_ids, which this one in {trace.format} format has not")
    count = _whole_number(args.requests, "--requests")
    traffic = trace.traffic.head(count) if count else trace.traffic
    if not len(traffic):
        raise BadValue("--trace", args.trace, "at least one request")
    rates = () if args.find else rates  # --find scales the trace itself
    within_memory(args, [len(traffic)] * max(1, len(rates)))
    loadings = [LoadingPlan(traffic=traffic.at_rate(rate), rate=rate) for rate in rates] or [LoadingPlan(traffic=traffic, rate=None)]
    note(*trace.notes())
    return loadings


def _rate_loads(args: Simulate, rates: Any, prompt: Any, output: Any, count: int, seed: int) -> list[Any]:
    loadings, population = [], None
    if args.turns:
        population = conversation_turns(prompt, output, parse_turns(args.turns), MOST, seed)
    elif count < MOST:
        population = generate(parse_arrivals("even", 1.0), prompt, output, MOST, seed)
    for rate in rates:
        arrivals = parse_arrivals(args.arrivals, rate)
        if args.turns:
            traffic = generate_conversations(arrivals, rate, prompt, output, parse_turns(args.turns), count, seed)
        elif streams(args, count):
            stream = DrawnTraffic(arrivals=arrivals, prompt=prompt, output=output, count=count, seed=seed)
            note(
                f"from {STREAMED:,} requests on none is kept: percentiles are within {RELATIVE_ERROR:.1%} of those of all requests, "
                "everything else is as exact as of fewer"
            )
            loadings.append(LoadingPlan(traffic=stream.sample, rate=rate, stream=stream))
            continue
        else:
            traffic = generate(arrivals, prompt, output, count, seed)
        longer = partial(_longer, args, rate, prompt, output, seed)
        loadings.append(LoadingPlan(traffic=traffic, rate=rate, population=population, longer=longer))
    return loadings


def _longer(args: Simulate, rate: float, prompt: Any, output: Any, seed: int, count: int) -> LoadingPlan:
    """A load at a rate with so many requests."""
    return _rate_loads(args, (rate,), prompt, output, count, seed)[0]


def loads_by_seed(args: Simulate, loadings: list[Any]) -> dict[int, Any]:
    """Seed -> the load at a rate, for the seeds over which --find looks: the user's first; of a trace that one."""
    first, count = seed(args), seeds(args, loadings)
    if args.trace:
        return {first: lambda rate: LoadingPlan(traffic=loadings[0].traffic.at_rate(rate), rate=rate)}
    prompt, output = _lengths(args)
    requests = len(loadings[0])
    return {
        number: lambda rate, number=number: _rate_loads(args, (rate,), prompt, output, requests, number)[0]
        for number in range(first, first + count)
    }


def seeds(args: Simulate, loadings: list[Any]) -> int:
    """Number of seeds over which --find looks; without --find one."""
    if args.seeds and (args.trace or not args.find):
        raise BadValue("--seeds", args.seeds, "--find rate beside it, of traffic that is drawn")
    if not args.find or args.trace:
        return 1
    return _whole_number(args.seeds, "--seeds") or (SEEDS if len(loadings[0]) <= CHEAP else 1)


def _lengths(args: Simulate) -> tuple[Any, Any]:
    lengths = {key: value for key, value in (("prompt", args.prompt), ("output", args.output)) if value is not None}
    filled = arguments.requested(lengths)
    for key, text in lengths.items():
        if ".." in text or ("," in text and ":" not in text):
            raise BadValue(f"--{key}", text, "one length, or a distribution such as lognormal:2k,1.2; lists are of --rate or --users")
    return arguments.length_distributions(filled)


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

"""`headway plan` at a load: --rate, --users or --trace, limits on means and percentiles, in whole nodes, checked by simulation."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from headway.answers import arguments, launch_lines
from headway.answers.no_effect import search_notes, shown_notes
from headway.answers.own_layout import own_changes
from headway.core import schema
from headway.core.errors import BadValue
from headway.core.notes import note
from headway.core.quantity import user_input
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.performance.workload import SLO, Load
from headway.report import output, plan_load
from headway.serving.plan.plan import plan
from headway.simulation.check.check import DEFAULT
from headway.simulation.check.limits import check_limits, idle_limits, read_limits
from headway.simulation.check.offered import OfferedTraffic
from headway.simulation.check.plan_at_load import CheckedPlan, LoadGoal, best_at_load, width_of
from headway.simulation.questions import MOST_SPARE, Plan
from headway.simulation.traffic.distributions import parse_lengths
from headway.simulation.traffic.read import read_trace

if TYPE_CHECKING:
    from headway.hardware.system import System
    from headway.models.model import Model

MOST_QUESTIONS = 200  # combinations of models, machines, formats and degrees, each simulated


def answer(args: Plan, pictures: Any) -> output.Answer:
    """The smallest whole nodes that carry the load within every limit; `pictures` draws a plan."""
    goal = _goal(args)
    inputs = _search_input(args, goal)
    systems = [system for system, _ in arguments.systems(args)]
    checked, *runners_up = _checked(inputs, goal, systems, args.no_check)
    sized = None
    if not checked.holds and any(system.fixed_count for system in systems):
        sized = _checked(inputs, goal, [_any_number(system) for system in systems])[0]
    spare = inputs.rest["spare"]
    table = plan_load.with_facts(checked.plan.table, [plan_load.facts(part, spare) for part in (checked, *runners_up)])
    script = launch_lines.launched(args, checked.plan)
    return output.Answer(
        table, notes=[*shown_notes(args, [checked.plan.best]), *script.notes], launch=script.lines,
        document=script.document, checked=plan_load.verdict(checked),
        describe=lambda rows: plan_load.describe(rows, checked, sized, own_changes(args, checked.plan)),
        pictures=pictures(checked.plan),
    )  # fmt: skip


def _any_number(machine: System) -> Any:
    """The machine without a number: of chips of one usual domain the bare chip, as one would type it."""
    if machine.chips == machine.chip.scale_up_domain and machine.fixed_count:
        return dataclasses.replace(machine, name=machine.chip.name.replace("_", "-"), chips=1, scale_up_domain=1, fixed_count=False)
    return dataclasses.replace(machine, fixed_count=False)


def _checked(inputs: _SearchInput, goal: Any, systems: Sequence[Any], unchecked: bool = False) -> list[Any]:
    """The answer of each model on each machine, the best first, each value of a list asked alone."""
    if unchecked:
        return [CheckedPlan(plan=plan(inputs.models, systems, inputs.load, _means(goal), **inputs.rest, **inputs.lists), goal=goal)]

    def question(place: int, model: Model, system: System, lists: dict[str, Any]) -> tuple[int, Any, Any]:
        def search(slo: SLO, factor: float) -> Any:
            return plan(model, system, inputs.load, slo, step_factor=factor, elasticities=False, frontier=False, **inputs.rest, **lists)

        return place, search, dataclasses.replace(goal, width=width_of([(model, system)], inputs.rest["assumptions"]))

    subjects = enumerate(itertools.product(inputs.models, systems))
    pairs = itertools.product(subjects, inputs.members())
    questions = [(place, model, system, lists) for (place, (model, system)), lists in itertools.islice(pairs, MOST_QUESTIONS + 1)]
    if len(questions) > MOST_QUESTIONS:
        wants = f"at most {MOST_QUESTIONS} at a load: each is simulated"
        raise BadValue("plan", "too many models, machines, formats and degrees", wants)
    return best_at_load([question(*values) for values in questions])


def _means(goal: Any) -> SLO:
    values = {limit.quantity: limit.most_s for limit in goal.limits if limit.statistic == "mean" and limit.quantity != "itl"}
    return SLO(tpot_decode=goal.tpot_decode, **values)


def _goal(args: Plan) -> Any:
    """The traffic, the limits and the confidence of the question."""
    offered, longest = _offered(args)
    limits = check_limits(tuple(read_limits(args)), longest)
    share = schema.Field(low=0.5, open_low=False, high=0.999)
    confidence = float(schema.scalar(args.confidence, share, "--confidence")) if args.confidence is not None else DEFAULT
    if args.no_check and any(limit.statistic != "mean" or limit.quantity == "itl" for limit in limits):
        wants = "limits on means of TTFT, TPOT and E2E, or the check: only the simulator knows percentiles and times between tokens"
        raise BadValue("--no-check", next(limit.flag for limit in limits if limit.statistic != "mean" or limit.quantity == "itl"), wants)
    decode = schema.read(args, SLO)
    goal = LoadGoal(offered=offered, limits=limits, confidence=confidence, tpot_decode=decode.get("tpot_decode"))
    note(*idle_limits(limits))
    return goal


def _offered(args: Plan) -> tuple[Any, int]:
    """The traffic, and its longest answer."""
    if args.users is not None and (args.rate is not None or args.trace is not None):
        raise BadValue("--users", args.users, "one load: --users, --rate or --trace (a rate scales a trace)")
    rate = None if args.rate is None else float(schema.scalar(args.rate, schema.fields(Load)["rate"][0], "--rate"))
    if args.trace is not None:
        if not args.trace:
            raise BadValue("--trace", args.trace, "a file of requests")
        if args.prompt is not None or args.output is not None:
            raise BadValue("--trace", args.trace, "a trace alone, which has its own lengths; --rate scales it")
        trace = read_trace(args.trace)
        if len(trace.traffic) < 2:
            raise BadValue("--trace", args.trace, "at least two requests")
        note(*trace.notes())
        return OfferedTraffic(trace=trace.traffic, rate=rate), int(trace.traffic.output.max())
    load = arguments.requested({name: text for name in ("prompt", "output") if (text := getattr(args, name))})
    texts = {name: str(value) if isinstance(value, str) else str(int(value)) for name, value in load.items()}
    prompt, output_lengths = parse_lengths(texts["prompt"], "--prompt"), parse_lengths(texts["output"], "--output", answers=True)
    users = 0 if args.users is None else int(schema.scalar(args.users, schema.fields(Load)["batch"][0], "--users"))
    offered = OfferedTraffic(rate=rate, users=users, prompt=prompt, output=output_lengths)
    return offered, int(offered.load(1000, 0).traffic.output.max())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _SearchInput:
    """What the search is given besides limits and machines."""

    models: Any
    load: Load
    lists: dict[str, Any]  # formats, and pinned degrees as `ways`, as typed
    rest: dict[str, Any]

    def members(self) -> Iterator[dict[str, Any]]:
        """Each combination of listed formats and degrees."""
        formats = {name: values for name, values in self.lists.items() if name != "ways"}
        degrees = {name: schema.several(value) for name, value in self.lists["ways"].items()}
        for values in itertools.product(*formats.values(), *degrees.values()):
            member = dict(zip((*formats, *degrees), values, strict=True))
            yield {name: member[name] for name in formats} | {"ways": {name: member[name] for name in degrees}}


def _search_input(args: Plan, goal: Any) -> _SearchInput:
    degrees = schema.read(args, Layout, most=arguments.MOST_VALUES)
    formats = schema.read(args, Precision)
    assumption_sets = arguments.combinations(args, Assumptions)
    if len(assumption_sets) > 1:
        raise BadValue("plan", "a list of assumptions", "one value of each at a load: the plan is checked by simulation")
    if args.batch is not None:
        raise BadValue("--batch", args.batch, "no --batch at a load: how many requests are in flight follows from it")
    if args.disaggregate:
        raise BadValue("--disaggregate", "at a load", "no --rate, --users or --trace: pools are not checked by simulation yet")
    offered = goal.offered
    sample = offered.load(2000, 0).traffic
    prompt, answer_tokens = (user_input(max(1, round(float(lengths.mean()))), name, "token") for name, lengths in (
        ("prompt", sample.prompt), ("output", sample.output)))  # fmt: skip
    rate = offered.rate if offered.rate is not None or offered.users else _trace_rate(offered.trace)
    models = arguments.models(args)
    note(*search_notes(args, {"prompt": prompt, "output": answer_tokens}))
    arguments.note_beyond(models, {"prompt": prompt, "output": answer_tokens})
    names: dict[str, Any] = schema.axes(formats)
    rest = {
        "assumptions": schema.defaults(Assumptions, assumption_sets[0]), "objective": args.objective,
        "current": args.current, "plainest": args.plainest != "off", "users": offered.users or None, "spare": _spare(args),
    } | launch_lines.search_input(args)  # fmt: skip
    load = Load(prompt=prompt, output=answer_tokens, rate=rate)
    return _SearchInput(models=models, load=load, lists=names | {"ways": degrees}, rest=rest)


def _spare(args: Plan) -> int:
    """Nodes that may be lost."""
    if args.spare is None:
        return 0
    count = schema.Field(integer=True, open_low=False, high=MOST_SPARE)
    return int(schema.scalar(args.spare, count, "--spare"))


def _trace_rate(trace: Any) -> float:
    """Mean requests per second of a trace."""
    span = float(trace.arrival.max() - trace.arrival.min())
    if span <= 0:
        raise BadValue("--trace", "requests that all come at once", "a trace with arrival times, or --rate beside it")
    return len(trace) / span

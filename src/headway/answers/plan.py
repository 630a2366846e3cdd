"""`headway plan MODEL --on MACHINE --prompt N --output N [--ttft 2s] [--tpot 50ms]`: the best layout for a load and limits.

At a load (--rate, --users or --trace) in whole nodes or cards, checked by simulation; with --launch the command lines that realise it.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from headway.answers import arguments, plan_helps, serve
from headway.answers.no_effect import one_pool_notes, search_notes, shown_notes
from headway.core import schema
from headway.core.catalog import fold
from headway.core.errors import BadValue, IllegalCombination, UnknownName, drop_note
from headway.core.files import save
from headway.core.notes import note
from headway.core.quantity import user_input
from headway.hardware.system import chips_per_host
from headway.models.config import model as model_of
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.drafts import choices
from headway.performance.layout import Layout
from headway.performance.workload import SLO, Load
from headway.report import layout_pictures, output, rates_picture, serving
from headway.report import plan as words
from headway.report import plan_load as load_words
from headway.report.words import interval, subject
from headway.serving import curves
from headway.serving.launch import kubernetes
from headway.serving.launch.launch import Launch, launch
from headway.serving.launch.needs import Speculation
from headway.serving.plan.choice import POOLED
from headway.serving.plan.plan import LayoutPlan
from headway.serving.plan.plan import plan as search
from headway.serving.plan.sensitivity import parse
from headway.serving.serve import changes
from headway.simulation.check import check, offered, plan_at_load
from headway.simulation.check.limits import LatencyLimits, check_limits, idle_limits, read_limits
from headway.simulation.questions import MOST_SPARE, Plan
from headway.simulation.traffic import read

if TYPE_CHECKING:
    from headway.core.listing import Rows
    from headway.hardware.system import System
    from headway.models.model import Model
    from headway.performance.estimate import Deployment
    from headway.report.pictures.frame import Picture, View
    from headway.simulation.check.limits import LatencyLimit
    from headway.simulation.check.offered import OfferedTraffic
    from headway.simulation.check.plan_at_load import CheckedPlan, LoadGoal


SEARCH_RESULTS = frozenset((*schema.fields(Layout), *schema.fields(Precision), "batch", "gain", *POOLED))  # columns that a search fills
ONLY_AT_LOAD = ("confidence", "no_check", "spare")
MOST_PLANS = 100
LOADS = ("rate", "prompt", "output")  # columns of a load


def run(args: Plan) -> output.Answer:
    """Answer with the best layout, the frontier of speed against cost, sensitivities, and the user's layout."""
    if _is_loaded(args):
        return _at_load(args)
    plans = _plans(args)
    if len(plans) == 1:
        _, plan = plans[0]
        script = launched(args, plan)
        table = dataclasses.replace(plan.table, notes=(*plan.table.notes, *_nearest(plans)))
        return output.Answer(
            table, notes=script.notes, launch=script.lines, document=script.document,
            describe=lambda rows: words.describe(rows, plan, own_changes(args, plan) or _helps(args, plan)), pictures=pictures(plan),
        )  # fmt: skip
    if args.launch or args.manifest:
        raise BadValue("--launch", args.launch or args.manifest, "one plan: no lists of loads, limits or assumptions")
    tables = [dataclasses.replace(case_plan.table, columns={**case_plan.table.columns, **varied}) for varied, case_plan in plans]
    table = tables[0].concat(*tables[1:])
    table = dataclasses.replace(table, notes=(*table.notes, *_nearest(plans)))
    best = [varied | {key: case_plan.table.row(0).get(key) for key in LOADS} for varied, case_plan in plans]
    varying = [key for key in best[0] if len({str(row[key]) for row in best}) > 1]
    is_priced = all(case_plan.table.row(0).get("usd_per_month") for _, case_plan in plans[:2])
    drawings = {"grid": lambda rows, view: serve.inputs_picture(None, rows.where("kind = best"), view, SEARCH_RESULTS)}
    if "rate" in varying and is_priced:
        rest = [key for key in varying if key != "rate"]
        drawings = {"rates": lambda rows, view: rates_picture.by_rate(list(rows), rest, view)} | drawings
    return output.Answer(table, describe=words.describe_several, pictures=drawings)


def first(args: Plan) -> output.Answer | None:
    """The best layout without the rows beside it; None at a load."""
    return None if _is_loaded(args) else output.Answer(_plans(args, beside=False)[0][1].table)


def _is_loaded(args: Plan) -> bool:
    """Whether the question has one load, which a list of rates is not; without one, flags about it are refused."""
    rates = args.rate is not None and not any(mark in args.rate for mark in (",", ".."))
    if rates or args.users is not None or args.trace is not None:
        return True
    for name in (*ONLY_AT_LOAD, *(name for name in schema.fields(LatencyLimits) if name not in ("ttft", "tpot", "e2e"))):
        value = getattr(args, name)
        if value not in (None, False):
            raise BadValue(schema.flag(name), value, "one load beside it: --rate 12, --users 64 or --trace FILE")
    return False


def _helps(args: Plan, plan: LayoutPlan) -> list[output.Help]:
    """Formats and drafts that would help a plan without a load, then 1 % of its inputs."""

    def planned(question: Plan) -> LayoutPlan:
        return _plans(question, beside=False)[0][1]

    return output.ranked([*plan_helps.helps(args, plan, planned, planned), *words.helps(plan)])


def _load_helps(args: Plan, checked: CheckedPlan) -> list[output.Help]:
    """Formats and drafts that would help a plan at a load, each planned and simulated anew."""

    def planned(question: Plan) -> LayoutPlan:
        answer = carried(question, beside=False)
        return answer.plan if answer.holds else dataclasses.replace(answer.plan, fails="time")

    before = checked.plan if checked.holds else dataclasses.replace(checked.plan, fails=checked.plan.fails or "time")
    cheaper = plan_helps.helps(args, before, planned, planned if args.no_check else expected)
    return cheaper or ([] if before.fails else best_changes(args, before))


def _plans(args: Plan, beside: bool = True) -> list[tuple[dict[str, Any], LayoutPlan]]:
    """Plans for each combination of loads, limits and assumptions; with rows beside the best ones, or without."""
    bare, counts = _counts_of_drafts(args)
    grid = arguments.search_grid(bare)
    batch = grid.load.pop("batch", None)  # of which each plan searches all values
    cases = grid.cases("plan", MOST_PLANS, {}, each_subject=False)
    systems = [system for system, _ in grid.systems]
    note(*search_notes(args, schema.axes(grid.load) | {"batch": batch}))
    plans, illegal = [], list[IllegalCombination]()
    for case in cases:
        try:
            case_plan = search(
                grid.models, systems, case.load, case.slo, **grid.formats, ways=grid.degrees, batch=batch,
                assumptions=choices(schema.defaults(Assumptions, case.assumptions), counts), objective=args.objective,
                disaggregate=args.disaggregate,
                current=args.current, elasticities=beside and len(cases) == 1, frontier=beside, plainest=args.plainest != "off",
                **search_input(args),
            )  # fmt: skip
        except IllegalCombination as error:
            illegal.append(error)
            continue
        plans.append((case.labels | case.varied, case_plan))
    if not plans:
        raise illegal[0]
    best = [case_plan.best for _, case_plan in plans]
    note(*one_pool_notes(args.disaggregate, (group for _, case_plan in plans for group in case_plan.groups)))
    note(*shown_notes(args, best), *drop_note(illegal, len(cases), "combinations of loads, limits and assumptions"))
    return plans


def _counts_of_drafts(args: Plan) -> tuple[Plan, tuple[Any, ...]]:
    """The question without a list of --draft-tokens, and that list, whose best member each plan takes."""
    counts = schema.several(schema.read(args, Assumptions, most=arguments.MOST_VALUES).get("draft_tokens"))
    return (args.replace(draft_tokens=None), tuple(counts)) if len(counts) > 1 and args.draft else (args, ())


def _nearest(plans: Sequence[tuple[dict[str, Any], LayoutPlan]]) -> list[str]:
    """Sentences on the measured rows nearest to the best layout of each plan."""
    best = [plan.best.case for _, plan in plans]
    return list(dict.fromkeys(serving.nearest_measured(query.model, query.system.chip, query.assumptions.engine) for query in best))


def pictures(plan: LayoutPlan) -> dict[str, Any]:
    """Pictures of a plan by name, the frontier first."""
    query = plan.best.case
    tpot = getattr(plan.slo, "tpot", None)

    def frontier(rows: Rows, view: View) -> Picture:
        return words.frontier(list(rows), None if tpot is None else float(tpot), view)

    def memory(rows: Rows, view: View) -> Picture:
        points = [row for row in words.points_of(list(rows)) if row["kind"] in ("best", "nearest", "current")]
        names = [f"{row['kind']}: {serving.layout(row)}, batch {row['batch']:,.0f}" for row in points]
        return layout_pictures.memory(points, names, view, subject(points[0]))

    def tornado(rows: Rows, view: View) -> Picture:
        return words.tornado(list(rows), plan.objective, view)

    def batch(rows: Rows, view: View) -> Picture:
        row = plan.table.row(0)
        about = f"{serving.layout(row)}, {serving.formats(row)}, decoding at context {serving.value(row, 'context')}"
        case = curves.of_row(query.model, query.system, row, query.assumptions)
        return layout_pictures.batch(case, row, about, view, float(row["batch"]))

    drawings = {"frontier": frontier, "memory": memory, "tornado": tornado, "batch": batch}
    if len(words.on_frontier(plan.table)) < 2:  # one point is no line
        del drawings["frontier"]
    return drawings


# -- at a load ------------------------------------------------------------------------------------------------------------------

MOST_QUESTIONS = 200  # combinations of models, machines, formats and degrees, each simulated


def _at_load(args: Plan) -> output.Answer:
    """The fewest nodes, or cards where clouds rent them singly, that carry the load within every limit."""
    goal = _goal(args)
    inputs = _search_at_load(args, goal)
    systems = [system for system, _ in arguments.systems(args)]
    checked, *runners_up = _sized(args, goal, inputs, systems)
    sized = None
    if not checked.holds and any(system.fixed_count for system in systems):
        sized = _checked(inputs, goal, [_any_number(system) for system in systems])[0]
    facts = load_words.facts_of_rows(checked, runners_up, inputs.rest["spare"])
    script = launched(args, checked.plan)
    return output.Answer(
        load_words.with_facts(checked.plan.table, facts), notes=[*shown_notes(args, [checked.plan.best]), *script.notes],
        launch=script.lines, document=script.document, checked=load_words.verdict(checked),
        describe=lambda rows: load_words.describe(rows, checked, sized, own_changes(args, checked.plan) or _load_helps(args, checked)),
        pictures=pictures(checked.plan) | {"ladder": lambda rows, view: load_words.ladder(list(rows), goal.confidence, view)},
    )  # fmt: skip


def _sized(
    args: Plan, goal: LoadGoal, inputs: _SearchInput, systems: Sequence[System], beside: bool = True
) -> list[CheckedPlan]:  # fmt: skip
    """The answer of each model on each machine, the best first; without a check the best by expected times alone."""
    if not args.no_check:
        return _checked(inputs, goal, systems, beside)
    means = {limit.quantity: limit.most_s for limit in goal.limits if _is_mean(limit)}
    unchecked = search(inputs.models, systems, inputs.load, SLO(tpot_decode=goal.tpot_decode, **means), **inputs.rest | inputs.lists)
    return [plan_at_load.CheckedPlan(plan=unchecked, goal=goal)]


def carried(args: Plan, beside: bool = True) -> CheckedPlan:
    """The plan that carries the load of a question, as its answer has it; without the rows beside the best ones if not `beside`."""
    goal = _goal(args)
    return _sized(args, goal, _search_at_load(args, goal), [system for system, _ in arguments.systems(args)], beside)[0]


def expected(args: Plan, factor: float | None = None) -> LayoutPlan:
    """The same by the search alone: limits on percentiles as if they were on means, steps so many times as long as expected.

    Without a factor they are as long as the confidence of the question wants, or with --no-check as expected.
    """
    goal = _goal(args)
    inputs, systems = _search_at_load(args, goal, is_noted=False), [system for system, _ in arguments.systems(args)]
    if factor is None and not args.no_check:
        pairs = list(itertools.product(inputs.models, systems))
        factor = plan_at_load.step_factor(dataclasses.replace(goal, width=plan_at_load.width_of(pairs, inputs.rest["assumptions"])))
    lists = inputs.rest | inputs.lists
    return search(
        inputs.models, systems, inputs.load, plan_at_load.first_limits(goal), step_factor=factor or 1.0, elasticities=False,
        frontier=False, **lists,
    )  # fmt: skip


def _any_number(machine: System) -> System:
    """The machine without a number: of chips joined as usual the bare chip, as one would type it."""
    bare = fold(machine.chip.name)
    if machine.fixed_count and not machine.shape and machine.name in (bare, f"{int(machine.chips)}x{bare}"):
        return dataclasses.replace(machine, name=bare, chips=1, scale_up_domain=1, fixed_count=False)
    return dataclasses.replace(machine, fixed_count=False)


def _checked(inputs: _SearchInput, goal: LoadGoal, systems: Sequence[System], beside: bool = True) -> list[CheckedPlan]:
    """The answer of each model on each machine, the best first, each value of a list asked alone."""

    def question(place: int, model: Model, system: System, lists: dict[str, Any]) -> tuple[int, Any, LoadGoal]:
        def search_within(slo: SLO, factor: float, way: str = "never") -> LayoutPlan:
            rest: dict[str, Any] = {**inputs.rest, **lists, "disaggregate": way}
            return search(model, system, inputs.load, slo, step_factor=factor, elasticities=False, frontier=False, **rest)

        width = plan_at_load.width_of([(model, system)], inputs.rest["assumptions"])
        return place, search_within, dataclasses.replace(goal, width=width)

    subjects = enumerate(itertools.product(inputs.models, systems))
    pairs = itertools.product(subjects, inputs.members())
    questions = [(place, model, system, lists) for (place, (model, system)), lists in itertools.islice(pairs, MOST_QUESTIONS + 1)]
    if len(questions) > MOST_QUESTIONS:
        wants = f"at most {MOST_QUESTIONS} at a load: each is simulated"
        raise BadValue("plan", "too many models, machines, formats, numbers of drafts and degrees", wants)
    return plan_at_load.best_at_load([question(*values) for values in questions], beside)


def _is_mean(limit: LatencyLimit) -> bool:
    """Whether a plan without a check knows what is limited."""
    return limit.statistic == "mean" and limit.quantity != "itl"


def _goal(args: Plan) -> LoadGoal:
    """The traffic, the limits and the confidence of the question."""
    traffic, longest = _offered(args)
    limits = check_limits(tuple(read_limits(args)), longest)
    share = schema.Field(low=0.5, open_low=False, high=0.999)
    confidence = float(schema.scalar(args.confidence, share, "--confidence")) if args.confidence is not None else check.DEFAULT
    percentile = next((limit for limit in limits if not _is_mean(limit)), None)
    if args.no_check and percentile:
        wants = "limits on means of TTFT, TPOT and E2E, or the check: only the simulator knows percentiles and times between tokens"
        raise BadValue("--no-check", percentile.flag, wants)
    decode = schema.read(args, SLO).get("tpot_decode")
    note(*idle_limits(limits))
    return plan_at_load.LoadGoal(
        offered=traffic, limits=limits, confidence=confidence, tpot_decode=decode,
        disaggregate="never" if args.replicas is not None and args.disaggregate == "auto" else args.disaggregate,
    )  # fmt: skip


def _offered(args: Plan) -> tuple[OfferedTraffic, int]:
    """The traffic, and its longest answer."""
    if args.users is not None and (args.rate is not None or args.trace is not None):
        raise BadValue("--users", args.users, "one load: --users, --rate or --trace (a rate scales a trace)")
    rate = None if args.rate is None else float(schema.scalar(args.rate, schema.fields(Load)["rate"][0], "--rate"))
    if args.trace is not None:
        if not args.trace:
            raise BadValue("--trace", args.trace, "a file of requests")
        if args.prompt is not None or args.output is not None:
            raise BadValue("--trace", args.trace, "a trace alone, which has its own lengths; --rate scales it")
        trace = read.read_trace(args.trace)
        if len(trace.traffic) < 2:
            raise BadValue("--trace", args.trace, "at least two requests")
        note(*trace.notes())
        return offered.OfferedTraffic(trace=trace.traffic, rate=rate), int(trace.traffic.output.max())
    load = arguments.requested({name: text for name in ("prompt", "output") if (text := getattr(args, name))})
    prompt, answers = arguments.length_distributions(load)
    users = 0 if args.users is None else int(schema.scalar(args.users, schema.fields(Load)["batch"][0], "--users"))
    traffic = offered.OfferedTraffic(rate=rate, users=users, prompt=prompt, output=answers)
    return traffic, int(traffic.load(1000, 0).traffic.output.max())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _SearchInput:
    """What the search is given besides limits and machines."""

    models: list[Model]
    load: Load
    lists: dict[str, Any]  # formats, and pinned degrees as `ways`, as typed
    rest: dict[str, Any]

    def members(self) -> Iterator[dict[str, Any]]:
        """Each combination of listed formats, numbers of drafts and degrees."""
        formats = {name: values for name, values in self.lists.items() if name != "ways"}
        degrees = {name: schema.several(value) for name, value in self.lists["ways"].items()}
        for values in itertools.product(*formats.values(), *degrees.values()):
            member = dict(zip((*formats, *degrees), values, strict=True))
            yield {name: member[name] for name in formats} | {"ways": {name: member[name] for name in degrees}}


def _search_at_load(args: Plan, goal: LoadGoal, is_noted: bool = True) -> _SearchInput:
    degrees = schema.read(args, Layout, most=arguments.MOST_VALUES)
    formats = schema.axes(schema.read(args, Precision))
    bare, counts = _counts_of_drafts(args)
    assumption_sets = arguments.combinations(bare, Assumptions)
    if len(assumption_sets) > 1:
        raise BadValue("plan", "a list of assumptions", "one value of each at a load: the plan is checked by simulation")
    if args.batch is not None:
        raise BadValue("--batch", args.batch, "no --batch at a load: how many requests are in flight follows from it")
    traffic, rate = goal.offered, goal.offered.rate
    sample = traffic.load(2000, 0).traffic
    lengths = {
        name: user_input(max(1, round(float(tokens.mean()))), name, "token")
        for name, tokens in (("prompt", sample.prompt), ("output", sample.output))
    }
    if rate is None and traffic.trace is not None:
        arrivals = traffic.trace.arrival
        span = float(arrivals.max() - arrivals.min())
        if span <= 0:
            raise BadValue("--trace", "requests that all come at once", "a trace with arrival times, or --rate beside it")
        rate = len(traffic.trace) / span
    models = arguments.models(args)
    if is_noted:
        note(*search_notes(args, lengths))
        arguments.note_beyond(models, lengths)
    assumptions = schema.defaults(Assumptions, assumption_sets[0])
    settings = {"assumptions": choices(assumptions, counts)} if counts else {}
    spare = schema.Field(integer=True, open_low=False, high=MOST_SPARE)
    rest = {
        "assumptions": assumptions, "objective": args.objective,
        "current": args.current, "plainest": args.plainest != "off", "users": traffic.users or None, "disaggregate": args.disaggregate,
        "spare": 0 if args.spare is None else int(schema.scalar(args.spare, spare, "--spare")),
    } | search_input(args)  # fmt: skip
    return _SearchInput(models=models, load=Load(**lengths, rate=rate), lists=formats | settings | {"ways": degrees}, rest=rest)


# -- what would help one layout -------------------------------------------------------------------------------------------------

LAYOUT_FLAGS = ("tp", "ep", "dp", "pp", "cp", "replicas")
MOST_CHANGES = 5


def own_changes(args: Plan, plan: LayoutPlan) -> list[output.Help]:
    """Changes of the user's own layout, the best first, each with the command that tries it; none without a layout."""
    if plan.current is None:
        return []
    typed = parse(args.current)
    args = arguments.at_place(args, min(group.place for group in plan.groups))
    formats = Precision(**{name: typed.get(name, "") for name in schema.fields(Precision)})
    return _changes_of(args, plan, "current", plan.current.case, formats)


def best_changes(args: Plan, plan: LayoutPlan) -> list[output.Help]:
    """Changes that make the best layout faster where nothing makes its load cheaper; none of two pools, which no `serve` has."""
    if plan.best.prefill is not None:
        return []
    args, row = arguments.at_place(args, plan.groups[0].place), plan.table.row(0)
    return _changes_of(args, plan, "best", plan.best.case, Precision(weights=args.weights or "", kv=row["kv"], compute=args.compute or ""))


def _changes_of(args: Plan, plan: LayoutPlan, kind: str, query: Deployment, precision: Precision) -> list[output.Help]:
    row = next(row for row in plan.table.rows() if row["kind"] == kind)
    bare = query.system.name == query.system.chip.name.replace("_", "-")
    machine = f"{int(query.system.chips)}x{query.system.name}" if bare else query.system.name
    flags = {name: getattr(args, name, None) for name in (*schema.fields(Assumptions), "chip_price")}
    flags = {name: "" if value is True else shlex.quote(str(value)) for name, value in flags.items() if value not in (None, False)}
    edits = "".join(f" --set {shlex.quote(str(edit))}" for edit in args.set)
    helps = []
    for change in changes(query.model, query.system, row, query.assumptions, precision, MOST_CHANGES):
        after = change.row
        ends = interval(after["tpot_lo_s"], after["tpot_hi_s"], "s") if after.get("tpot_lo_s") is not None else ""
        effect = serving.changed(row, after) + (f" (TPOT 90 %: {ends})" if ends else "")
        words = [f"--{name} {int(after[name])}" for name in LAYOUT_FLAGS if (after.get(name) or 1) != 1]
        words += [f"--{name} {value}" for name in schema.fields(Precision) if (value := getattr(change.precision, name))]
        words += [f"--{name} {after[name]:g}" for name in ("rate" if after.get("rate") is not None else "batch", "prompt", "output")]
        settings = "".join(f" {schema.flag(name)} {text}".rstrip() for name, text in flags.items() if name != change.left_out) + edits
        command = f"headway serve {shlex.quote(str(args.model))} --on {machine} {' '.join(words)}{settings}"
        helps.append(output.Help(change=change.flag, effect=f"{effect}; try: {command}", gain=change.gain))
    return helps


# -- launch lines ---------------------------------------------------------------------------------------------------------------

KINDS = ("k8s",)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LaunchScript:
    """Command lines, notes on them, and a manifest for standard output."""

    lines: Sequence[str] = ()
    notes: Sequence[str] = ()
    document: str = ""


def search_input(args: Plan) -> dict[str, Any]:
    """What the search of a plan is told about the launch: the engine that must express the layout, and the chips of its hosts."""
    if args.chips_per_host is not None and not args.launch:
        raise BadValue("--chips-per-host", _chips_per_host(args.chips_per_host), "--launch ENGINE beside it: it is about the command line")
    host = None if args.chips_per_host is None else _chips_per_host(args.chips_per_host)
    return {"launch": args.launch or "", "chips_per_host": host}


def launched(args: Plan, plan: LayoutPlan) -> LaunchScript:
    """Launch lines with notes, or the reason why the engine cannot run the layout; the manifest as a document, or in the file named."""
    if args.manifest and args.manifest[0] not in KINDS:
        raise UnknownName("kind of manifest", args.manifest[0], KINDS, "k8s")
    if args.manifest and len(args.manifest) > 2:
        raise BadValue("--manifest", " ".join(args.manifest), "k8s and at most one file, after the model: --manifest k8s FILE")
    if args.manifest and not args.launch:
        raise IllegalCombination("--manifest", args.manifest[0], "--launch vllm, sglang or trtllm beside it")
    if not args.launch:
        return LaunchScript()
    if plan.fails:
        return LaunchScript(notes=["launch: nothing to launch, no layout meets every limit"])
    pools = _pools(args, plan)
    failures = [pool.unsupported for pool in pools if pool.unsupported]
    if failures:
        return LaunchScript(notes=[f"launch: {why}" for why in dict.fromkeys(failures)])
    lines, notes = [line for pool in pools for line in pool.lines], list[str]()
    for pool in pools:
        for text in pool.notes:
            differs = " hosts: " in text or "REPLICA=" in text or " counts for each" in text  # by the pool
            notes.append(f"launch: {pool.role} pool: {text}" if pool.role and differs else f"launch: {text}")
    notes = list(dict.fromkeys(notes))
    if not args.manifest:
        return LaunchScript(lines=lines, notes=notes)
    case, exposed = plan.best.case, _pools(args, plan, manifest=True)
    document = kubernetes.manifests(exposed, case.model.name, case.system.chip.vendor)
    more = kubernetes.notes(exposed)
    if len(args.manifest) == 1:
        return LaunchScript(lines=lines, notes=notes, document="".join(f"# {text}\n" for text in more) + document)
    save(args.manifest[1], document)
    where = f"launch: manifests are in {args.manifest[1]}"
    return LaunchScript(lines=lines, notes=[where, *notes, *(f"launch: {text}" for text in more)])


def _pools(args: Plan, plan: LayoutPlan, manifest: bool = False) -> list[Launch]:
    """Launches of the pools, prefill first; for a manifest those of one replica that listens on every address."""
    best, row = plan.best, plan.table.row(0)
    case, load = best.case, best.case.load
    precision = Precision(weights=row["weights"] if args.weights else "", kv=row["kv"], compute=row["compute"] if args.compute else "")
    host = _chips_per_host(args.chips_per_host) if args.chips_per_host else chips_per_host(case.system)
    launches = []
    for role, layout in (("prefill", best.prefill), ("decode" if best.prefill else "", case.layout)):
        if layout is None:
            continue
        sequences = None  # that one replica must admit: its users, or at a rate as many as fit
        if role != "prefill" and load.rate is None:
            sequences = math.ceil(load.batch)
        elif role != "prefill":
            pool_case = case.at(layout, load)
            sequences = max(1, int(pool_case.server(pool_case.compiled()).seats(load.prompt, load.output)))
        pool = launch(
            args.launch, case.model, dataclasses.replace(layout, replicas=1) if manifest else layout, precision, load,
            memory=case.assumptions.hbm_utilization, chips_per_host=host, checkpoint=_checkpoint(args, case.model),
            sequences=sequences, role=role, exposed=manifest, eager=case.assumptions.eager,
            host_bytes=case.at(layout, load).compiled().host_bytes, speculation=_speculation(case),
        )  # fmt: skip
        launches.append(dataclasses.replace(pool, replicas=int(layout.replicas)))
    return launches


def _speculation(case: Deployment) -> Speculation | None:
    """What drafts, where the user says so."""
    drafts = case.drafts
    if drafts is None or drafts.stated_length is not None:
        return None
    return Speculation.of(drafts.kind, drafts.tokens, drafts.model if drafts.kind == "model" else None)


def _checkpoint(args: Plan, model: Model) -> str:
    """The model as the user named it."""
    if not isinstance(args.model, str):
        return ""
    models = [part.strip() for part in args.model.split(",")]
    if len(models) == 1 or args.model.lstrip().startswith("("):
        return args.model.strip()
    return next((part for part in models if model_of(part, args.catalog or ()).name == model.name), "")


def _chips_per_host(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise BadValue("--chips-per-host", text, "a whole number of chips, such as 4 or 8") from None

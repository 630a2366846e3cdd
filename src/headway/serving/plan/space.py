"""The space that `plan` searches: legal layouts of a model with each replica inside one scale-up domain or on whole domains.

Layouts that the engine asked for cannot express are left out, unless the user pins such a layout.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from headway.core import schema
from headway.core.errors import BadValue, IllegalCombination, IllegalLayout
from headway.hardware.system import System, chips_per_host
from headway.laws.serving.replicas import replicas_held
from headway.laws.step.layer_terms import replica_chips
from headway.models.precision import Precision
from headway.performance.compile import halves
from headway.performance.estimate import Deployment
from headway.performance.layout import NAMES, UNHALVED, Layout, ModelShape, expert_why, illegal, tensor_why
from headway.serving.launch.launch import ENGINES, flags
from headway.serving.launch.needs import ask

EXHAUSTIVE_CHIPS = 256  # domain size in chips up to which every dp and pp is tried
MOST = 200_000
MOST_PINS = 10_000  # most values of one degree
EVEN = 2  # sequences on a rank from which a batch can be halved
FEW = 8  # smallest values of each degree tried for the smallest legal layout


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSpace:
    """Legal layouts, each number an array (n, 1); `why` is the reason if there is none."""

    layouts: Layout
    count: int
    notes: tuple[str, ...]
    sample: Layout | None = None  # the smallest requested layout, if none fits the machine
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProblem:
    """One model on one machine in one set of formats, and the layouts to search."""

    case: Deployment
    precision: Precision
    space: SearchSpace


def domain_of(system: System) -> int:
    """Most chips of one replica: the scale-up domain, or all chips without a domain."""
    return int(system.scale_up_domain if system.scale_up_domain is not None else system.chips)


def space(shape: ModelShape, system: System, degrees: Mapping[str, Any]) -> SearchSpace:
    """All layouts that are legal for the model and fit the machine, as arrays; `degrees` pins or lists degrees of parallelism."""
    unknown = [name for name in degrees if name not in NAMES]
    if unknown:
        raise BadValue("layout", unknown[0], "one of " + ", ".join(NAMES))
    pinned = {name: _pinned_values(name, value) for name, value in degrees.items() if value is not None}
    pinned, notes = _legal(pinned, shape)
    domain, rows = domain_of(system), []
    for tp, cp, pp, dp, ep in _combinations(pinned, shape, domain):
        rows.append((tp, ep, dp, pp, cp))
        if len(rows) > MOST:
            raise BadValue("layout", f"more than {MOST} layouts", "some of tp, ep, dp, pp pinned")
    spanning = _spanning(pinned, shape, system, domain)
    rows += spanning
    if spanning:
        notes += (f"{system.name}: replicas larger than a scale-up domain take whole ones; tp stays inside",)
    if domain > EXHAUSTIVE_CHIPS and not {"dp", "pp"} <= set(pinned):
        notes += (f"{system.name}: a domain of {domain} chips; dp and pp are searched over 1, 2, 3, 4, 6, 8, 12, ... only",)
    if not rows:
        sample = _smallest(pinned, shape)
        chips = sample.chips
        why = f"{sample} needs {chips} chips per replica, one scale-up domain of {system.name} has {domain}"
        return SearchSpace(layouts=Layout(), count=0, notes=notes, why=why, sample=sample)
    return _with_replicas(np.array(rows, dtype=np.int64), pinned, system, notes)


def halved(layouts: SearchSpace, batches: Sequence[int]) -> SearchSpace:
    """The layouts of several chips, whose collectives another half batch can hide, and which one of the pinned batches fills twice."""
    if not layouts.count:
        return layouts
    good = halves(layouts.layouts, np.array([batches]) if batches else EVEN * layouts.layouts.dp * layouts.layouts.pp)
    keep = np.flatnonzero(np.broadcast_to(good, (layouts.count, max(len(batches), 1))).any(axis=1))
    if not len(keep):
        raise IllegalCombination("communication", "two-batch", UNHALVED)
    if len(keep) == layouts.count:
        return layouts
    note = f"two-batch: dropped {layouts.count - len(keep)} of {layouts.count} layouts, which lack {UNHALVED}"
    rows = Layout(**{name: getattr(layouts.layouts, name)[keep] for name in NAMES})
    return replace(layouts, layouts=rows, count=len(keep), notes=(*layouts.notes, note))


def _smallest(pinned: Mapping[str, tuple[int, ...]], shape: ModelShape) -> Layout:
    """The legal layout of fewest chips with the pinned degrees, machine ignored; IllegalLayout if there is none."""
    lists = [pinned.get(name, (1,))[:FEW] for name in ("tp", "ep", "pp", "cp", "replicas")]
    layouts = [
        Layout(tp=tp, ep=ep, dp=dp, pp=pp, cp=cp, replicas=replicas)
        for tp, ep, pp, cp, replicas in itertools.product(*lists)
        for dp in pinned.get("dp", (ep // math.gcd(ep, tp * cp),))[:FEW]
    ]
    legal = [layout for layout in layouts if not illegal(layout, shape)]
    if not legal:
        raise IllegalLayout(layouts[0], illegal(layouts[0], shape))
    return min(legal, key=lambda layout: layout.chips)


def _pinned_values(name: str, value: Any) -> tuple[int, ...]:
    values: tuple[Any, ...] = tuple(value) if isinstance(value, list | tuple | range) else (value,)
    q = schema.fields(Layout)[name][0]
    for entry in values:
        wants = q.illegal(entry) if isinstance(entry, int | float) else "a whole number"
        if wants:
            raise BadValue(name, entry, wants)
    if len(values) > MOST_PINS:
        raise BadValue(name, f"{len(values)} values", f"at most {MOST_PINS}")
    return tuple(sorted({int(number) for number in values}))


def _legal(pinned: dict[str, tuple[int, ...]], shape: ModelShape) -> tuple[dict[str, tuple[int, ...]], tuple[str, ...]]:
    """Pinned degrees that some layout allows, and notes on dropped list members; IllegalLayout if none of a list is legal."""
    legal_pins, notes = {}, ()
    for name, values in pinned.items():
        reasons = {value: _alone(name, value, shape) for value in values}
        legal = tuple(value for value in values if not reasons[value])
        if not legal:
            raise IllegalLayout(f"{name}={values[0]}", reasons[values[0]])
        if len(legal) < len(values):
            first = next(value for value in values if reasons[value])
            notes += (f"{name}: dropped {len(values) - len(legal)} of {len(values)} values as illegal, such as {reasons[first]}",)
        legal_pins[name] = legal
    return legal_pins, notes


def _alone(name: str, value: int, shape: ModelShape) -> str:
    """Why one degree is illegal with any other degrees, or ""."""
    if name == "dp" and value > 1 and not shape.experts:
        return f"dp {value} of a model without routed experts is {value} copies, which replicas count: a search sets them"
    beside = {"dp": value} if name == "ep" else {}  # ep divides tp*cp*dp for some dp
    whole_experts = replace(shape, dimensions=tuple(part for part in shape.dimensions if not part.expert))  # that some ep leaves
    return illegal(Layout(**{name: value} | beside), whole_experts)


def _combinations(pinned: Mapping[str, tuple[int, ...]], shape: ModelShape, domain: int) -> Iterable[tuple[int, int, int, int, int]]:
    tps = _tensor_ways(pinned, shape, domain)
    pps = pinned.get("pp") or _counts(min(domain, int(shape.layers)), domain)
    dps = pinned.get("dp") or (_counts(domain, domain) if shape.experts else (1,))
    cps = pinned.get("cp") or (1,)
    divisors: dict[int, list[int]] = {}
    for tp in tps:
        for cp in cps:
            for pp in pps:
                for dp in dps:
                    stage_ranks = tp * cp * dp
                    if stage_ranks * pp > domain:
                        break  # dps are in ascending order
                    if stage_ranks not in divisors:
                        divisors[stage_ranks] = _expert_ways(stage_ranks, shape, pinned)
                    for ep in divisors[stage_ranks]:
                        yield tp, cp, pp, dp, ep


def _spanning(
    pinned: Mapping[str, tuple[int, ...]], shape: ModelShape, system: System, domain: int
) -> list[tuple[int, int, int, int, int]]:
    """Layouts on whole domains joined by scale-out, if known: 2, 3, 4, 6, 8, 9, 12, ... and all domains; any number if dp is pinned."""
    domains = int(system.chips) // domain
    if domains < 2 or (system.scale_out_bw is None and system.chip.scale_out_bw is None):
        return []
    smooth = {2**two * 3**three for two in range(domains.bit_length()) for three in range(domains.bit_length())}
    counts = range(2, domains + 1) if "dp" in pinned else [count for count in smooth | {domains} if 2 <= count <= domains]
    rows = []
    for chips in sorted(count * domain for count in counts):
        stages = pinned.get("pp") or range(1, min(chips, int(shape.layers)) + 1)
        for tp, cp in itertools.product(_tensor_ways(pinned, shape, domain), pinned.get("cp") or (1,)):
            for pp in (pp for pp in stages if chips % pp == 0):
                dp, rest = divmod(chips, tp * cp * pp)
                dp_is_allowed = dp in pinned["dp"] if "dp" in pinned else dp == 1 or shape.experts
                if rest == 0 and dp and tp * cp <= domain and dp_is_allowed:
                    rows += [(tp, ep, dp, pp, cp) for ep in _expert_ways(tp * cp * dp, shape, pinned)]
    return rows


def _tensor_ways(pinned: Mapping[str, tuple[int, ...]], shape: ModelShape, domain: int) -> list[int]:
    most = min(domain, int(min(shape.heads, default=EXHAUSTIVE_CHIPS)))
    return list(pinned.get("tp") or [tp for tp in range(1, most + 1) if not tensor_why(tp, shape)])


def _counts(most: int, domain: int) -> list[int]:
    """Every count up to `most`; in a very large domain only 2^n and 3 * 2^n."""
    if domain <= EXHAUSTIVE_CHIPS:
        return list(range(1, most + 1))
    powers = [2**power for power in range(most.bit_length())]
    return sorted({count for power in powers for count in (power, 3 * power) if count <= most})


def _copies(pinned: Mapping[str, tuple[int, ...]]) -> int:
    """The requested redundant experts; `plan` does not search them, since their benefit needs an unknown load imbalance."""
    copies = tuple(pinned.get("redundant", [0]))
    if len(copies) > 1:
        raise BadValue("redundant", f"{len(copies)} values", "one number of copies in a plan")
    return max(copies, default=0)


def _expert_ways(stage_ranks: int, shape: ModelShape, pinned: Mapping[str, tuple[int, ...]]) -> list[int]:
    """Degrees of expert parallelism that divide a stage's chips and leave shares of an expert that engines load."""
    most = max(int(shape.experts) + _copies(pinned), 1)
    degrees = [ep for ep in (pinned.get("ep") or range(1, min(stage_ranks, most) + 1)) if stage_ranks % ep == 0 and ep <= most]
    return [ep for ep in degrees if not expert_why(stage_ranks // ep, shape)]


def _with_replicas(layout_rows: np.ndarray, pinned: Mapping[str, tuple[int, ...]], system: System, notes: tuple[str, ...]) -> SearchSpace:
    """The layouts with the replicas that the system holds, or the requested replicas if they fit."""
    columns: dict[str, Any] = dict(zip(("tp", "ep", "dp", "pp", "cp"), layout_rows.T, strict=True))
    columns["redundant"] = np.full(len(layout_rows), _copies(pinned))
    chips = replica_chips(columns["tp"], columns["cp"], columns["dp"], columns["pp"])
    most_replicas = np.asarray(replicas_held(int(system.chips), domain_of(system), chips)).astype(np.int64)
    if "replicas" not in pinned:
        all_columns = columns | {"replicas": most_replicas}
    else:
        parts = [(np.flatnonzero(most_replicas >= count), count) for count in pinned["replicas"]]
        rows = np.concatenate([rows for rows, _ in parts])
        all_columns = {name: column[rows] for name, column in columns.items()}
        all_columns["replicas"] = np.concatenate([np.full(len(rows), count) for rows, count in parts])
        if not len(rows):
            count, least = min(pinned["replicas"]), int(np.argmin(chips))
            sample = Layout(**{name: int(column[least]) for name, column in columns.items()}, replicas=count)
            need = f"{count} replicas need at least {count * int(chips.min())} chips in domains of {domain_of(system)}"
            why = f"{need}, the system has {int(system.chips)}"
            return SearchSpace(layouts=Layout(), count=0, notes=notes, why=why, sample=sample)
    arrays = {field.name: all_columns[field.name].reshape(-1, 1) for field in fields(Layout)}
    return SearchSpace(layouts=Layout(**arrays), count=len(all_columns["tp"]), notes=notes)


def expressible(layouts: SearchSpace, case: Deployment, engine: str, host: Any = None) -> SearchSpace:
    """The layouts that `engine` can express on hosts of `host` chips, with a note on the others; all, with a note, if it expresses none.

    An engine without launch lines expresses all.
    """
    if engine not in ENGINES or not layouts.count:
        return layouts
    writer, name = ENGINES[engine], flags(engine).name
    request = ask(case.model, Layout(), Precision(), None, None, chips_per_host(case.system) if host is None else host)
    columns = [np.broadcast_to(getattr(layouts.layouts, key), (layouts.count, 1))[:, 0].tolist() for key in NAMES]
    rows = [dict(zip(NAMES, degrees, strict=True)) for degrees in zip(*columns, strict=True)]
    reasons = [writer.layout_why(replace(request, layout=Layout(**row))) for row in rows]
    keep = np.flatnonzero([not why for why in reasons])
    if len(keep) == len(rows):
        return layouts
    first = next(place for place, why in enumerate(reasons) if why)
    if not len(keep):
        note = f"{name} cannot express the layout asked for: {reasons[first]}"
        return replace(layouts, notes=(*layouts.notes, note))
    note = f"left out {len(rows) - len(keep)} of {len(rows)} layouts that {name} cannot express, such as {Layout(**rows[first])}"
    kept_layouts = Layout(**{key: getattr(layouts.layouts, key)[keep] for key in NAMES})
    return replace(layouts, layouts=kept_layouts, count=len(keep), notes=(*layouts.notes, note))

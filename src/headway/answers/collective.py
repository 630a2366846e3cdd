"""`headway collective OPERATION BYTES|ARRAY --mesh X4,Y8 --over X --on MACHINE`: time of one collective or of one message.

With the flags that `matmul` shares: the mesh, its links by machine or by numbers, sizes of dimensions as axes."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from typing import TYPE_CHECKING, Any

from headway.answers import arguments
from headway.core import schema
from headway.core.errors import BadValue, UnknownName
from headway.core.law_values import assignments
from headway.core.listing import traced_listing
from headway.core.quantity import user_input
from headway.core.schema import Field
from headway.core.trace import record
from headway.laws.roofline.balance import array_bytes
from headway.models.precision import formats
from headway.performance import mesh as notation
from headway.performance.assumptions import Assumptions
from headway.performance.collectives import NEAREST, NO_WRAP, WRAP, torus_sides
from headway.performance.mesh import NETWORKS, OPERATIONS, by_numbers, collective, of_system, send
from headway.performance.product import Chain, ProductRates
from headway.performance.questions import CollectiveQuestion, MeshQuestion
from headway.report import mesh as words
from headway.report import output

if TYPE_CHECKING:
    from headway.hardware.system import System

SHARES = ("exact", "limit")
SIZE = Field("byte", "")
COUNT = Field(low=1, open_low=False, integer=True)


def run(args: CollectiveQuestion) -> output.Answer:
    """Answer with a row for each size."""
    operation, subscript = _operation(args.operation)
    system = machine(args)
    mesh = args.mesh or whole_machine(system)
    axes = notation.mesh(mesh)
    if not axes:
        raise BadValue("--mesh", "nothing", "the axes of the chips, such as X4,Y8, or a machine of several chips")
    notes = [] if args.mesh else [f"by default --mesh {mesh}: all chips of {system.name}"]
    over = args.over or subscript
    names = notation.subscripts(over.replace(",", "") if over not in [axis.name for axis in axes] else over, axes, over) if over else None
    network = links_of(args, system, axes)
    with record():
        traced = [_row(args, operation, network, axes, size, names, label) for label, size, names in _sizes(args, operation, axes, names)]
    return output.Answer(traced_listing(traced), notes=notes, describe=lambda rows: words.collective(rows, args.share), most=1000)


def _operation(text: str) -> tuple[str, str]:
    """Operation and the axes in its name: AllGather_XY is all-gather over X and Y."""
    name, _, subscript = text.partition("_") if not re.fullmatch(r"[a-z_]+", text) else (text.replace("_", "-"), "", "")
    folded = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()
    if folded not in OPERATIONS:
        raise UnknownName("operation", text, OPERATIONS, "one of " + ", ".join(OPERATIONS))
    return folded, subscript


def _sizes(
    args: CollectiveQuestion, operation: str, axes: tuple[Any, ...], names: tuple[str, ...] | None
) -> list[tuple[str, Any, tuple[str, ...]]]:
    """Label, bytes and axes of each collective: of bytes typed as numbers, or of an array at each point of its sizes."""
    all_names = tuple(axis.name for axis in axes)
    if "[" not in args.what:
        if args.values:
            raise BadValue("sizes", args.values[0], 'no sizes beside bytes; an array is "bf16[E_Y, F]"')
        sizes, _ = schema.axis(args.what, SIZE, "bytes")
        return [("", size, names or all_names) for size in schema.several(sizes)]
    if args.dtype.lower() not in formats():
        raise UnknownName("number format", args.dtype, formats(), "--dtype takes bf16, fp8, int8, ...")
    typed: dict[str, Any] = {}
    sharded = notation.array(args.what, axes, args.dtype.lower(), typed)
    reduces = operation in ("all-reduce", "reduce-scatter") and sharded.unreduced
    group = names or (sharded.unreduced if reduces else sharded.axes) or all_names
    stray = [axis for axis in group if axis not in (*sharded.axes, *sharded.unreduced)]
    if operation == "all-gather" and stray:
        raise BadValue("--over", "".join(group), f"axes that split the array; {sharded} is whole along {''.join(stray)}")
    gathered = sharded.without(group)
    points, _ = grid(args, [dim.name for dim in sharded.dims])
    rates = ProductRates(peak=None, bandwidth=None)
    links = links_of(args, machine(args), axes)
    rows = []
    for point in points:
        sizes = point | typed
        notation.note_uneven([sharded], axes, sizes)
        shards = Chain(links, sizes, rates, "gather").shards(gathered.axes)
        size = array_bytes(tuple(sizes[dim.name] for dim in gathered.dims), shards, formats()[sharded.number_format].bytes)
        rows.append((str(sharded), size, group))
    return rows


def _row(
    args: CollectiveQuestion, operation: str, network: Any, axes: tuple[Any, ...], size: Any, names: tuple[str, ...], label: str
) -> dict[str, Any]:
    if operation == "send":
        if args.to is None:
            raise BadValue("--to", "nothing", "the chip that receives, by its place along each axis, such as 3,3")
        start = place(args.from_, axes, "--from") if args.from_ else (0,) * len(axes)
        time, members = send(network, size, start, place(args.to, axes, "--to")), None
    else:
        active = scalar(args.active, COUNT, "--active")
        if active is not None and operation != "all-to-all":
            raise BadValue("--active", args.active, "an all-to-all")
        if args.in_switch and (operation != "all-reduce" or network.kind != "switch"):
            raise BadValue("--in-switch", operation, "an all-reduce through a switch")
        time = collective(network, operation, size, names, in_switch=args.in_switch, active=active)
        members = math.prod(int(axis.size) for axis in axes if axis.name in names)
    at_limit = args.share == "limit"
    bound = "latency" if float(time.latency_s) > float(time.transfer_s) else time.levels
    row = {"operation": operation, "array": label, "over": "".join(names), "members": members, "bytes": size}
    row |= {"time_s": time.limit_s if at_limit else time.time_s, "share": args.share, "exact_s": time.time_s, "limit_s": time.limit_s}
    row |= {"latency_s": time.latency_s, "transfer_s": time.transfer_s, "bound": bound, "bandwidth": time.bandwidth}
    return row | {"latency_bound_bytes": time.latency_bound_bytes}


MOST_POINTS = 10_000
AXIS_NAMES = "XYZ"
RATE = Field("byte/s", "")
TIME = Field("s", "", open_low=False)


def machine(args: MeshQuestion) -> Any:
    """The machine of --on, with edits; None without."""
    if args.on is None:
        return None
    machines = arguments.systems(args)
    if len(machines) > 1:
        raise BadValue("--on", args.on, "one machine; `headway compare` sets several side by side")
    return machines[0][0]


def whole_machine(system: System) -> str:
    """The mesh of all chips of a machine: the sides of a torus, else one axis; empty without a machine of several chips."""
    if system is None or int(system.chips) < 2:
        return ""

    sides = [int(side) for side in torus_sides(system) if side > 1] if NEAREST[system.topology][0] == "torus" else []
    if math.prod(sides) != int(system.chips):
        sides = [int(system.chips)]
    return ",".join(f"{name}{side}" for name, side in zip(AXIS_NAMES, sides, strict=False))


def scalar(text: str | None, field: Field, flag: str) -> Any:
    """A number of a flag, None where the flag is absent."""
    return None if text is None else schema.scalar(text, field, flag)


def links_of(args: MeshQuestion, system: System, axes: tuple[Any, ...]) -> Any:
    """Links that the mesh runs on; None without a mesh."""
    if not axes:
        return None
    if args.network is not None and args.network not in NETWORKS:
        raise UnknownName("network", args.network, NETWORKS, "one of " + ", ".join(NETWORKS))
    bandwidth = scalar(args.link_bw, RATE, "--link-bw")
    if system is not None and args.network is None:
        links = of_system(system, axes, schema.defaults(Assumptions, {}))
    else:
        links = by_numbers(args.network or "ring", axes, bandwidth)
    changes: dict[str, Any] = {} if bandwidth is None else {"bandwidth": bandwidth}
    out = scalar(args.out_bw, RATE, "--out-bw")
    changes |= {} if out is None else {"out_bandwidth": out}
    hop = scalar(args.hop, TIME, "--hop")
    changes |= {} if hop is None else {"hop": hop, "out_hop": hop, "library": None}
    if args.domain is not None:
        changes["domain"] = changes["wired"] = schema.scalar(args.domain, Field(integer=True, low=1, open_low=False), "--domain")
    if args.rings is not None:
        names = [axis.name for axis in axes]
        closed = names if args.rings == "all" else [] if args.rings == "none" else [name.strip() for name in args.rings.split(",")]
        for name in closed:
            if name not in names:
                raise UnknownName("mesh axis", name, names, f"--rings takes all, none, or axes of --mesh {args.mesh}")
        changes["wraps"] = {name: WRAP if name in closed else NO_WRAP for name in names}
    changes |= {"domain": user_input(math.inf, "chips below one switch")} if links.kind == "torus" and "domain" in changes else {}
    return dataclasses.replace(links, **changes)


def grid(args: MeshQuestion, names: list[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Sizes of the named dimensions at each point of the grid, and those that vary; sizes written as numbers need no name."""
    texts = dict(assignments(list(args.values), "sizes"))
    by_letter = [name for name in names if not name[0].isdigit()]
    for name in texts:
        if name not in by_letter:
            raise UnknownName("dimension", name, by_letter, f"the arrays have {', '.join(by_letter) or 'sizes in numbers'}")
    missing = [name for name in by_letter if name not in texts]
    if missing:
        raise BadValue("sizes", f"none for {', '.join(missing)}", " ".join(f"{name}=4096" for name in missing))
    field = Field(low=1e-9, high=1e18, open_low=False)
    axes = {}
    for name, text in texts.items():
        values, _ = schema.axis(text, field, name)
        axes[name] = schema.several(values)
    if math.prod(len(axis) for axis in axes.values()) > MOST_POINTS:
        raise BadValue("sizes", "too many values", f"at most {MOST_POINTS} points")
    points = [dict(zip(axes, point, strict=True)) for point in itertools.product(*axes.values())]
    return points, [name for name, axis in axes.items() if len(axis) > 1]


def place(text: str, axes: tuple[Any, ...], flag: str) -> tuple[int, ...]:
    """A chip by its place along each axis, such as 0,3."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != len(axes) or not all(re.fullmatch(r"\d+", part) for part in parts):
        raise BadValue(flag, text, f"a place along each axis, such as {','.join('0' for _ in axes) or '0,0'}")
    numbers = tuple(int(part) for part in parts)
    for number, axis in zip(numbers, axes, strict=True):
        if number >= axis.size:
            raise BadValue(flag, text, f"places from 0 to {int(axis.size) - 1} along {axis.name}")
    return numbers

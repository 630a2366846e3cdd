"""`headway collective OPERATION BYTES|ARRAY --mesh X4,Y8 --over X --on MACHINE`: time of one collective or of one message."""

from __future__ import annotations

import re
from typing import Any

from headway.answers import mesh_flags
from headway.core import schema
from headway.core.errors import BadValue, UnknownName
from headway.core.listing import traced_listing
from headway.core.schema import Field
from headway.core.trace import record
from headway.laws.roofline.matmul import array_bytes
from headway.models.precision import formats
from headway.performance import mesh as notation
from headway.performance.mesh import OPERATIONS, collective, send
from headway.performance.product import Chain, ProductRates
from headway.report import mesh as words
from headway.report import output

SHARES = ("exact", "limit")
SIZE = Field("byte", "")
COUNT = Field(low=1, open_low=False, integer=True)


def run(args: Any) -> output.Answer:
    """Answer with a row for each size."""
    operation, subscript = _operation(args.operation)
    system = mesh_flags.machine(args)
    mesh = args.mesh or mesh_flags.whole_machine(system)
    axes = notation.mesh(mesh)
    if not axes:
        raise BadValue("--mesh", "nothing", "the axes of the chips, such as X4,Y8, or a machine of several chips")
    notes = [] if args.mesh else [f"by default --mesh {mesh}: all chips of {system.name}"]
    over = args.over or subscript
    names = notation.subscripts(over.replace(",", "") if over not in [axis.name for axis in axes] else over, axes, over) if over else None
    network = mesh_flags.network(args, system, axes)
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


def _sizes(args: Any, operation: str, axes: tuple[Any, ...], names: tuple[str, ...] | None) -> list[tuple[str, Any, tuple[str, ...]]]:
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
    points, _ = mesh_flags.grid(args, [dim.name for dim in sharded.dims])
    rates = ProductRates(peak=None, bandwidth=None)
    links = mesh_flags.network(args, mesh_flags.machine(args), axes)
    rows = []
    for point in points:
        sizes = point | typed
        shards = Chain(links, sizes, rates, "gather").shards(gathered.axes)
        size = array_bytes(tuple(sizes[dim.name] for dim in gathered.dims), shards, formats()[sharded.number_format].bytes)
        rows.append((str(sharded), size, group))
    return rows


def _row(args: Any, operation: str, network: Any, axes: tuple[Any, ...], size: Any, names: tuple[str, ...], label: str) -> dict[str, Any]:
    if operation == "send":
        if args.to is None:
            raise BadValue("--to", "nothing", "the chip that receives, by its place along each axis, such as 3,3")
        start = mesh_flags.place(args.from_, axes, "--from") if args.from_ else (0,) * len(axes)
        time, members = send(network, size, start, mesh_flags.place(args.to, axes, "--to")), None
    else:
        active = mesh_flags.scalar(args.active, COUNT, "--active")
        if active is not None and operation != "all-to-all":
            raise BadValue("--active", args.active, "an all-to-all")
        if args.in_switch and (operation != "all-reduce" or network.kind != "switch"):
            raise BadValue("--in-switch", operation, "an all-reduce through a switch")
        time = collective(network, operation, size, names, in_switch=args.in_switch, active=active)
        members = _members(axes, names)
    at_limit = args.share == "limit"
    bound = "latency" if float(time.latency_s) > float(time.transfer_s) else time.levels
    row = {"operation": operation, "array": label, "over": "".join(names), "members": members, "bytes": size}
    row |= {"time_s": time.limit_s if at_limit else time.time_s, "share": args.share, "exact_s": time.time_s, "limit_s": time.limit_s}
    row |= {"latency_s": time.latency_s, "transfer_s": time.transfer_s, "bound": bound, "bandwidth": time.bandwidth}
    return row | {"latency_bound_bytes": time.latency_bound_bytes}


def _members(axes: tuple[Any, ...], names: tuple[str, ...]) -> int:
    members = 1
    for axis in axes:
        members *= int(axis.size) if axis.name in names else 1
    return members

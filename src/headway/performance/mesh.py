"""A mesh `X4,Y8`, arrays `bf16[B_X, D_YZ]` over it as text, and the time of a collective over its axes.

Dimensions are by name or size, each split over axes of the mesh. Links: torus, ring, line, switch, full mesh or two levels; times are by
exact share and in the limit. Notation and rules of How to Scale Your Model.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from headway.core import units
from headway.core.errors import BadValue, MissingFact, UnknownName
from headway.core.notes import note
from headway.core.quantity import default, known, user_input
from headway.core.units import Byte, BytePerSecond, Number
from headway.hardware.system import PAIR, System
from headway.laws.collectives.topology import (
    axis_exchange_share,
    axis_hops,
    axis_links,
    collective_time_s,
    domains_exchange_share,
    filled_share,
    group_domains,
    in_switch_up,
    latency_bound_bytes,
    levels_out,
    levels_up,
    long_ring_share,
    longest,
    mesh_bandwidth,
    message_time_s,
    path_hops,
    switch_exchange_share,
    switch_gather_share,
    torus_gather_share,
)
from headway.models.precision import formats
from headway.performance.assumptions import Assumptions
from headway.performance.collectives import NO_WRAP, WRAP, fabric, link_costs, reduction_alpha, side_wraps
from headway.performance.transport import Library

MOST_AXES, MOST_SIZE = 8, 10_000_000
_AXIS = re.compile(r"\s*([A-Za-z][A-Za-z_]*)\s*[=:]?\s*(\d+)\s*")
_ARRAY = re.compile(r"\s*([A-Za-z]\w*)?\s*\[([^\[\]]*)\]\s*(?:\{\s*U_?\{?\s*([^{}]*)\}?\s*\})?")
_LIKE_FORMAT = re.compile(r"(?i)(?:bf|fp|int|uint|float|nvfp|mxfp|tf)\d\w*")  # what nobody calls an array
EXAMPLE = '"A[B_X, D_Y] W[D_Y, F] -> C[B_X, F]"'


@dataclasses.dataclass(frozen=True, slots=True)
class MeshAxis:
    """One named axis of a mesh, and its chips."""

    name: str
    size: Any


@dataclasses.dataclass(frozen=True, slots=True)
class ArrayDim:
    """One dimension of an array: its name, and the mesh axes that split it."""

    name: str
    axes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class ShardedArray:
    """An array: its dimensions, number format, and the axes over which it is a partial sum."""

    name: str
    dims: tuple[ArrayDim, ...]
    number_format: str
    unreduced: tuple[str, ...] = ()

    @property
    def axes(self) -> tuple[str, ...]:
        """Mesh axes that split it."""
        return tuple(axis for dim in self.dims for axis in dim.axes)

    def dim(self, name: str) -> ArrayDim | None:
        """The dimension of this name."""
        return next((dim for dim in self.dims if dim.name == name), None)

    def without(self, axes: tuple[str, ...]) -> ShardedArray:
        """The array gathered over axes."""
        dims = tuple(ArrayDim(dim.name, tuple(axis for axis in dim.axes if axis not in axes)) for dim in self.dims)
        return dataclasses.replace(self, dims=dims)

    def __str__(self) -> str:
        dims = ", ".join(label(dim.name) + (f"_{''.join(dim.axes)}" if dim.axes else "") for dim in self.dims)
        return f"{self.name}[{dims}]" + (f" {{U_{''.join(self.unreduced)}}}" if self.unreduced else "")


def mesh(text: str, flag: str = "--mesh") -> tuple[MeshAxis, ...]:
    """Axes of a mesh, the outermost first.

    >>> [(axis.name, axis.size) for axis in mesh("X4,Y8")]
    [('X', 4), ('Y', 8)]
    """
    axes: list[MeshAxis] = []
    for part in text.split(",") if text.strip() else ():
        match = _AXIS.fullmatch(part)
        if not match or not 1 <= int(match[2]) <= MOST_SIZE:
            raise BadValue(flag, text, "axes with their chips, such as X4,Y8")
        if match[1] in [axis.name for axis in axes]:
            raise BadValue(flag, text, f"each axis once; {match[1]} is there twice")
        axes.append(MeshAxis(match[1], user_input(int(match[2]), f"chips along {match[1]}")))
    if len(axes) > MOST_AXES:
        raise BadValue(flag, text, f"at most {MOST_AXES} axes")
    return tuple(axes)


def subscripts(text: str, axes: tuple[MeshAxis, ...], field: str) -> tuple[str, ...]:
    """Mesh axes that a subscript such as XY names."""
    names = [axis.name for axis in axes]
    text = text.strip().strip("{}").replace(" ", "")
    parts = [text] if text in names else [part for part in re.split(r"[,.]", text) if part] if re.search("[,.]", text) else list(text)
    for part in parts:
        if part not in names:
            raise UnknownName("mesh axis", part, names, f"{field} names it; --mesh has {', '.join(names) or 'none, write --mesh X4,Y8'}")
    if len(set(parts)) < len(parts):
        raise BadValue(field, text, "each axis once")
    return tuple(parts)


def array(text: str, axes: tuple[MeshAxis, ...], number_format: str, sizes: dict[str, Any]) -> ShardedArray:
    """The array that `bf16[B_X, D]` or `W[D, F_Y] {U_X}` says; sizes typed as numbers are added to `sizes`.

    >>> str(array("W[D_X, F]", mesh("X4"), "bf16", {}))
    'W[D_X, F]'
    """
    match = _ARRAY.fullmatch(text)
    if not match:
        raise BadValue("array", text, "dimensions in brackets, such as bf16[B_X, D_Y]")
    prefix, inside, unreduced = match.groups()
    is_format = prefix is not None and prefix.lower() in formats()
    if prefix is not None and not is_format and _LIKE_FORMAT.fullmatch(prefix):
        raise UnknownName("number format", prefix, formats(), "one of " + ", ".join(formats()))
    dims = tuple(_dim(part, axes, sizes, f"@{number}") for number, part in enumerate(re.split(r",(?![^{]*\})", inside)))
    spread = [axis for dim in dims for axis in dim.axes] + list(subscripts(unreduced, axes, text) if unreduced else ())
    if len(set(spread)) < len(spread):
        raise BadValue("array", text, "each mesh axis once: a chip would hold a diagonal block")
    if len({dim.name for dim in dims}) < len(dims):
        raise BadValue("array", text, "each dimension once; two of one size have two names: A[M, K] B[K, N] M=2048 K=2048")
    own_format = prefix.lower() if is_format and prefix is not None else number_format
    name = "" if is_format or prefix is None else prefix
    return ShardedArray(name, dims, own_format, subscripts(unreduced, axes, text) if unreduced else ())


def label(name: str) -> str:
    """A dimension as it was written: sizes typed as numbers have a mark that keeps equal ones apart."""
    return name.partition("@")[0]


def _dim(text: str, axes: tuple[MeshAxis, ...], sizes: dict[str, Any], mark: str) -> ArrayDim:
    field = text.strip()
    name, _, subscript = field.partition("_")
    name = name.strip()
    if not name or not re.fullmatch(r"[A-Za-z]\w*|[\d.]+[KkMGTi]*", name):
        raise BadValue("array", field, "dimensions such as B, D_X or 8192_Y")
    if name[0].isdigit():
        number = user_input(size(name, field), name)
        name += mark
        sizes[name] = number
    return ArrayDim(name, subscripts(subscript, axes, field) if subscript.strip() else ())


def size(text: str, field: str) -> int:
    """A whole size of a dimension."""
    value = units.parse(text, "", field)
    if value < 1 or value != int(value):
        raise BadValue(field, text, "a whole number from 1, such as 8192")
    return int(value)


def is_sharded(text: str) -> bool:
    """Whether a product splits a dimension over a mesh axis, or leaves partial sums on one.

    >>> is_sharded("A[B_X, D] W[D, F]"), is_sharded("A[B, D] W[D, F]")
    (True, False)
    """
    return "_" in text or "{" in text


def product(text: str) -> tuple[list[str], str]:
    """Texts of the arrays of a chain of products, and of its result, "" where it has none.

    >>> product("A[B, D] W[D, F] -> C[B, F]")
    (['A[B, D]', 'W[D, F]'], 'C[B, F]')
    """
    arrays_text, _, result_text = text.replace("→", "->").partition("->")
    texts = [match[0].strip() for match in _ARRAY.finditer(arrays_text)]
    rest = _ARRAY.sub("", arrays_text).strip(" *@·x")
    results = [match[0].strip() for match in _ARRAY.finditer(result_text)]
    if len(texts) < 2 or rest or len(results) > 1 or ("->" in text and not results):
        raise BadValue("product", text, f"two arrays or more, such as {EXAMPLE}")
    return texts, results[0] if results else ""


def joined(arrays: list[ShardedArray], sizes: dict[str, Any]) -> list[ShardedArray]:
    """Arrays of a chain whose sizes typed as numbers meet: the last dimension of one is summed with the last but one of the next.

    >>> sizes = {}
    >>> chain = [array(text, (), "bf16", sizes) for text in ("[8, 64]", "[64, 64]")]
    >>> [dim.name for dim in joined(chain, sizes)[1].dims]
    ['64@1', '64@1,2']
    """
    chain = [arrays[0]]
    for number, following in enumerate(arrays[1:], 2):
        before, count = chain[-1].dims, len(following.dims)
        dims = []
        for index, dim in enumerate(following.dims):
            is_typed = "@" in dim.name
            partner = (
                before[-1] if index == max(count - 2, 0) else before[index] if count > 2 and index < min(count - 2, len(before)) else None
            )
            meets = is_typed and partner is not None and "@" in partner.name and sizes[partner.name] == sizes[dim.name]
            name = partner.name if meets and partner is not None else f"{dim.name},{number}" if is_typed else dim.name
            if is_typed:
                sizes[name] = sizes[dim.name]
            dims.append(ArrayDim(name, dim.axes))
        chain.append(dataclasses.replace(following, dims=tuple(dims)))
    return chain


def result_of(result: ShardedArray, arrays: list[ShardedArray], sizes: dict[str, Any]) -> ShardedArray:
    """The result with the names of the arrays' dimensions where it has sizes in numbers, each the first of its size not yet met."""
    names = [dim.name for sharded in (arrays[0], arrays[-1]) for dim in sharded.dims]
    dims: list[ArrayDim] = []
    for dim in result.dims:
        free = [name for name in names if name not in [earlier.name for earlier in dims] and sizes.get(name) == sizes.get(dim.name)]
        dims.append(ArrayDim(free[0], dim.axes) if "@" in dim.name and free else dim)
    return dataclasses.replace(result, dims=tuple(dims))


OPERATIONS = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all", "send")
NETWORKS = ("torus", "ring", "line", "switch", "mesh")
HOP_S = 1e-6


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MeshNetwork:
    """Links that a mesh runs on: bandwidth per link of a torus, per chip of a switch, and of scale-out; latency of a hop."""

    kind: str
    axes: tuple[MeshAxis, ...]
    bandwidth: Any
    wraps: dict[str, Any]
    out_bandwidth: Any = None
    domain: Any = math.inf
    wired: Any = 1  # chips that the links of a full mesh lead to
    hop: Any = HOP_S
    out_hop: Any = HOP_S
    library: Library | None = None  # what runs reductions beyond the engine's own kernels
    source: str = ""

    def size(self, name: str) -> Any:
        """Chips along an axis."""
        return next(axis.size for axis in self.axes if axis.name == name)

    def members(self, names: tuple[str, ...]) -> Any:
        """Chips over several axes."""
        count: Any = 1
        for name in names:
            count = count * self.size(name)
        return count

    def stride(self, names: tuple[str, ...]) -> int:
        """Chips between neighbours of a group: the axes inside its innermost one, the last axis innermost."""
        inner = max(index for index, axis in enumerate(self.axes) if axis.name in names)
        return math.prod(int(axis.size) for axis in self.axes[inner + 1 :])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTime:
    """A collective's latency, transfer and time, its time in the long-ring limit, and the size below which latency rules."""

    latency_s: Any
    transfer_s: Any
    time_s: Any
    limit_s: Any
    latency_bound_bytes: Any
    bandwidth: Any
    levels: str


def of_system(machine: System, axes: tuple[MeshAxis, ...], assumptions: Assumptions) -> MeshNetwork:
    """Network of a machine, each axis of the mesh an axis of its torus, or groups of chips below its switches."""
    joined = fabric(machine)
    costs = link_costs(machine, assumptions)
    wraps = {axis.name: side_wraps(machine, axis.size) for axis in axes}
    kind = joined.kind
    out = None if joined.out_is_missing else joined.out
    usual = machine.chip.scale_up_domain  # a chip named alone stands for the domain that its links usually join
    domain = usual if machine.chips == 1 and usual is not None else machine.scale_up_domain
    if kind == "torus" and len(axes) > len(joined.sides):
        raise BadValue(
            "--mesh", ",".join(f"{axis.name}{axis.size}" for axis in axes), f"at most {len(joined.sides)} axes, those of its torus"
        )
    return MeshNetwork(
        kind=kind, axes=axes, bandwidth=joined.up, wraps=wraps, out_bandwidth=out, hop=costs.up, out_hop=costs.out, library=costs.library,
        source=machine.name,
        domain=math.inf if kind == "torus" else domain, wired=1 if joined.wired is None else joined.wired,
    )  # fmt: skip


def note_uneven(arrays: Iterable[ShardedArray], axes: tuple[MeshAxis, ...], sizes: dict[str, Any]) -> None:
    """A note on each dimension that its chips do not divide."""
    for dim in (dim for sharded in arrays for dim in sharded.dims if dim.axes):
        chips = math.prod(int(axis.size) for axis in axes if axis.name in dim.axes)
        if sizes[dim.name] % chips:
            text = f"{label(dim.name)}={float(sizes[dim.name]):g} is no multiple of the {chips} chips along {''.join(dim.axes)}"
            note(f"{text}: figures are of an even split, what runs pads it to {math.ceil(sizes[dim.name] / chips) * chips}")


def by_numbers(kind: str, axes: tuple[MeshAxis, ...], bandwidth: BytePerSecond | None) -> MeshNetwork:
    """Network of links typed as numbers: rings and tori close, lines do not; without a bandwidth, for chips that send nothing."""
    wraps = dict.fromkeys((axis.name for axis in axes), NO_WRAP if kind == "line" else WRAP)
    hop = default(HOP_S, "latency of a hop", "s", "about 1 us on TPU links (How to Scale Your Model, chapter 3)")
    name = "torus" if kind in ("ring", "line", "torus") else kind
    chips = known(math.prod(int(axis.size) for axis in axes), "chips", "", "derived", "product of the mesh's axes")
    return MeshNetwork(kind=name, axes=axes, bandwidth=bandwidth, wraps=wraps, hop=hop, out_hop=hop, wired=chips)


def collective(
    network: MeshNetwork, operation: str, size: Byte, names: tuple[str, ...], *, in_switch: bool = False, active: Number = None
) -> CollectiveTime:
    """Time of a collective over axes of a mesh, of an array of `size` bytes; `active` parts of an all-to-all are filled."""
    members = network.members(names)
    if int(members) == 1:
        nothing = known(0.0, "no transfer", "s", "constant", "a group of one chip")
        return CollectiveTime(latency_s=nothing, transfer_s=nothing, time_s=nothing, limit_s=nothing, latency_bound_bytes=None,
                              bandwidth=None, levels="one chip")  # fmt: skip
    _check_links(network)
    if network.kind == "torus":  # share of the array per link, that share in the long-ring limit, and hops
        sizes = [(network.size(name), network.wraps[name]) for name in names if int(network.size(name)) > 1]
        hops = sum(axis_hops(side, 1, wrap) for side, wrap in sizes)
        if operation == "all-to-all":
            share = limit = longest(tuple(axis_exchange_share(side, 1, wrap) for side, wrap in sizes)) / members
        else:
            links = sum(axis_links(side, 1, wrap) for side, wrap in sizes)
            share, limit = torus_gather_share(members, links), long_ring_share(links)
        levels = [(share, limit, network.bandwidth, hops, network.hop)]
    else:
        levels = _switched(network, operation, names, members, in_switch)
    if active is not None:
        levels = [(filled_share(share, active, members), filled_share(limit, active, members), *rest) for share, limit, *rest in levels]
    return _slowest(size, levels, 2 if operation == "all-reduce" else 1, network, reduced=_placed(network, names, members))


def _placed(network: MeshNetwork, names: tuple[str, ...], members: Number) -> tuple[Any, Any]:
    """Chips of a group inside one domain of switches, and the domains that it spans."""
    finite = math.isfinite(network.domain)
    stride = known(network.stride(names), "stride", "", "derived", "chips of the mesh axes inside those of the group")
    domains = group_domains(members, stride, network.domain) if finite else 1
    return members / domains, domains


def _switched(network: MeshNetwork, operation: str, names: tuple[str, ...], members: Number, in_switch: bool) -> list[tuple[Any, ...]]:
    """Per level: share of the array per chip, its limit for many members, bandwidth, rounds, latency of a round."""
    inside, domains = _placed(network, names, members)
    bandwidth = network.bandwidth
    if network.kind == "mesh":
        bandwidth = mesh_bandwidth(bandwidth, inside, network.wired)
    rows: list[tuple[Any, ...]] = []
    if inside > 1:
        if in_switch:
            share = limit = in_switch_up(inside)
        elif operation == "all-to-all":
            share = switch_exchange_share(inside) * (1 / domains) * (1 / domains)  # of its own part, and of that part's share
            limit = 1 / members
        else:
            share, limit = (levels_up(inside) if domains > 1 else switch_gather_share(members)), 1
        rows.append((share, limit, bandwidth, 1, network.hop))
    if domains > 1:
        if network.out_bandwidth is None:
            raise MissingFact(network.source or "network", "scale_out_bw", "give it with --out-bw 50GB/s")
        share = domains_exchange_share(members, domains) if operation == "all-to-all" else levels_out(members, domains)
        rows.append((share, 1 / (members if operation == "all-to-all" else inside), network.out_bandwidth, 1, network.out_hop))
    return rows


def _slowest(
    size: Byte, levels: list[tuple[Any, ...]], phases: Number, network: MeshNetwork, time_s: Callable[[Any, Any], Any] = collective_time_s,
    reduced: tuple[Any, Any] | None = None,
) -> CollectiveTime:  # fmt: skip
    """The level whose links take longest sets the transfer; latencies of the levels add; `time_s` makes a time of both.

    `reduced`: the chips inside a domain and the domains of a group, whose all-reduce a library may run.
    """
    transfers = [size * share / bandwidth * phases for share, _, bandwidth, _, _ in levels]
    limits = [size * limit / bandwidth * phases for _, limit, bandwidth, _, _ in levels]
    slow = max(range(len(levels)), key=lambda index: float(transfers[index]))
    latency = sum(hops * hop for *_, hops, hop in levels) * phases
    if reduced is not None and phases > 1:
        latency = reduction_alpha(latency, *reduced, network.library, network.out_hop)
    time = time_s(latency, transfers[slow])
    share, _, bandwidth, hops, hop = levels[slow]
    within = {"torus": "torus", "switch": "scale-up", "mesh": "scale-up"}[network.kind]
    name = within if network.kind == "torus" or (slow == 0 and levels[slow][2] is not network.out_bandwidth) else "scale-out"
    return CollectiveTime(latency_s=latency, transfer_s=transfers[slow], time_s=time, limit_s=time_s(latency, max(limits)),
                          latency_bound_bytes=latency_bound_bytes(hops, hop, share, bandwidth), bandwidth=size / time,
                          levels=name)  # fmt: skip


def _check_links(network: MeshNetwork) -> None:
    if network.bandwidth is None:
        raise BadValue("--on", "nothing", "a machine, or --link-bw 45GB/s with --network torus, ring, line, switch or mesh")


def send(network: MeshNetwork, size: Byte, start: tuple[int, ...], end: tuple[int, ...]) -> CollectiveTime:
    """Time of a message between two chips: over all axes that lead there on a torus, all links of a chip to a switch, one of a mesh."""
    steps = [
        (user_input(abs(far - near), "distance"), axis) for near, far, axis in zip(start, end, network.axes, strict=True) if far != near
    ]
    if not steps:
        raise BadValue("--to", ",".join(map(str, end)), "another chip than --from")
    _check_links(network)
    if network.kind != "torus":
        inside = _domain(network, start) == _domain(network, end)
        near = mesh_bandwidth(network.bandwidth, PAIR, network.wired) if network.kind == "mesh" else network.bandwidth
        bandwidth, hop = (near, network.hop) if inside else (network.out_bandwidth, network.out_hop)
        if bandwidth is None:
            raise MissingFact(network.source or "network", "scale_out_bw", "give it with --out-bw 50GB/s")
        return _slowest(size, [(1, 1, bandwidth, 1, hop)], 1, network, message_time_s)
    hops = sum(path_hops(distance, axis.size, network.wraps[axis.name]) for distance, axis in steps)
    links = known(len(steps), "links", "", "derived", "axes along which the two chips lie apart: a message is split over them")
    share = long_ring_share(links)
    return _slowest(size, [(share, share, network.bandwidth, hops, network.hop)], 1, network, message_time_s)


def _domain(network: MeshNetwork, place: tuple[int, ...]) -> int:
    """Scale-up domain of a chip by its place in the mesh, the last axis innermost."""
    number = 0
    for index, axis in zip(place, network.axes, strict=True):
        number = number * int(axis.size) + index
    return 0 if not math.isfinite(network.domain) else number // int(network.domain)

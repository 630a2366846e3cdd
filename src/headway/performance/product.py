"""A chain of matrix products over a mesh: what each chip computes and reads, and the collectives that its sharding needs.

The rules of How to Scale Your Model, chapter 3. A contracted dimension that only one array splits is gathered first; one that both split
leaves partial sums, which are reduced; an axis that would split two free dimensions is gathered from the second array.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from headway.core.errors import BadValue
from headway.laws.roofline.balance import array_bytes, balanced_rows, flop_s, matmul_flop, sent_s, slowest_s
from headway.models.precision import formats
from headway.performance.mesh import ArrayDim, MeshNetwork, ShardedArray, collective, label


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProductRates:
    """Rates of one chip: peak FLOP/s, and bandwidth of the memory that arrays come from."""

    peak: Any
    bandwidth: Any


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProductStep:
    """One step of a chain: a product on each chip, or a collective."""

    kind: str
    what: str
    flop: Any = None
    bytes: Any = None
    intensity: Any = None
    compute_s: Any = None
    memory_s: Any = None
    network_s: Any = None
    balanced: Any = None
    flop_equation: str = ""  # in the names of the dimensions: 2 B D F / 32
    bytes_equation: str = ""


class Chain:
    """The steps of a chain of products, gathered as its arrays are multiplied."""

    def __init__(self, network: MeshNetwork | None, sizes: dict[str, Any], rates: ProductRates, strategy: str) -> None:
        self.network, self.sizes, self.rates, self.strategy = network, sizes, rates, strategy
        self.steps: list[ProductStep] = []

    # -- sizes ------------------------------------------------------------------------------------------------------------------

    def shards(self, axes: tuple[str, ...]) -> Any:
        """Chips over which axes split an array."""
        return self.mesh().members(axes) if axes else 1

    def mesh(self) -> MeshNetwork:
        """The mesh that the arrays name axes of."""
        if self.network is None:
            raise BadValue("--mesh", "nothing", "the axes that the arrays name, such as X4,Y8")
        return self.network

    def local_bytes(self, sharded: ShardedArray) -> Any:
        """Bytes of an array on each chip."""
        sizes = tuple(self.sizes[dim.name] for dim in sharded.dims)
        return array_bytes(sizes, self.shards(sharded.axes), formats()[sharded.number_format].bytes)

    def symbols(self, factor: Any, names: Sequence[str], axes: tuple[str, ...]) -> str:
        """A count in the names of dimensions, on each chip."""
        chips = int(self.shards(axes))
        letters = [name for name in names if not name[0].isdigit()]
        number = float(factor) * math.prod(float(self.sizes[name]) for name in names if name[0].isdigit())
        return " ".join([*([] if number == 1 and letters else [f"{number:.12g}"]), *letters]) + (f" / {chips}" if chips > 1 else "")

    def bytes_symbols(self, sharded: ShardedArray) -> str:
        """Bytes of an array on each chip, in the names of its dimensions."""
        return self.symbols(formats()[sharded.number_format].bytes, [dim.name for dim in sharded.dims], sharded.axes)

    # -- collectives ------------------------------------------------------------------------------------------------------------

    def communicate(self, operation: str, sharded: ShardedArray, axes: tuple[str, ...], array: ShardedArray) -> None:
        """Add a collective over axes, which moves an array of so many bytes."""
        size = self.local_bytes(array)
        time = collective(self.mesh(), operation, size, axes)
        what = f"{operation} over {''.join(axes)} of {sharded}"
        step = ProductStep(kind=operation, what=what, bytes=size, network_s=time.time_s, bytes_equation=self.bytes_symbols(array))
        self.steps.append(step)

    def gathered(self, sharded: ShardedArray, axes: tuple[str, ...]) -> ShardedArray:
        """An array gathered over axes, if times_by_part are any."""
        if not axes:
            return sharded
        gathered = sharded.without(axes)
        self.communicate("all-gather", sharded, axes, gathered)
        return gathered

    # -- products ---------------------------------------------------------------------------------------------------------------

    def multiply(self, first_array: ShardedArray, right: ShardedArray, result: ShardedArray | None, number_format: str) -> ShardedArray:
        """Product of two arrays: the local one, after the gathers that it needs; partial sums stay."""
        shared = [dim.name for dim in first_array.dims if right.dim(dim.name)]
        contracted = [name for name in shared if not (result and result.dim(name))]
        if result is None:
            contracted = [name for name in shared if name == first_array.dims[-1].name] or shared[-1:]
        if not contracted:
            raise BadValue("product", f"{first_array} {right}", "a dimension that both arrays have, which the product sums over")
        width = right.dims[-1].name
        if result is None and width in shared and width not in contracted:
            wants = f"the result, such as -> [{label(width)}], or another name for one {label(width)}: it is in both arrays and not summed"
            raise BadValue("product", f"{first_array} {right}", wants)
        first_array, right, summed = self._aligned(first_array, right, shared, contracted)
        free = [dim for dim in (*first_array.dims, *right.dims) if dim.name not in contracted]
        dims = tuple({dim.name: dim for dim in free}.values())
        out = ShardedArray("", dims, number_format, tuple(summed))
        names = [*(dim.name for dim in out.dims), *contracted]
        split = (*out.axes, *out.unreduced)
        flop = matmul_flop(tuple(self.sizes[name] for name in names), self.shards(split))
        parts = tuple(self.local_bytes(sharded) for sharded in (first_array, right, out))
        traffic, row, balanced = sum(parts), first_array.dims[0].name, None
        if not right.dim(row):  # rows at which compute and memory balance; none where the second array grows with them too
            rows = self.sizes[row]
            balanced = balanced_rows(parts[1], flop / rows, (parts[0] + parts[2]) / rows, self.rates.peak, self.rates.bandwidth)
        self.steps.append(
            ProductStep(kind="product", what=f"{first_array} x {right} -> {out}", flop=flop, bytes=traffic,
                        intensity=flop / traffic,
                        compute_s=flop_s(flop, self.rates.peak), memory_s=sent_s(traffic, self.rates.bandwidth), balanced=balanced,
                        flop_equation=self.symbols(2, list(dict.fromkeys(dim.name for dim in (*first_array.dims, *right.dims))), split),
                        bytes_equation=" + ".join(map(self.bytes_symbols, (first_array, right, out))))
        )  # fmt: skip
        return out

    def _aligned(self, first_array: ShardedArray, right: ShardedArray, shared: list[str], contracted: list[str]) -> Any:
        """Both arrays gathered so that they can be multiplied chip by chip, and the axes of partial sums."""
        summed: list[str] = []
        for name in shared:
            if self.strategy == "reduce" and name in contracted:  # a whole array can be cut without sending anything
                mine, theirs = _axes_of(first_array, name), _axes_of(right, name)
                first_array = _cut(first_array, name, tuple(axis for axis in theirs if axis not in first_array.axes))
                right = _cut(right, name, tuple(axis for axis in mine if axis not in right.axes))
            mine, theirs = _axes_of(first_array, name), _axes_of(right, name)
            both = tuple(axis for axis in mine if axis in theirs)
            first_array = self.gathered(first_array, tuple(axis for axis in mine if axis not in both))
            right = self.gathered(right, tuple(axis for axis in theirs if axis not in both))
            summed += both if name in contracted else ()
        clash = tuple(axis for dim in right.dims if dim.name not in shared for axis in dim.axes if axis in first_array.axes)
        return first_array, self.gathered(right, clash), summed

    def finish(self, out: ShardedArray, result: ShardedArray | None) -> ShardedArray:
        """The result as wanted: partial sums reduced, axes gathered, scattered or exchanged."""
        if result is None or not result.dims:
            result = dataclasses.replace(out, unreduced=())
        scatter = tuple(axis for axis in out.unreduced if axis in result.axes)
        reduce = tuple(axis for axis in out.unreduced if axis not in scatter and axis not in result.unreduced)
        size = dataclasses.replace(out, unreduced=())
        if reduce:
            self.communicate("all-reduce", out, reduce, size)
        if scatter:
            self.communicate("reduce-scatter", out, scatter, size)
            added = {dim.name: tuple(axis for axis in _axes_of(result, dim.name) if axis in scatter) for dim in out.dims}
            out = dataclasses.replace(out, dims=tuple(ArrayDim(dim.name, dim.axes + added[dim.name]) for dim in out.dims))
        out = dataclasses.replace(out, unreduced=result.unreduced)
        traffic = tuple(axis for dim in out.dims for axis in dim.axes if axis in result.axes and axis not in _axes_of(result, dim.name))
        for axis in traffic:
            self.communicate("all-to-all", out, (axis,), out.without((axis,)))
        out = out.without(traffic)
        return self.gathered(out, tuple(axis for axis in out.axes if axis not in result.axes))

    # -- totals -----------------------------------------------------------------------------------------------------------------

    def sums(self) -> ProductStep:
        """All steps together: FLOP, bytes and times added."""
        local = [step for step in self.steps if step.kind == "product"]
        flop, traffic = sum(step.flop for step in local), sum(step.bytes for step in local)
        links = [step.network_s for step in self.steps if step.network_s is not None]
        alone = local[0].balanced if len(local) == 1 else None
        compute, memory = sum(step.compute_s for step in local), sum(step.memory_s for step in local)
        network = sum(links) if links else None
        intensity = flop / traffic
        equations = (" + ".join(step.flop_equation for step in local), " + ".join(step.bytes_equation for step in local))
        return ProductStep(kind="total", what="", flop=flop, bytes=traffic, intensity=intensity, compute_s=compute, memory_s=memory,
                           network_s=network, balanced=alone, flop_equation=equations[0], bytes_equation=equations[1])  # fmt: skip


def bounds(step: ProductStep) -> tuple[Any, Any, Any, str]:
    """Lower bound (all overlap), upper bound (nothing overlaps), FLOP/s at the lower bound, and what binds."""
    parts = {"compute": step.compute_s, "memory": step.memory_s, "network": step.network_s}
    times_by_part = {name: time for name, time in parts.items() if time is not None}
    least = slowest_s(tuple(times_by_part.values()))
    bound = max(times_by_part, key=lambda name: float(times_by_part[name]))
    return least, sum(times_by_part.values()), step.flop / least, bound


def _cut(sharded: ShardedArray, name: str, axes: tuple[str, ...]) -> ShardedArray:
    dims = (ArrayDim(dim.name, dim.axes + axes) if dim.name == name else dim for dim in sharded.dims)
    return dataclasses.replace(sharded, dims=tuple(dims))


def _axes_of(sharded: ShardedArray, name: str) -> tuple[str, ...]:
    dim = sharded.dim(name)
    return dim.axes if dim else ()

"""A mesh `X4,Y8` and arrays `bf16[B_X, D_YZ]` as text: dimensions by name or size, each split over axes of the mesh."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from headway.core import units
from headway.core.errors import BadValue, UnknownName
from headway.core.quantity import user_input
from headway.models.precision import formats

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
        raise BadValue("array", text, "each dimension once")
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

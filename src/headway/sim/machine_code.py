"""How compiled code sees a replica and the rules, as addresses of tables; and functions that only compiled ones call. Made of numba.

Left to itself numba does both for each function together with all that it calls, and again for each caller.

A replica has some forty arrays and a run twenty rules. As tuples every function of the loop would take and hand on all of them, which takes
long to compile and long to run. Here it takes two addresses, and naming an array reads the table. The table never changes, so that machine
code reads it where that is cheapest. Whole numbers of 32 bits are read as of 64: no function is compiled for both.

Imported where something is compiled: numba takes a while.
"""

from __future__ import annotations

import operator
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.datamodel import models
from numba.core.imputils import lower_builtin, lower_getattr_generic
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global
from numba.extending import intrinsic, register_model
from numba.np.numpy_support import from_dtype


class PartLibrary(JITCodeLibrary):
    """Code that is there to be linked: it has no address, and nothing asks for one."""

    def _optimize_final_module(self) -> None:
        """The caller's concern."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """None, as of a function without a wrapper for Python."""
        return 0

    @property
    def codegen(self) -> Any:
        """Who is told of an environment for Python objects, which such functions never have."""
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Nothing to set."""


class PartCompiler(Compiler):
    """The usual passes into such code."""

    def define_pipelines(self) -> Any:
        """numba makes a library where there is none yet."""
        state: Any = self.state
        state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().define_pipelines()


def part(run: Any) -> Any:
    """A function for compiled ones, made once for whole numbers and not again for each that a caller writes out."""
    njit: Any = numba.njit
    dispatcher = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=PartCompiler, error_model="numpy", no_rewrites=True)(
        run
    )
    resolve = dispatcher.get_call_template
    dispatcher.get_call_template = lambda args, keywords: resolve(tuple(types.unliteral(kind) for kind in args), keywords)
    return dispatcher


infer: Any = infer_global
FIRST = {"target": "cpu"}  # before what numba has for any target, which it tries one by one


class Numbers(types.Type):
    """The address of numbers as an array keeps them."""

    def __init__(self, array_dtype: Any) -> None:
        self.array_dtype = array_dtype
        self.dtype = types.int64 if array_dtype == np.int32 else from_dtype(array_dtype)
        super().__init__(f"numbers.{array_dtype}")


class PointerTable(types.Type):
    """The address of a named tuple's words; a named tuple in it is a table in the table, and what is no array is a number."""

    def __init__(self, name: str, record: Any, first: int = 0) -> None:
        self.places: dict[str, tuple[int, Any]] = {}
        self.words = 0
        for field, value in zip(record._fields, record, strict=True):
            kind = self._kind(f"{name}.{field}", value, first + self.words)
            self.places[field] = first + self.words, kind
            self.words += kind.words if isinstance(kind, PointerTable) else 1
        super().__init__(name)

    @staticmethod
    def _kind(name: str, value: Any, first: int) -> Any:
        if isinstance(value, np.ndarray):
            return Numbers(value.dtype)
        if isinstance(value, tuple):
            return PointerTable(name, value, first)
        return types.float64 if isinstance(value, float) else types.int64

    def rows(self, records: Any) -> Any:
        """Named tuples like the first as rows of words; their arrays must be kept alive beside them."""
        return np.array([self.row(record) for record in records], np.int64)

    def row(self, record: Any) -> list[int]:
        """The words of one."""
        words: list[int] = []
        for (_, kind), value in zip(self.places.values(), record, strict=True):
            words += kind.row(value) if isinstance(kind, PointerTable) else [_word(kind, value)]
        return words


def _word(kind: Any, value: Any) -> int:
    if not isinstance(kind, Numbers):
        return int(np.float64(value).view(np.int64)) if kind == types.float64 else int(value)
    if value.dtype != kind.array_dtype or not value.flags.c_contiguous:
        raise TypeError(f"{value.dtype} where compiled code takes {kind.array_dtype} without gaps")
    return value.ctypes.data


@register_model(PointerTable)
class TableModel(models.PrimitiveModel):
    """An address of words."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, manager[types.int64].get_value_type().as_pointer())


@register_model(Numbers)
class NumbersModel(models.PrimitiveModel):
    """An address of such numbers."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, manager[from_dtype(kind.array_dtype)].get_value_type().as_pointer())


@infer_getattr
class FieldGetter(AttributeTemplate):
    """table.name."""

    key = PointerTable

    def generic_resolve(self, table: Any, name: str) -> Any:
        """What is there."""
        return table.places[name][1] if name in table.places else None


@lower_getattr_generic(PointerTable)
def read_field(context: Any, builder: Any, table: Any, address: Any, name: str) -> Any:
    """The word, as what it stands for."""
    place, kind = table.places[name]
    if isinstance(kind, PointerTable):
        return address
    word = builder.load(builder.gep(address, [context.get_constant(types.intp, place)]))
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    if isinstance(kind, Numbers):
        return builder.inttoptr(word, context.get_value_type(kind))
    return builder.bitcast(word, context.get_value_type(kind)) if kind == types.float64 else word


@infer(operator.getitem)
class Get(AbstractTemplate):
    """numbers[index]."""

    metadata: Any = FIRST

    def generic(self, args: Any, kws: Any) -> Any:
        """A double, or a whole number of 64 bits."""
        numbers, index = args
        fits = isinstance(numbers, Numbers) and isinstance(index, types.Integer)
        return numbers.dtype(numbers, types.intp) if fits else None


@infer(operator.setitem)
class Set(AbstractTemplate):
    """numbers[index] = value."""

    metadata: Any = FIRST

    def generic(self, args: Any, kws: Any) -> Any:
        """Of the same kind."""
        numbers, index, _ = args
        fits = isinstance(numbers, Numbers) and isinstance(index, types.Integer)
        return types.none(numbers, types.intp, numbers.dtype) if fits else None


@lower_builtin(operator.getitem, Numbers, types.Integer)
def get(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Read, and widen."""
    numbers, value = signature.args[0], builder.load(builder.gep(args[0], [args[1]]))
    return context.cast(builder, value, from_dtype(numbers.array_dtype), numbers.dtype)


@lower_builtin(operator.setitem, Numbers, types.Integer, types.Any)
def put(context: Any, builder: Any, signature: Any, args: Any) -> None:
    """Narrow, and write."""
    address, index, value = args
    numbers = signature.args[0]
    builder.store(context.cast(builder, value, numbers.dtype, from_dtype(numbers.array_dtype)), builder.gep(address, [index]))


def row_at(table: PointerTable) -> Any:
    """What finds a row of such a table: of compiled code, (rows, number)."""

    @intrinsic
    def row(typing: Any, rows: Any, number: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            words = context.make_array(signature.args[0])(context, builder, args[0]).data
            return builder.gep(words, [builder.mul(args[1], context.get_constant(types.intp, table.words))])

        return table(rows, types.int64), code

    return row

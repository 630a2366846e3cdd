"""numba extensions: replicas and rules as addresses of tables, and functions that only compiled code calls.

By default numba optimises and emits each function together with its callees, and again for each caller.

A replica has some forty arrays and a run twenty rules. As tuples, every function of the loop would pass on all of them, which is slow to
compile and to run. Here it takes two addresses, and naming an array reads the table. The table never changes, so machine code may read it
wherever that is cheapest. 32-bit integers are read as 64-bit, so that no function is compiled for both.

Import only to compile, since numba loads slowly. Plain `njit(cache=True)` over typed lists of named tuples gives the same digits at seven
times the time to compile (41 s for 6), twice that to load (1.1 s for 0.4) and four times that of a command with 300,000 requests (4.5 s
for 1.05).
"""

from __future__ import annotations

import hashlib
import operator
import pickle
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.caching import NullCache
from numba.core.ccallback import CFunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.datamodel import models
from numba.core.imputils import lower_builtin, lower_getattr_generic
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global
from numba.extending import intrinsic, register_model
from numba.np.numpy_support import from_dtype

from headway.core import code_store


class StoredCode(NullCache):
    """Machine code of one function in a folder that only its user can write, instead of numba's cache, which loads from any folder."""

    def __init__(self, folder: Path, stem: str) -> None:
        self.folder, self.stem = folder, stem

    def path(self, signature: Any, codegen: Any) -> Path:
        """The file of the code for these types on this processor."""
        key = repr((str(signature), codegen.magic_tuple()))
        return self.folder / f"{self.stem}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.code"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code; None where there is none that can be used, which is compiled again."""
        target_context.refresh()
        path = self.path(sig, target_context.codegen())
        data = code_store.load(path)
        try:
            return data and CompileResult._rebuild(target_context, *pickle.loads(data))
        except Exception:  # whatever code of another make raises; a bug is raised again when it is compiled
            return code_store.forget(path)

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Keep code that needs nothing of this process."""
        if all(part.can_cache for part in cres.lifted) and not cres.library.has_dynamic_globals:
            code_store.save(self.path(sig, cres.codegen), dumps(cres._reduce()))


def entry(run: Any, folder: Path | None, stem: str) -> Any:
    """A function for Python, compiled at its first call and stored in the folder if there is one."""
    njit: Any = numba.njit
    dispatcher = njit(run)
    if folder:
        dispatcher._cache = StoredCode(folder, stem)
    return dispatcher


def callback(run: Any, answers: str, folder: Path | None, stem: str) -> Any:
    """A C function of the signature `answers`, compiled at once and stored in the folder if there is one."""
    function: Any = CFunc(run, normalize_signature(answers), locals={}, options={})
    if folder:
        function._cache = StoredCode(folder, stem)
    function.compile()
    return function


class PartLibrary(JITCodeLibrary):
    """Code for linking only, without an address."""

    def _optimize_final_module(self) -> None:
        """No-op: the caller's library is optimised."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """0, as for a function without a wrapper for Python."""
        return 0

    @property
    def codegen(self) -> Any:
        """The object that numba gives an environment for Python objects, which such functions never have."""
        return self

    def set_env(self, name: str, env: Any) -> None:
        """No-op: there is no environment."""


class PartCompiler(Compiler):
    """The usual compiler passes of numba, emitting a PartLibrary."""

    def define_pipelines(self) -> Any:
        """The usual pipelines, with a PartLibrary set before numba creates its own library."""
        state: Any = self.state
        state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().define_pipelines()


def part(run: Any) -> Any:
    """A function for compiled callers, compiled once for integers rather than for each literal argument."""
    njit: Any = numba.njit
    dispatcher = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=PartCompiler, error_model="numpy", no_rewrites=True)(
        run
    )
    resolve = dispatcher.get_call_template
    dispatcher.get_call_template = lambda args, keywords: resolve(tuple(types.unliteral(kind) for kind in args), keywords)
    return dispatcher


infer: Any = infer_global
FIRST = {"target": "cpu"}  # tried before numba's generic targets


class Numbers(types.Type):
    """Type of the address of an array's numbers."""

    def __init__(self, array_dtype: Any) -> None:
        self.array_dtype = array_dtype
        self.dtype = types.int64 if array_dtype == np.int32 else from_dtype(array_dtype)
        super().__init__(f"numbers.{array_dtype}")


class PointerTable(types.Type):
    """Type of the address of a named tuple's words; a nested named tuple is a nested table, other fields are arrays or numbers."""

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
        """Rows of words for named tuples of equal layout; the caller must keep their arrays alive."""
        return np.array([self.row(record) for record in records], np.int64)

    def row(self, record: Any) -> list[int]:
        """The words of one named tuple."""
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
    """Data model of a table: an address of words."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, manager[types.int64].get_value_type().as_pointer())


@register_model(Numbers)
class NumbersModel(models.PrimitiveModel):
    """Data model of numbers: an address."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, manager[from_dtype(kind.array_dtype)].get_value_type().as_pointer())


@infer_getattr
class FieldGetter(AttributeTemplate):
    """Type of `table.name`."""

    key = PointerTable

    def generic_resolve(self, table: Any, name: str) -> Any:
        """The type of the field `name`."""
        return table.places[name][1] if name in table.places else None


@lower_getattr_generic(PointerTable)
def read_field(context: Any, builder: Any, table: Any, address: Any, name: str) -> Any:
    """Code that reads a field's word as its type."""
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
    """Type of `numbers[index]`."""

    metadata: Any = FIRST

    def generic(self, args: Any, kws: Any) -> Any:
        """The signature: a double or a 64-bit integer."""
        numbers, index = args
        fits = isinstance(numbers, Numbers) and isinstance(index, types.Integer)
        return numbers.dtype(numbers, types.intp) if fits else None


@infer(operator.setitem)
class Set(AbstractTemplate):
    """Type of `numbers[index] = value`."""

    metadata: Any = FIRST

    def generic(self, args: Any, kws: Any) -> Any:
        """The signature: a value of the kind that `numbers[index]` gives."""
        numbers, index, _ = args
        fits = isinstance(numbers, Numbers) and isinstance(index, types.Integer)
        return types.none(numbers, types.intp, numbers.dtype) if fits else None


@lower_builtin(operator.getitem, Numbers, types.Integer)
def get(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Code that reads a number and widens it."""
    numbers, value = signature.args[0], builder.load(builder.gep(args[0], [args[1]]))
    return context.cast(builder, value, from_dtype(numbers.array_dtype), numbers.dtype)


@lower_builtin(operator.setitem, Numbers, types.Integer, types.Any)
def put(context: Any, builder: Any, signature: Any, args: Any) -> None:
    """Code that narrows a number and writes it."""
    address, index, value = args
    numbers = signature.args[0]
    builder.store(context.cast(builder, value, numbers.dtype, from_dtype(numbers.array_dtype)), builder.gep(address, [index]))


def row_at(table: PointerTable) -> Any:
    """The compiled function (rows, number) -> row of such a table."""

    @intrinsic
    def row(typing: Any, rows: Any, number: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            words = context.make_array(signature.args[0])(context, builder, args[0]).data
            return builder.gep(words, [builder.mul(args[1], context.get_constant(types.intp, table.words))])

        return table(rows, types.int64), code

    return row

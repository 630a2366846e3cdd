"""Functions that only compiled ones call: put into their callers as they are, and optimised and made machine code with the outermost alone.

Left to itself numba does both for each function together with all that it calls, and again for each caller.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


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

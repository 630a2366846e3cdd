"""Modules of a package that load at first use: the package says so in its head, and its users import them at the top of theirs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from importlib.util import LazyLoader, find_spec, module_from_spec
from types import ModuleType


def at_first_use(package: str) -> Callable[[str], ModuleType]:
    """The `__getattr__` of a package whose modules are read when something of them is looked up, not when they are imported.

    `from headway.report.pictures import curves` then costs a look for the file; numpy and the rest load with the first `curves.name`.
    `from headway.report.pictures.curves import name` loads at once, as anywhere. Raises AttributeError for what is no module.
    """

    def module(name: str) -> ModuleType:
        spec = None if name.startswith("__") else find_spec(f"{package}.{name}")
        if spec is None or spec.loader is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if spec.submodule_search_locations is not None or spec.name in sys.modules:
            return importlib.import_module(spec.name)
        spec.loader = LazyLoader(spec.loader)
        sys.modules[spec.name] = waiting = module_from_spec(spec)
        spec.loader.exec_module(waiting)  # which only makes it wait: import_module would look into it, and so load it
        setattr(sys.modules[package], name, waiting)
        return waiting

    return module

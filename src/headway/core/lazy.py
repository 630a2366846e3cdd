"""Modules of a package that load at first use: the package says so in its head, and its users import them at the top of theirs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class _Waiting(ModuleType):
    """Stands for a module: what is looked up, set or deleted is the module's own, which Python imports by then, under its own locks.

    `importlib.util.LazyLoader` loses a race of two threads before Python 3.12.3.
    """

    @property
    def __dict__(self) -> dict[str, Any]:  # which `vars` and pytest's monkeypatch read
        return vars(importlib.import_module(self.__name__))

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(importlib.import_module(self.__name__), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(importlib.import_module(self.__name__), name)


def at_first_use(package: str) -> Callable[[str], ModuleType]:
    """The `__getattr__` of a package whose modules are read when something of them is looked up, not when they are imported.

    `from headway.report.pictures import curves` then costs a look for the file; numpy and the rest load with the first `curves.name`.
    `from headway.report.pictures.curves import name` loads at once, as anywhere. Raises AttributeError for what is no module.
    """

    def module(name: str) -> ModuleType:
        spec = None if name.startswith("__") else find_spec(f"{package}.{name}")
        if spec is None or spec.loader is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return importlib.import_module(spec.name) if spec.submodule_search_locations is not None else _Waiting(spec.name)

    return module

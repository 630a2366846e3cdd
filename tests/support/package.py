"""Every module of the package, imported once, so that every law is registered."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import headway


def _modules() -> list[ModuleType]:
    names = [module.name for module in pkgutil.walk_packages(headway.__path__, "headway.") if not module.name.endswith("__main__")]
    return [importlib.import_module(name) for name in names]


MODULES = _modules()

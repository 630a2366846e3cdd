"""Programs of tools/ and bench/, which are no part of the package, as modules."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from support.paths import ROOT


def tool(name: str, folder: str = "tools") -> ModuleType:
    """FOLDER/NAME.py."""
    spec = importlib.util.spec_from_file_location(f"{name}_tool", ROOT / folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module

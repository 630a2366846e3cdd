"""headway: the math of training and serving large language models.

    import headway as hw
    hw.serve("deepseek-v3", "gb200-nvl72", hw.Layout(ep=72, dp=72), batch=[64, 512, 4096], context=8192).table()

The public names are the list below; each is imported when first used, so that `import headway` costs nothing.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Assumptions": "assumptions",
    "Chip": "chip",
    "HeadwayError": "errors",
    "Layout": "layout",
    "Link": "system",
    "Load": "workload",
    "Model": "model",
    "Precision": "precision",
    "PriceSheet": "price_sheet",
    "SLO": "workload",
    "System": "system",
    "Table": "grid",
    "anonymous": "formula",
    "bill": "bill",
    "cache": "cache_case",
    "chip": "chip",
    "edit": "edit",
    "explain": "explain",
    "formula": "formula",
    "model": "hfconfig",
    "plan": "plan",
    "price": "price",
    "racks": "rack",
    "record": "formula",
    "replay": "formula",
    "scale": "scaling.scale",
    "serve": "serve",
    "sheet": "sheets.catalogue",
    "solve": "solve",
    "system": "system",
    "train": "training.ask",
}
__all__ = sorted(_HOME)


class _Package(ModuleType):
    """A public function keeps its name where a module of the same name is imported: `headway.serve` is the function."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'headway' has no attribute {name!r}")
    module = importlib.import_module(f"headway.{_HOME[name]}")
    globals()[name] = getattr(module, name)
    return globals()[name]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

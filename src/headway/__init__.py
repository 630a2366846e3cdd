"""headway: the math of training and serving large language models.

    import headway as hw
    hw.serve("deepseek-v3", "gb200-nvl72", hw.Layout(ep=72, dp=72), batch=[64, 512, 4096], context=8192).table()

The public names are the list below; each is imported when first used, so that `import headway` costs nothing. Thirteen packages, imports
downwards only: cli, report, evidence, reality, economics, sim, training, serving, performance, hardware, models, laws, core.
docs/where.md finds a subject; data/README.md says which module reads each file of facts.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Assumptions": "performance.assumptions",
    "Chip": "hardware.chip",
    "HeadwayError": "core.errors",
    "Layout": "performance.layout",
    "Link": "hardware.system",
    "Load": "performance.workload",
    "Model": "models.model",
    "Precision": "models.precision",
    "PriceSheet": "economics.sheets.sheet",
    "SLO": "performance.workload",
    "System": "hardware.system",
    "Table": "core.table",
    "anonymous": "core.formula",
    "bill": "economics.bill",
    "cache": "economics.cache.problem",
    "chip": "hardware.chip",
    "edit": "hardware.edit",
    "explain": "core.explain",
    "formula": "core.formula",
    "law": "performance.law",
    "model": "models.config",
    "plan": "serving.plan.plan",
    "price": "economics.price.price",
    "racks": "hardware.rack",
    "record": "core.formula",
    "replay": "core.formula",
    "scale": "training.scaling.scale",
    "serve": "serving.serve",
    "sheet": "economics.sheets.catalogue",
    "solve": "serving.solve",
    "system": "hardware.system",
    "train": "training.train",
}
__all__ = sorted(_HOME)

# Where `core.columns` looks a key up: first the tables, of which the later wins, then the fields of the records, likewise.
COLUMN_MODULES = (
    "reality.columns",
    "performance.columns",
    "training.columns",
    "serving.columns",
    "hardware.columns",
    "evidence.columns",
    "sim.columns",
    "economics.columns",
)
PREFIXED_RECORDS = {"chip": "hardware.chip:Chip", "system": "hardware.system:System"}  # "chip.hbm", as `--set` has it
RECORDS = (
    "performance.workload:SLO",
    "hardware.rack_facts:RackFacts",
    "economics.cache.records:CACHE",
    "models.describe:ModelSummary",
    "hardware.chip:Chip",
    "hardware.system:System",
    "performance.assumptions:Assumptions",
)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'headway' has no attribute {name!r}")
    module = importlib.import_module(f"headway.{_HOME[name]}")
    globals()[name] = getattr(module, name)
    return globals()[name]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

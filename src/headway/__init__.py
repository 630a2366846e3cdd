"""headway: the math of training and serving large language models.

    import headway as hw
    hw.serve("deepseek-v3", "gb200-nvl72", hw.Layout(ep=72, dp=72), batch=[64, 512, 4096], context=8192).table()

The public names are the list below; each is imported when first used, so that `import headway` costs nothing. Fourteen packages, imports
downwards only: web, cli, report, evidence, reality, economics, sim, training, serving, performance, hardware, models, laws, core.
docs/where.md finds a subject; docs/python.md shows the functions; data/README.md says which module reads each file of facts.
"""

from __future__ import annotations

import importlib
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what type checkers and editors see; _HOME is what runs, and a test compares them
    from headway.cli.functions.call import command as command
    from headway.cli.functions.evidence import predict as predict
    from headway.cli.functions.evidence import score as score
    from headway.cli.functions.machines import compare as compare
    from headway.cli.functions.machines import racks as racks
    from headway.cli.functions.money import bill as bill
    from headway.cli.functions.money import cache as cache
    from headway.cli.functions.money import price as price
    from headway.cli.functions.serving import capacity as capacity
    from headway.cli.functions.serving import plan as plan
    from headway.cli.functions.serving import serve as serve
    from headway.cli.functions.serving import sim as sim
    from headway.cli.functions.serving import solve as solve
    from headway.cli.functions.serving import speed as speed
    from headway.cli.functions.training import scale as scale
    from headway.cli.functions.training import train as train
    from headway.core.errors import HeadwayError as HeadwayError
    from headway.core.explain import explain as explain
    from headway.core.formula import anonymous as anonymous
    from headway.core.formula import formula as formula
    from headway.core.formula import replay as replay
    from headway.core.trace import record as record
    from headway.economics.sheets.catalogue import sheet as sheet
    from headway.economics.sheets.sheet import PriceSheet as PriceSheet
    from headway.hardware.chip import Chip as Chip
    from headway.hardware.chip import chip as chip
    from headway.hardware.edit import edit as edit
    from headway.hardware.system import Link as Link
    from headway.hardware.system import System as System
    from headway.hardware.system import system as system
    from headway.models.config import model as model
    from headway.models.model import Model as Model
    from headway.models.precision import Precision as Precision
    from headway.performance.assumptions import Assumptions as Assumptions
    from headway.performance.law import law as law
    from headway.performance.layout import Layout as Layout
    from headway.performance.workload import SLO as SLO
    from headway.performance.workload import Load as Load
    from headway.report.explanation import Explanation as Explanation
    from headway.report.pictures.frame import Picture as Picture
    from headway.report.result import Result as Result

__version__ = "0.1.0"

_HOME = {
    "Assumptions": "performance.assumptions",
    "Chip": "hardware.chip",
    "Explanation": "report.explanation",
    "Picture": "report.pictures.frame",
    "HeadwayError": "core.errors",
    "Layout": "performance.layout",
    "Link": "hardware.system",
    "Load": "performance.workload",
    "Model": "models.model",
    "Precision": "models.precision",
    "PriceSheet": "economics.sheets.sheet",
    "Result": "report.result",
    "SLO": "performance.workload",
    "System": "hardware.system",
    "anonymous": "core.formula",
    "bill": "cli.functions.money",
    "cache": "cli.functions.money",
    "capacity": "cli.functions.serving",
    "chip": "hardware.chip",
    "command": "cli.functions.call",
    "compare": "cli.functions.machines",
    "edit": "hardware.edit",
    "explain": "core.explain",
    "formula": "core.formula",
    "law": "performance.law",
    "model": "models.config",
    "plan": "cli.functions.serving",
    "predict": "cli.functions.evidence",
    "price": "cli.functions.money",
    "racks": "cli.functions.machines",
    "record": "core.trace",
    "replay": "core.formula",
    "scale": "cli.functions.training",
    "score": "cli.functions.evidence",
    "serve": "cli.functions.serving",
    "sheet": "economics.sheets.catalogue",
    "sim": "cli.functions.serving",
    "solve": "cli.functions.serving",
    "speed": "cli.functions.serving",
    "system": "hardware.system",
    "train": "cli.functions.training",
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
    "training.recipe:TrainingReach",
    "training.recipe:Recipe",
    "training.recipe:Failures",
    "performance.workload:SLO",
    "hardware.rack_facts:RackFacts",
    "economics.cache.records:CACHE",
    "models.describe:ModelSummary",
    "hardware.chip:Chip",
    "hardware.system:System",
    "performance.assumptions:Assumptions",
)


def public(name: str) -> Any:
    """A public name, imported from its module."""
    return getattr(importlib.import_module(f"headway.{_HOME[name]}"), name)


if not TYPE_CHECKING:  # a type checker would take every name for a public one

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module 'headway' has no attribute {name!r}")
        globals()[name] = public(name)
        return globals()[name]


class CallablePackage(types.ModuleType):
    """A package whose name is also that of a function: `headway.sim(...)` calls it, `headway.sim.loop` is a module as ever.

    Importing a module of a package makes the package an attribute of `headway`, in place of the function.
    """

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return public(self.__name__.rpartition(".")[2])(*args, **keywords)

    @property
    def __signature__(self) -> Any:
        import inspect

        return inspect.signature(public(self.__name__.rpartition(".")[2]))


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

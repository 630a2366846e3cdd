"""headway: the math of training and serving large language models.

    import headway as hw
    hw.serve("deepseek-v3", "gb200-nvl72", hw.Layout(ep=72, dp=72), batch=[64, 512, 4096], context=8192).table()

The public names are the list below; each is imported when first used, so that `import headway` costs nothing. Sixteen packages, imports
downwards only: web, cli, study, answers, report, evidence, reality, economics, simulation, training, serving, performance, hardware,
models, laws, core. docs/where.md finds a subject; docs/python.md shows the functions; data/README.md says which module reads each file.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.2.0"

_HOME = {
    "Assumptions": "performance.assumptions",
    "Chip": "hardware.chip",
    "Explanation": "report.result",
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
    "chip": "hardware.chip",
    "command": "cli.command",
    "edit": "hardware.edit",
    "explain": "core.explain",
    "formula": "core.formula",
    "law": "performance.law",
    "model": "models.config",
    "record": "core.trace",
    "replay": "core.formula",
    "sheet": "economics.sheets.catalogue",
    "sweep": "study.function",
    "system": "hardware.system",
}
# verb -> (its question, sentence of the help)
QUESTIONS = {
    "plan": ("simulation.questions:Plan", "layout, batch, cost and launch line for a load and its latency limits"),
    "serve": ("serving.questions:Serve", "latency, throughput, cost and memory of a given layout, over a grid of inputs"),
    "fits": ("serving.questions:Fits", "which open models and formats run on a machine, this one included, ranked with their speed"),
    "sim": ("simulation.questions:Simulate", "percentiles, goodput and capacity under a trace or drawn traffic"),
    "score": ("evidence.questions:Score", "measured runs or your own benchmark beside predictions, with what binds"),
    "solve": ("serving.questions:Solve", "the input at which an output reaches a value"),
    "train": ("training.questions:Train", "layout, memory, step time, MFU, days and cost of a training run"),
    "scale": ("training.questions:Scale", "how far to over-train, from scaling laws and the tokens to be served"),
    "price": ("economics.questions:Price", "cost per token of a model on a machine; --sheet: a price list read backwards"),
    "speed": ("economics.questions:Speed", "price of fast and slow tiers against their speed"),
    "cache": ("economics.questions:Cache", "memory tier and lifetime of a KV cache; --workload: its hit rates"),
    "bill": ("economics.questions:Bill", "cost of requests under API price sheets, by mode and cache"),
    "breakeven": ("economics.questions:Breakeven", "API bill of a workload against rented or own machines: where it tips, and payback"),
    "law": (
        "performance.questions:LawQuestion",
        "one law by name: its equation and arguments, its result for numbers, lists, ranges and facts",
    ),
    "matmul": (
        "performance.questions:MatmulQuestion",
        "a matrix product by shape and sharding: FLOP, bytes, time, what binds, its collectives",
    ),
    "collective": ("performance.questions:CollectiveQuestion", "time of a collective or a message over axes of a torus, ring or switch"),
    "capacity": (
        "performance.questions:CapacityQuestion",
        "what fits on a machine before any layout: chips, largest batch and context, room",
    ),
    "compare": ("hardware.questions:Compare", "machines or models side by side: ratios to the first, per chip, per dollar, per watt"),
    "update": ("economics.questions:Update", "price tables of your own, read again from the price packages installed here"),
    "find": ("answers.questions:Find", "a question in plain words: laws, claims, verbs, models and pages that answer it, with commands"),
    "show": ("evidence.questions:Show", "one model, chip or system: its facts and their sources"),
    "measure": ("reality.measure.questions:Measure", "this machine as it runs: rates, bandwidth, calls; a chip file that every verb takes"),
    "new": ("hardware.questions:New", "a catalogue file of a chip of your own, to fill in"),
    "list": ("hardware.questions:List", "all models, chips, systems, memory tiers, price sheets, laws or sources"),
    "rack": ("hardware.questions:Rack", "cables, power, weight and bandwidth of a scale-up domain of any size"),
    "trend": ("hardware.questions:Trend", "chips by year (FLOP/byte, drain time, latency floor) or models by year"),
    "lecture": ("evidence.questions:Lecture", "the lecture behind headway: chapters, claims with your inputs, your model, flashcards"),
    "lab": ("reality.lab.questions:Lab", "the lecture running here: a small real decoder, measured beside what is predicted of it"),
    "feistel": ("reality.question:Feistel", "Feistel ciphers and reversible networks: vectors, avalanche, differentials, couplings undone"),
    "sweep": ("study.questions:Sweep", "many questions of a file: any grid or list, on all cores, shards of a queue or a Dask cluster"),
    "ask": ("answers.questions:Ask", "a question kept in a TOML or JSON file, any of its values replaced by a flag"),
    "schema": ("answers.questions:SchemaOf", "the JSON Schema of a verb's questions and answers"),
    "predict": ("evidence.questions:Predict", "predictions for a table of runs, each with floor and 90 % interval"),
    "calibrate": ("evidence.questions:Calibrate", "your own runs as a profile: predictions that hold on your machine"),
    "probe": ("evidence.questions:Probe", "a running server measured gently within a budget: step, limits, departures; calibrated"),
    "fit": ("evidence.questions:Fit", "efficiencies fitted to your own measurements, with their errors"),
    "web": ("web.questions:Web", "the verbs as pages in a browser: a plan, the lecture's blackboard, traffic, prices"),
    "mcp": ("web.questions:Mcp", "the verbs as tools of an assistant, over the Model Context Protocol"),
}  # fmt: skip
ACTS = ("ask", "schema", "measure", "new", "update", "probe", "web", "mcp")  # verbs that do something, or print what is no answer
_HOME = {verb: "answers.asked" for verb in QUESTIONS if verb not in ACTS} | _HOME  # of `law` there is a function that returns numbers
__all__ = sorted(_HOME)

# Where `core.columns` looks a key up that stands in no table: the fields of these records, of which the later wins.
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


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'headway' has no attribute {name!r}")
    globals()[name] = public(name)
    return globals()[name]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

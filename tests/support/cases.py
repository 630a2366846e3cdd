"""Points to test at: models of every kind, machines of several sizes, and layouts drawn from all legal ones."""

from __future__ import annotations

import math
import random
import tomllib
from dataclasses import dataclass, replace
from typing import Any

from headway.core.catalog import PACKAGED
from headway.core.schema import defaults
from headway.hardware.system import system
from headway.laws.step.coefficients import OVERLAPS
from headway.models.config import model
from headway.models.precision import Precision
from headway.models.work import work_of
from headway.performance.achieved import chip_kind, efficiencies
from headway.performance.assumptions import EFFICIENCIES, LATENCIES, Assumptions
from headway.performance.layout import Layout, illegal, shape
from headway.serving.serve import serve

MODELS = (
    "llama-3.1-70b", "qwen2.5-0.5b", "palm-62b", "mistral-7b-v0.1", "phi-4",  # dense: GQA, tied, MQA, sliding window
    "mixtral-8x7b-v0.1", "qwen3-30b-a3b", "gpt-oss-120b", "llama-4-scout-17b-16e", "glam-64b-64e",  # experts; windows and chunks
    "deepseek-v3", "deepseek-v3.2", "deepseek-v4-flash",  # latent, sparse, compressed
    "qwen3-next-80b-a3b", "ai21-jamba-1.5-mini", "minimax-m1-80k", "mamba2-2.7b",  # recurrent, alone and with attention
)  # fmt: skip
SYSTEMS = ("h100", "8xh100-sxm", "8xh200-sxm", "gb200-nvl72", "8xmi300x", "tpu-v5p-4x4x4", "16xh100-sxm", "6xb200")
WAYS = {
    "tp": (1, 2, 4, 8, 16),
    "ep": (1, 2, 3, 4, 8, 16, 24, 64, 72),
    "dp": (1, 2, 3, 4, 8, 16, 64, 72),
    "pp": (1, 2, 3, 4),
    "cp": (1, 2, 4),
}
IDEAL: dict[str, Any] = dict.fromkeys(EFFICIENCIES, 1) | dict.fromkeys(LATENCIES, 0) | {"overlap": "full"}
# One flat number for all kernels and one for all links, so that a step can be worked out by hand.
FLAT: dict[str, Any] = {
    "overlap": "operators", "eff_compute": 0.7, "eff_memory": 0.8, "eff_network": 0.8, "eff_in_switch": 0.5, "t0": 3e-6, "spread": 1.6,
    "eff_exchange": 0.8, "eff_out": 0.8, "alpha": 3e-6, "alpha_host": 40e-6, "alpha_out": 10e-6, "alpha_exchange": 11e-6,
    "alpha_exchange_out": 24e-6,
}  # fmt: skip
STEP_MODELS = tuple(OVERLAPS)
ONE_CHIP = Layout()
PARTS = ("compute_s", "weights_s", "kv_s", "network_s", "overhead_s")


@dataclass(frozen=True)
class Point:
    """One question for `serve`."""

    model: str
    system: Any
    layout: Layout = ONE_CHIP
    load: tuple[tuple[str, float], ...] = (("batch", 1), ("context", 1000))
    assumed: tuple[tuple[str, Any], ...] = ()
    formats: tuple[tuple[str, str], ...] = ()

    @property
    def id(self) -> str:
        """A short name of the question."""
        load = " ".join(f"{key}={value}" for key, value in self.load)
        return f"{self.model} on {self.system} {self.layout} {load}"

    @property
    def full_id(self) -> str:
        """Its name with all that was asked."""
        extra = " ".join(f"{key}={value}" for key, value in (*self.formats, *self.assumed) if value != "")
        return f"{self.id} replicas={self.layout.replicas} {extra}".rstrip()

    def but(self, **changes: Any) -> Point:
        """The same question with some of its load changed."""
        return replace(self, load=tuple({**dict(self.load), **changes}.items()))

    def assuming(self, **changes: Any) -> Point:
        """The same question under other assumptions."""
        return replace(self, assumed=tuple({**dict(self.assumed), **changes}.items()))

    def table(self) -> Any:
        """The answer."""
        taken, formats = defaults(Assumptions, dict(self.assumed)), Precision(**dict(self.formats))
        load: dict[str, Any] = dict(self.load)
        return serve(self.model, self.system, self.layout, **load, assumptions=taken, precision=formats)

    def row(self) -> dict[str, Any]:
        """The answer's only row."""
        return self.table().row(0)


def layouts(name: str, machine: str, rng: random.Random) -> Layout:
    """One legal layout of a model within a machine, drawn evenly over ways."""
    limits, chips = shape(work_of(model(name)).blocks), int(system(machine).chips)
    while True:
        ways = {key: rng.choice(values) for key, values in WAYS.items()}
        ways["replicas"] = 1
        used = ways["tp"] * ways["cp"] * ways["dp"] * ways["pp"]
        if rng.random() < 0.5 and chips % used == 0:
            ways["replicas"] = chips // used
        layout = Layout(**ways)
        if used <= chips and not illegal(layout, limits):
            return layout if limits.experts else replace(layout, dp=1, replicas=layout.replicas * layout.dp)  # copies


def drawn(seed: int, requests: bool | None = None) -> Point:
    """A random point: any model, any machine, a layout that is legal there."""
    rng = random.Random(seed)
    name, machine = rng.choice(MODELS), rng.choice(SYSTEMS)
    load: dict[str, float] = {"batch": int(2 ** rng.uniform(0, 12))}
    if rng.random() < 0.5 if requests is None else requests:
        load |= {"prompt": int(10 ** rng.uniform(0, 5.5)), "output": max(2, int(10 ** rng.uniform(0, 4)))}  # TPOT needs two tokens
    else:
        load |= {"context": int(10 ** rng.uniform(0, 6))}
    formats = {"weights": rng.choice(("", "", "bf16", "fp8", "int4")), "kv": rng.choice(("", "fp8"))}
    return Point(name, machine, layouts(name, machine, rng), tuple(load.items()), (), tuple(formats.items()))


def beyond_laws(quantity: str, weights: str, machine: str, engine: str = "other") -> float:
    """Measured time over that of the laws, from the numbers alone: of a format of weights, an engine and a kind of chip together."""
    places = (f"weights.{weights}", f"engine.{engine}", f"chip.{chip_kind(system(machine).chip)}")
    numbers = [float(efficiencies().sections.get(f"remainder.{place}", {}).get(quantity, 1)) for place in places]
    return min(max(math.prod(numbers), 0.7), 1.4)


def fitted_numbers() -> dict[str, dict[str, Any]]:
    """Every fitted number of the packaged file by its place: `gemm.hopper.bf16.compute`."""
    found: dict[str, dict[str, Any]] = {}

    def walk(value: dict[str, Any], path: str) -> None:
        for key, item in value.items():
            if "value" in item:
                found[f"{path}{key}"] = item
            else:
                walk(item, f"{path}{key}.")

    walk(tomllib.loads((PACKAGED / "efficiency.toml").read_text(encoding="utf-8")), "")
    return found

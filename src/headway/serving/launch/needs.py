"""Request to an engine's launch writer: layout, model sizes that it must divide, formats and limits; and the flags that engines share."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from headway.core.errors import BadValue
from headway.core.units import Token
from headway.models.checkpoints import checkpoint as checkpoint_of
from headway.models.model import Dense, Model, MoE
from headway.models.numbers import USER_NUMBERS
from headway.models.precision import Precision
from headway.models.work import works
from headway.performance.layout import NAMES, Layout, ModelShape, shape
from headway.performance.workload import Load

UNQUANTIZED = ("bf16", "fp16", "fp32")
ROOM = 0.1  # of prompt + output, for a chat template and longer requests
BLOCK = 256  # tokens to which a length with room is rounded up


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchNeeds:
    """Model sizes that a layout must divide, and the formats that the checkpoint stores."""

    shape: ModelShape
    vocab: int
    dense: bool  # some block has a dense feed-forward part
    stored: tuple[str, ...]  # stored formats of the weights that `weights` replaces


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """What drafts for the model, and how many tokens in each step."""

    kind: str  # mtp, eagle or model
    tokens: int
    model: str  # what drafts, as an argument; "" for the model's own head

    @classmethod
    def of(cls, kind: str, tokens: Any, model: Model | None) -> Speculation:
        """The speculation of a head, or of a smaller model."""
        return cls(kind=kind, tokens=int(tokens), model="" if kind == "mtp" else "$DRAFT" if model is None else _draft(model))


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRequest:
    """One layout to launch, with its number of replicas, formats and limits."""

    model: str
    needs: LaunchNeeds
    layout: Layout  # in plain numbers
    precision: Precision  # "": weights as the checkpoint stores them, the engine's default KV cache, arithmetic as the weights
    batch: int | None
    length: int | None
    memory: float | None
    host: int | None  # chips of one host
    role: str = ""  # "prefill" or "decode" for a pool of a split deployment
    exposed: bool = False  # whether the server listens on every address of its host
    resolved: str = ""  # what the user named, where the checkpoint is named otherwise
    eager: bool = False  # without CUDA graphs
    host_bytes: float | None = None  # of a chip's routed experts, which lie in the host's memory
    speculation: Speculation | None = None

    @property
    def stage_chips(self) -> int:
        """Chips of one pipeline stage."""
        return self.layout.tp * self.layout.cp * self.layout.dp

    @property
    def chips(self) -> int:
        """Chips of one replica."""
        return self.stage_chips * self.layout.pp

    @property
    def hosts(self) -> int:
        """Hosts of one replica, with equally many chips each; 1 if `host` is not given."""
        least = -(-self.chips // self.host) if self.host else 1
        return next(count for count in range(least, self.chips + 1) if self.chips % count == 0)

    @property
    def spare(self) -> int:
        """Redundant expert slots: the requested copies, rounded up so that every chip holds equally many experts."""
        copies = self.layout.redundant
        return copies + -(self.needs.shape.experts + copies) % self.layout.ep

    @property
    def per_rank(self) -> int | None:
        """Sequences of the fullest data-parallel rank."""
        return None if self.batch is None else -(-self.batch // self.layout.dp)


def ask(
    model: Model, layout: Layout, precision: Precision, load: Load | None, memory: Any, host: Any, sequences: Any = None
) -> LaunchRequest:
    """The launch request of a model, layout, precision and load, checked; `sequences` of one replica, by default the users of the load."""
    parts = [block.ffn for block in model.blocks]
    dense, moe = (any(isinstance(part, kind) for part in parts) for kind in (Dense, MoE))
    stored = (model.precision.mixer, *((model.precision.ffn,) if dense else ()), *((model.precision.expert,) if moe else ()))
    needs = LaunchNeeds(shape=shape(works(model), precision.weights), vocab=int(model.vocab), dense=dense, stored=stored)
    if sequences is None and load is not None and load.rate is None:
        sequences = math.ceil(load.batch)
    if layout.dp > 1 and not needs.shape.experts:  # copies, each of which takes its share of the sequences
        sequences = None if sequences is None else math.ceil(sequences / layout.dp)
        layout = replace(layout, dp=1, replicas=layout.replicas * layout.dp)
    weights = "" if set(stored) == {precision.weights} else precision.weights
    follows = precision.compute in ("", precision.weights) or (not weights and set(stored) == {precision.compute})
    return LaunchRequest(
        model=_argument(model),
        needs=needs,
        layout=Layout(**{name: _whole_number(name, getattr(layout, name)) for name in NAMES}),
        precision=Precision(weights=weights, kv=precision.kv, compute="" if follows else precision.compute),
        batch=None if sequences is None else _whole_number("sequences", sequences),
        length=_length(load, model.max_context),
        memory=None if memory is None else _share(memory),
        host=None if host is None else _whole_number("chips_per_host", host),
    )


def _argument(model: Model) -> str:
    """The Hugging Face id or the folder of a config.json, quoted for a shell; $MODEL where a lone file or numbers hide its weights."""
    if model.source == USER_NUMBERS:
        return "$MODEL"
    path = PurePath(model.source or model.name)
    if path.name == "config.json":
        path = path.parent
    return "$MODEL" if path.suffix == ".json" else shlex.quote(str(path))


def served(request: LaunchRequest, checkpoint: str) -> LaunchRequest:
    """The request for the checkpoint that the user named: a Hugging Face id as typed; a name of the catalogue is noted beside its id."""
    name = checkpoint.strip()
    if not name or name == request.model:
        return request
    if name.count("/") == 1 and all(name.split("/")) and name[0] not in "/.~" and not Path(name).exists():
        return replace(request, model=shlex.quote(name))
    row = checkpoint_of(name)
    if row is not None and not Path(name).exists():
        return replace(request, model=shlex.quote(row.hf_id) if row.hf_id else "$MODEL", resolved=name)
    return replace(request, resolved=name) if request.model != "$MODEL" and not Path(name).exists() else request


def _draft(model: Model) -> str:
    """A smaller model as an argument, or the variable for its checkpoint."""
    name = _argument(model)
    return "$DRAFT" if name == "$MODEL" else name


def _length(load: Load | None, most: Token) -> int | None:
    """Longest sequence to admit: the context, or prompt and output with room, at most what the model can hold."""
    if load is None:
        return None
    if load.prompt is not None and load.output is not None:
        exact = _whole_number("prompt", load.prompt) + _whole_number("output", load.output)
        roomy = -(-int(exact * (1 + ROOM)) // BLOCK) * BLOCK
        return roomy if most is None else max(exact, min(roomy, int(most)))
    return None if load.context is None else _whole_number("context", load.context)


def copies_why(request: LaunchRequest, engine: str) -> str:
    """Why an engine without known flags for expert copies cannot launch, or ""."""
    return f"copies of experts ({request.layout.redundant}) are not among the flags kept for {engine}" if request.layout.redundant else ""


def offload_why(request: LaunchRequest, engine: str, instead: str) -> str:
    """Why an engine cannot keep routed experts alone in the host's memory, or ""."""
    return "" if request.host_bytes is None else f"keeps no routed experts alone in the host's memory: {engine} {instead}"


def _whole_number(name: str, value: Any) -> int:
    """A checked whole number; a launch line takes one layout and one load, not a grid."""
    try:
        if value == int(value) and int(value) >= (name != "redundant"):
            return int(value)
    except (TypeError, ValueError):
        pass
    raise BadValue(name, value, "one whole number to write a launch line for")


def _share(value: Any) -> float:
    try:
        if 0 < float(value) <= 1:
            return float(value)
    except (TypeError, ValueError):
        pass
    raise BadValue("memory", value, "a share of HBM, above 0 and at most 1")


# -- reasons shared by several engines -------------------------------------------------------------------------------------------


def context_why(request: LaunchRequest, engine: str) -> str:
    """Why a layout with context parallelism has no launch line, or ""."""
    if request.layout.cp == 1:
        return ""
    pricing = f"context parallelism (cp {request.layout.cp}) is counted with whole weights on each of its chips"
    return f"{pricing}, and {engine} also splits the weights over them"


def weights_why(request: LaunchRequest, loads: tuple[str, ...]) -> str:
    """Why the engine cannot convert the checkpoint to the requested weights while loading, or ""."""
    if not request.precision.weights:
        return ""
    stored = "+".join(dict.fromkeys(request.needs.stored))
    if request.precision.weights in loads and all(part in UNQUANTIZED for part in request.needs.stored):
        return ""
    weights = request.precision.weights
    return f"cannot turn a checkpoint stored in {stored} into {weights} while loading; give one stored in {weights} as the model"


def kv_why(request: LaunchRequest, formats: dict[str, str]) -> str:
    """Why the engine has no KV cache of the requested format, or ""."""
    if not request.precision.kv or request.precision.kv in formats:
        return ""
    return f"has no {request.precision.kv} KV cache; it has {', '.join(formats)}"


DTYPES = {"bf16": "bfloat16", "fp16": "float16"}  # stored formats that every engine casts while loading
ROLE_PORTS = {"": 0, "prefill": 100, "decode": 200}  # offsets, so that two pools can share a host


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagNames:
    """Names of one engine's flags, and the port of its first replica."""

    sequences: str
    tokens: str
    length: str
    memory: str
    host: str
    port: str
    first_port: int


def limits(request: LaunchRequest, names: FlagNames, sequences: int | None) -> list[str]:
    """Flags of the limits, of the address and of the port; `sequences` as the engine counts them."""
    words = []
    if sequences:
        words.append(f"{names.sequences} {sequences}")
    if request.length:
        words.append(f"{names.length} {request.length}")
    if request.memory:
        words.append(f"{names.memory} {request.memory:g}")
    if request.exposed or request.role:
        words.append(f"{names.host} 0.0.0.0")
    if request.layout.replicas > 1 or request.role:
        words.append(f"{names.port} {port(request, names.first_port)}")
    return words


def port(request: LaunchRequest, first: int, step: int = 1) -> str:
    """A port of a pool; of several replicas counted up by `step` in the shell variable REPLICA."""
    number = first + ROLE_PORTS[request.role]
    if request.layout.replicas == 1:
        return str(number)
    return f"$(({number} + {'REPLICA' if step == 1 else f'{step} * REPLICA'}))"


def formats(request: LaunchRequest, online: Mapping[str, str], cache: Mapping[str, str]) -> list[str]:
    """Flags of the number formats of weights and KV cache, where they are not the engine's default."""
    words = []
    if request.precision.weights in DTYPES:
        words.append(f"--dtype {DTYPES[request.precision.weights]}")
    elif request.precision.weights:
        words.append(f"--quantization {online[request.precision.weights]}")
    if request.precision.kv:
        words.append(f"--kv-cache-dtype {cache[request.precision.kv]}")
    return words

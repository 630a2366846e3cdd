"""Launch lines: the command that realises a layout on vLLM, SGLang or TensorRT-LLM, or why it cannot and the closest layout it can."""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from headway.core.errors import BadValue, UnknownName
from headway.models.model import Model
from headway.models.precision import Precision
from headway.performance.layout import Layout, illegal, tensor_why
from headway.performance.workload import Load
from headway.serving.launch import sglang, trtllm, vllm
from headway.serving.launch.needs import ROLE_PORTS, LaunchRequest, Speculation, ask, served


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One flag, or one key of the options file, with its source, date and legal values."""

    source: str
    date: str
    values: tuple[str, ...] = ()  # legal values; empty for any value of its type


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """Known flags of one engine, from its data file."""

    name: str
    version: str
    sources: dict[str, str]
    flags: dict[str, Flag]
    keys: dict[str, Flag]  # keys of the options file, nested keys with dots
    variables: dict[str, Flag]  # of the environment


@functools.cache
def flags(engine: str) -> Flags:
    """The known flags of `vllm`, `sglang` or `trtllm`."""
    table = tomllib.loads(files("headway").joinpath(f"data/engines/{engine}.toml").read_text(encoding="utf-8"))
    return Flags(
        name=table["name"],
        version=table["version"],
        sources=table["sources"],
        flags=_read(table["flags"]),
        keys=_read(table.get("keys", {})),
        variables=_read(table.get("variables", {})),
    )


def _read(rows: dict[str, dict]) -> dict[str, Flag]:
    return {name: Flag(source=row["source"], date=row["date"], values=tuple(row.get("values", ()))) for name, row in rows.items()}


def nearest(request: LaunchRequest, why: Callable[[LaunchRequest], str]) -> Layout | None:
    """The closest legal layout (product of ratios) for which `why` is "": on all chips of a stage, else on a smaller power of two."""

    def distance(layout: Layout) -> float:
        ratios = (getattr(layout, name) / getattr(request.layout, name) for name in ("tp", "cp", "dp", "ep", "replicas"))
        return round(sum(abs(math.log(ratio)) for ratio in ratios), 9)

    for chips in (request.stage_chips, *(2**power for power in reversed(range(request.stage_chips.bit_length())))):
        legal = [layout for layout in _spread(request, chips) if not illegal(layout, request.needs.shape)]
        able = [layout for layout in legal if not why(replace(request, layout=layout))]
        if able:
            return min(able, key=lambda layout: (distance(layout), layout.tp, layout.cp, layout.ep))
    return None


def offer(request: LaunchRequest, closest: Layout | None) -> str:
    """The nearest layout in words, with its replicas or chips if they differ from the request."""
    if closest is None:
        return "it has no layout for this model"
    chips = closest.tp * closest.cp * closest.dp * closest.pp
    copies = f", {closest.replicas} replicas" if closest.replicas != request.layout.replicas else ""
    fewer = f", on {chips} chips" if not copies and chips != request.chips else ""
    return f"nearest it can: {closest}{copies}{fewer}"


def _spread(request: LaunchRequest, chips: int) -> Iterator[Layout]:
    """Layouts of so many chips a stage, with and without the copies of experts."""
    shape = request.needs.shape
    experts = [ep for ep in _divisors(chips) if ep <= max(shape.experts, 1)]
    for tp in (tp for tp in _divisors(chips) if not tensor_why(tp, shape)):
        for cp in _divisors(chips // tp):
            for ep in experts:
                layout = replace(request.layout, tp=tp, cp=cp, dp=chips // tp // cp, ep=ep)
                yield from (layout, replace(layout, redundant=0)) if layout.redundant else (layout,)


def _divisors(number: int) -> list[int]:
    small = [n for n in range(1, math.isqrt(number) + 1) if number % n == 0]
    return sorted({*small, *(number // n for n in small)})


__all__ = ["ENGINES", "Flags", "Launch", "flags", "launch"]

ENGINES = {"vllm": vllm, "sglang": sglang, "trtllm": trtllm}


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A launch command. If `unsupported` gives a reason, `lines` is empty and `nearest` is the closest layout the engine can express."""

    engine: str
    version: str
    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unsupported: str = ""
    nearest: Layout | None = None
    role: str = ""  # prefill or decode for a pool of a split deployment
    replicas: int = 1
    hosts: int = 1  # of one replica
    host_chips: int = 1  # chips that a replica takes on each of its hosts
    port: int = 0  # of the first replica


def launch(
    engine: str,
    model: Model,
    layout: Layout,
    precision: Precision | None = None,
    load: Load | None = None,
    *,
    memory: Any = None,
    chips_per_host: Any = None,
    checkpoint: str = "",
    sequences: Any = None,
    role: str = "",
    exposed: bool = False,
    eager: bool = False,
    host_bytes: Any = None,
    speculation: Speculation | None = None,
) -> Launch:
    """The command lines that serve `model` on `layout`, for each replica.

    `load` sets limits, `sequences` those of one replica (by default the users of a closed loop), `memory` is the share of HBM for
    weights and KV cache, `checkpoint` is the model as the user named it, and `role` the pool of a split deployment, prefill or decode.
    `eager` is without CUDA graphs, `host_bytes` the size of a chip's experts that lie in the host's memory, `speculation` what drafts.
    """
    if engine not in ENGINES:
        raise UnknownName("engine", engine, ENGINES, f"one of {', '.join(ENGINES)}")
    if role not in ROLE_PORTS:
        raise BadValue("role", role, "prefill, decode, or none")
    request = ask(model, layout, precision or Precision(), load, memory, chips_per_host, sequences)
    batch = None if role == "prefill" and sequences is None else request.batch  # users of a load decode; prompts queue before them
    hosted = None if host_bytes is None else float(host_bytes)
    details = replace(request, batch=batch, role=role, exposed=exposed, eager=eager, host_bytes=hosted, speculation=speculation)
    return answer(engine, served(details, checkpoint))


def answer(engine: str, request: LaunchRequest) -> Launch:
    """Command lines and notes for one engine, or the reason it cannot express the request."""
    writer, engine_flags = ENGINES[engine], flags(engine)
    why = illegal(request.layout, request.needs.shape) or writer.layout_why(request)
    if why:
        closest = nearest(request, writer.layout_why)
        text = f"{engine_flags.name}: {why}; {offer(request, closest)}"
        return Launch(engine=engine, version=engine_flags.version, unsupported=text, nearest=closest)
    why = writer.format_why(request)
    if why:
        return Launch(engine=engine, version=engine_flags.version, unsupported=f"{engine_flags.name}: {why}")
    lines, notes = writer.write(request)
    hosts = writer.hosts(request)
    return Launch(
        engine=engine, version=engine_flags.version, lines=lines, notes=(*notes, *_always(request, engine_flags)), role=request.role,
        replicas=request.layout.replicas, hosts=hosts, host_chips=request.chips // hosts,
        port=writer.NAMES.first_port + ROLE_PORTS[request.role],
    )  # fmt: skip


def _always(request: LaunchRequest, engine_flags: Flags) -> list[str]:
    """Notes that apply to every engine."""
    notes = []
    if request.model == "$MODEL":
        notes.append("MODEL is the folder or Hugging Face id of the checkpoint")
    if request.speculation is not None and request.speculation.model == "$DRAFT":
        drafter = f"an EAGLE-3 head of {request.model}" if request.speculation.kind == "eagle" else "what drafts"
        notes.append(f"DRAFT is the folder or Hugging Face id of {drafter}")
    if request.resolved:
        notes.append(f"{request.resolved} is served as {request.model}; to serve another checkpoint, give its Hugging Face id")
    if request.layout.replicas > 1:
        placement = f"each on its own {request.chips} chips, behind a router"
        notes.append(f"{request.layout.replicas} replicas: run this for REPLICA=0..{request.layout.replicas - 1}, {placement}")
    if request.chips > 1 and not request.host:
        notes.append(f"written as if one host holds all {request.chips} chips of a replica; --chips-per-host N says how many it has")
    if request.precision.compute:
        notes.append(f"the engine picks the arithmetic from the weights; {request.precision.compute} cannot be asked for")
    return [*notes, f"flags as of {engine_flags.name} {engine_flags.version}"]

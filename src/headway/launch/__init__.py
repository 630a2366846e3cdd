"""Launch lines: the command that realises a layout on vLLM, SGLang or TensorRT-LLM, or why that engine cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.errors import UnknownName
from headway.launch import sglang, trtllm, vllm
from headway.launch.ask import LaunchRequest, ask
from headway.launch.flags import Flags, flags
from headway.launch.nearest import nearest, offer
from headway.layout import Layout
from headway.model import Model
from headway.precision import Precision
from headway.workload import Load

__all__ = ["ENGINES", "Flags", "Launch", "flags", "launch"]

ENGINES = {"vllm": vllm, "sglang": sglang, "trtllm": trtllm}


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What to type. `lines` is empty where `unsupported` says why, and `nearest` is then the closest layout the engine can do."""

    engine: str
    version: str
    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unsupported: str = ""
    nearest: Layout | None = None


def launch(
    engine: str,
    model: Model,
    layout: Layout,
    precision: Precision | None = None,
    load: Load | None = None,
    *,
    memory: Any = None,
    chips_per_host: Any = None,
) -> Launch:
    """The lines that serve `model` on `layout`; `load` sets the limits and `memory` is the share of HBM for weights and KV cache."""
    if engine not in ENGINES:
        raise UnknownName("engine", engine, ENGINES, f"one of {', '.join(ENGINES)}")
    request = ask(model, layout, precision or Precision(), load, memory, chips_per_host)
    return answer(engine, request)


def answer(engine: str, request: LaunchRequest) -> Launch:
    """Lines and notes of one engine, or what it cannot express."""
    writer, engine_flags = ENGINES[engine], flags(engine)
    why = writer.layout_why(request)
    if why:
        closest = nearest(request, writer.layout_why)
        text = f"{engine_flags.name}: {why}; {offer(request, closest)}"
        return Launch(engine=engine, version=engine_flags.version, unsupported=text, nearest=closest)
    why = writer.format_why(request)
    if why:
        return Launch(engine=engine, version=engine_flags.version, unsupported=f"{engine_flags.name}: {why}")
    lines, notes = writer.write(request)
    return Launch(engine=engine, version=engine_flags.version, lines=lines, notes=(*notes, *_always(request, engine_flags)))


def _always(request: LaunchRequest, engine_flags: Flags) -> list[str]:
    """Notes that no engine changes."""
    notes = []
    if request.model == "$MODEL":
        notes.append("MODEL is the folder or Hugging Face id of the checkpoint")
    if request.replicas > 1:
        placement = f"each on its own {request.chips} chips, behind a router"
        notes.append(f"{request.replicas} replicas: run this for REPLICA=0..{request.replicas - 1}, {placement}")
    if request.chips > 1 and not request.host:
        notes.append(f"written as if one host holds all {request.chips} chips of a replica")
    if request.arithmetic:
        notes.append(f"the engine picks the arithmetic from the weights; {request.arithmetic} cannot be asked for")
    return [*notes, f"flags as of {engine_flags.name} {engine_flags.version}"]

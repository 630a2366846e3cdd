"""Launch lines: the command that realises a layout on vLLM, SGLang or TensorRT-LLM, or why that engine cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.errors import UnknownName
from headway.launch import sglang, trtllm, vllm
from headway.launch.ask import Ask, ask
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
    asked = ask(model, layout, precision or Precision(), load, memory, chips_per_host)
    return answer(engine, asked)


def answer(engine: str, asked: Ask) -> Launch:
    """Lines and notes of one engine, or what it cannot express."""
    writer, listed = ENGINES[engine], flags(engine)
    why = writer.layout_why(asked)
    if why:
        closest = nearest(asked, writer.layout_why)
        text = f"{listed.name}: {why}; {offer(asked, closest)}"
        return Launch(engine=engine, version=listed.version, unsupported=text, nearest=closest)
    why = writer.format_why(asked)
    if why:
        return Launch(engine=engine, version=listed.version, unsupported=f"{listed.name}: {why}")
    lines, notes = writer.write(asked)
    return Launch(engine=engine, version=listed.version, lines=lines, notes=(*notes, *_always(asked, listed)))


def _always(asked: Ask, listed: Flags) -> list[str]:
    """Notes that no engine changes."""
    notes = []
    if asked.model == "$MODEL":
        notes.append("MODEL is the folder or Hugging Face id of the checkpoint")
    if asked.replicas > 1:
        each = f"each on its own {asked.chips} chips, behind a router"
        notes.append(f"{asked.replicas} replicas: run this for REPLICA=0..{asked.replicas - 1}, {each}")
    if asked.chips > 1 and not asked.host:
        notes.append(f"written as if one host holds all {asked.chips} chips of a replica")
    if asked.arithmetic:
        notes.append(f"the engine picks the arithmetic from the weights; {asked.arithmetic} cannot be asked for")
    return [*notes, f"flags as of {listed.name} {listed.version}"]

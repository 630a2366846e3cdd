"""What a command line leaves unsaid about the load and the attention ranks: named defaults, each told in a note."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headway.errors import BadValue, IllegalLayout
from headway.layout import Layout, ModelShape, expand
from headway.quantity import default

CONTEXT = 8192
REQUEST = {"prompt": 8000, "output": 1000}
RANKS = "one attention rank on each chip that --ep takes, where no --tp, --cp or --dp says otherwise"


def requested(load: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A load with a prompt and an output where the user gave neither; half a request is not guessed."""
    missing = [key for key in REQUEST if key not in load]
    if len(missing) == 1:
        raise BadValue(f"--{missing[0]}", "nothing", f"how many {missing[0]} tokens a request has, such as 1k")
    filled = {key: default(REQUEST[key], key, "token", f"default of --{key}") for key in missing}
    flags = " and ".join(f"--{key} {REQUEST[key] // 1000}k" for key in missing)
    return load | filled, [f"by default {flags}"] if missing else []


def attended(load: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A load with a context where the user gave neither that nor a request."""
    if "context" in load:
        return load, []
    if load.keys() & {*REQUEST, "rate"}:
        return requested(load)
    return load | {"context": default(CONTEXT, "context", "token", "default of --context")}, [f"by default --context {CONTEXT}"]


def beyond(models: Iterable[Any], load: dict[str, Any]) -> list[str]:
    """A note for each model that is asked for more tokens than its config says it takes."""
    most = {key: max(value) if isinstance(value, tuple) else value for key, value in load.items()}
    tokens = most.get("context") or most.get("prompt", 0) + most.get("output", 0)
    short = [model for model in models if model.max_context is not None and tokens > model.max_context]
    return [
        f"{tokens} tokens exceed the longest context of {model.name}, {model.max_context}: computed as if it took them" for model in short
    ]


def ranked(shape: ModelShape, degrees: dict[str, Any]) -> tuple[list[Layout], tuple[str, ...]]:
    """The legal layouts of a product of degrees; --ep alone takes as many attention ranks, because its chips must hold attention too."""
    if "ep" not in degrees or degrees.keys() & {"tp", "cp", "dp"}:
        return expand(shape, degrees)
    ep_degrees = degrees["ep"] if isinstance(degrees["ep"], tuple) else (degrees["ep"],)
    legal_layouts: list[Layout] = []
    illegal: list[IllegalLayout] = []
    notes = [f"by default dp = ep: {RANKS}"]
    for ep in ep_degrees:
        try:
            layouts, drop_notes = expand(shape, degrees | {"ep": ep, "dp": default(int(ep), "dp", "", RANKS)})
        except IllegalLayout as error:
            illegal.append(error)
            continue
        legal_layouts += layouts
        notes += [note for note in drop_notes if note not in notes]
    if not legal_layouts:
        raise illegal[0]
    return legal_layouts, (*notes, *(f"dropped as illegal: {error}" for error in illegal[:1]))

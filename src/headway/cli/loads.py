"""What a command line leaves unsaid about the load and the attention ranks: named defaults, each told in a note."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headway.errors import BadValue, IllegalLayout
from headway.layout import Layout, Shape, expand
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
    said = " and ".join(f"--{key} {REQUEST[key] // 1000}k" for key in missing)
    return load | filled, [f"by default {said}"] if missing else []


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
    asked = most.get("context") or most.get("prompt", 0) + most.get("output", 0)
    short = [model for model in models if model.max_context is not None and asked > model.max_context]
    return [f"{asked} tokens exceed the longest context of {one.name}, {one.max_context}: computed as if it took them" for one in short]


def ranked(shape: Shape, ways: dict[str, Any]) -> tuple[list[Layout], tuple[str, ...]]:
    """The legal layouts of a product of ways; --ep alone takes as many attention ranks, because its chips must hold attention too."""
    if "ep" not in ways or ways.keys() & {"tp", "cp", "dp"}:
        return expand(shape, ways)
    many = ways["ep"] if isinstance(ways["ep"], tuple) else (ways["ep"],)
    found: list[Layout] = []
    illegal: list[IllegalLayout] = []
    notes = [f"by default dp = ep: {RANKS}"]
    for ep in many:
        try:
            layouts, dropped = expand(shape, ways | {"ep": ep, "dp": default(int(ep), "dp", "", RANKS)})
        except IllegalLayout as error:
            illegal.append(error)
            continue
        found += layouts
        notes += [note for note in dropped if note not in notes]
    if not found:
        raise illegal[0]
    return found, (*notes, *(f"dropped as illegal: {error}" for error in illegal[:1]))

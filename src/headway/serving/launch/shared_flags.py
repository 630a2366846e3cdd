"""Flags that engines spell differently and mean alike: limits, formats, the port, and the number formats they load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headway.serving.launch.needs import LaunchRequest

DTYPES = {"bf16": "bfloat16", "fp16": "float16"}  # stored formats that every engine casts while loading
ROLE_PORTS = {"": 0, "prefill": 100, "decode": 200}  # offsets, so that two pools can share a host


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagNames:
    """Names of one engine's flags, and the port of its first replica."""

    sequences: str
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
    if request.replicas > 1 or request.role:
        words.append(f"{names.port} {port(request, names.first_port)}")
    return words


def port(request: LaunchRequest, first: int, step: int = 1) -> str:
    """A port of a pool; of several replicas counted up by `step` in the shell variable REPLICA."""
    number = first + ROLE_PORTS[request.role]
    if request.replicas == 1:
        return str(number)
    return f"$(({number} + {'REPLICA' if step == 1 else f'{step} * REPLICA'}))"


def formats(request: LaunchRequest, online: Mapping[str, str], cache: Mapping[str, str]) -> list[str]:
    """Flags of the number formats of weights and KV cache, where they are not the engine's default."""
    words = []
    if request.weights in DTYPES:
        words.append(f"--dtype {DTYPES[request.weights]}")
    elif request.weights:
        words.append(f"--quantization {online[request.weights]}")
    if request.kv:
        words.append(f"--kv-cache-dtype {cache[request.kv]}")
    return words

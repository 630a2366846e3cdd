"""Kubernetes manifests read back from their text, and checked against the kept fields of the published schemas."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

TYPES = json.loads((Path(__file__).parents[1] / "data" / "kubernetes_fields.json").read_text(encoding="utf-8"))["types"]
NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
PLAIN = {"str": str, "int": int, "bool": bool, "map": dict, "name": str}


def parsed(text: str) -> list[dict[str, Any]]:
    """Documents of block-style YAML: dictionaries, lists, plain words and JSON scalars."""
    return [_value(lines) for part in text.split("---\n")[1:] if (lines := [line for line in part.splitlines() if line])]


def _value(lines: list[str]) -> Any:
    if lines[0].startswith("- "):
        starts = [at for at, line in enumerate(lines) if line.startswith("- ")]
        blocks = [lines[at:end] for at, end in zip(starts, [*starts[1:], len(lines)], strict=True)]
        return [_value([line[2:] for line in block]) for block in blocks]
    if not re.match(r'("[^"]*"|[\w./-]+):( |$)', lines[0]):
        (line,) = lines
        return _scalar(line)
    result, at = {}, 0
    while at < len(lines):
        key, _, rest = lines[at].partition(":")
        end = next((after for after in range(at + 1, len(lines)) if not lines[after].startswith("  ")), len(lines))
        assert key not in result, key
        result[_scalar(key)] = _scalar(rest.strip()) if rest.strip() else _value([line[2:] for line in lines[at + 1 : end]])
        at = end
    return result


def _scalar(text: str) -> Any:
    return json.loads(text) if text[0] in '"{[-0123456789' or text in ("true", "false", "null") else text


def faults(entry: dict[str, Any]) -> list[str]:
    """What the schema of its kind refuses in an object."""
    return list(_faults(entry, str(entry.get("kind")), str(entry.get("kind"))))


def _faults(value: Any, kind: Any, place: str) -> list[str]:
    if isinstance(kind, list):
        if not isinstance(value, list) or not value:
            return [f"{place}: wants a list"]
        return [fault for at, entry in enumerate(value) for fault in _faults(entry, kind[0], f"{place}[{at}]")]
    if kind.startswith("="):
        return [] if value == kind[1:] else [f"{place}: {value!r} is not {kind[1:]!r}"]
    if kind in PLAIN:
        good = type(value) is PLAIN[kind] and (kind != "name" or NAME.fullmatch(value))
        good = good and (kind != "map" or all(type(inner) is str for inner in value.values()))
        return [] if good else [f"{place}: {value!r} is no {kind}"]
    if kind not in TYPES or not isinstance(value, dict):
        return [f"{place}: no object of a kept kind"]
    fields, required = TYPES[kind]["fields"], TYPES[kind]["required"]
    wrong = [f"{place}.{key}: missing" for key in required if key not in value]
    wrong += [f"{place}.{key}: no such field" for key in value if key not in fields]
    return wrong + [fault for key in value if key in fields for fault in _faults(value[key], fields[key], f"{place}.{key}")]


def commands(entry: dict[str, Any]) -> list[str]:
    """What the containers of a workload run."""
    spec = entry["spec"]
    group = spec.get("leaderWorkerTemplate", {})
    templates = [spec.get("template"), group.get("leaderTemplate"), group.get("workerTemplate")]
    return [pod["command"][-1] for template in templates if template for pod in template["spec"]["containers"]]

"""YAML text of nested dictionaries and lists: block style, text in double quotes wherever YAML could read it otherwise."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")  # text that needs no quotes, keywords aside
KEYWORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def documents(objects: Sequence[dict[str, Any]]) -> str:
    """Several documents, each begun by a line of three dashes."""
    return "".join("---\n" + "\n".join(_block(entry)) + "\n" for entry in objects)


def _block(value: Any) -> Iterator[str]:
    """Lines of a dictionary or a list."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, dict | list) and inner:
                yield f"{_scalar(key)}:"
                yield from ("  " + line for line in _block(inner))
            else:
                yield f"{_scalar(key)}: {_scalar(inner)}"
        return
    for entry in value:
        lines = _block(entry) if isinstance(entry, dict | list) else [_scalar(entry)]
        for place, line in enumerate(lines):
            yield ("  " if place else "- ") + line


def _scalar(value: Any) -> str:
    if isinstance(value, str) and PLAIN.fullmatch(value) and value.lower() not in KEYWORDS:
        return value
    return json.dumps(value, ensure_ascii=False)

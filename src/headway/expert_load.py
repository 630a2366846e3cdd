"""A measured expert load: tokens per routed expert, from a file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from headway.errors import BadFile
from headway.quantity import known

MOST_BYTES = 1_000_000


def read_expert_load(path: str) -> tuple[Any, ...]:
    """Tokens per expert: a JSON list of numbers, or one number a line; BadFile for anything else."""
    try:
        if Path(path).stat().st_size > MOST_BYTES:
            raise BadFile(path, f"is larger than {MOST_BYTES} bytes; wants a list of numbers, one per expert")
        text = Path(path).read_text(encoding="utf-8").strip()
        values = json.loads(text) if text.startswith("[") else [float(line) for line in text.splitlines()]
    except (OSError, ValueError, RecursionError) as error:
        raise BadFile(path, f"wants tokens per expert, a JSON list or one number a line ({type(error).__name__})") from None
    if not isinstance(values, list) or not all(map(_is_count, values)) or sum(values) <= 0:
        raise BadFile(path, "wants tokens per expert: finite numbers, none negative, not all zero")
    source = f"expert load in {Path(path).name}"
    return tuple(known(float(value), f"tokens of expert {index}", "", "input", source) for index, value in enumerate(values))


def _is_count(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0

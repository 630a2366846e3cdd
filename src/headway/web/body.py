"""JSON of a request: UTF-8, no NaN and no infinity, however it is written."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from headway.core.errors import BadValue


def read(data: bytes) -> dict[str, Any]:
    """The object in a body; BadValue for anything else."""
    try:
        document = json.loads(data.decode("utf-8"), parse_constant=_refuse, parse_float=_finite)
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise BadValue("body", type(error).__name__, "a JSON object in UTF-8 with finite numbers") from None
    if not isinstance(document, dict):
        raise BadValue("body", type(document).__name__, "a JSON object")
    return document


def _refuse(text: str) -> NoReturn:
    raise ValueError(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value

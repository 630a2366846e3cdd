"""The process that measures: its request names the sizes, its answer is a record as JSON. Run by `run.measured`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from headway.reality import threads
from headway.reality.measure import processor


def job(request: Mapping[str, Any]) -> dict[str, Any]:
    """What the processor, or a card, takes."""
    usual = processor.QUICK if request["quick"] else processor.MeasureSizes()
    sizes = replace(usual, ring_bytes=min(usual.ring_bytes, request["ring_bytes"]))
    if request["device"] == "processor":
        return {"library": f"numpy {np.__version__}", **asdict(processor.measure(sizes))}
    from headway.reality.measure import card

    return card.measure(sizes, request["device"])


if __name__ == "__main__":
    threads.answer(job)

"""The process that measures: its request names the sizes, its answer is a record as JSON. Run by `run.measured`."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from headway.reality import threads
from headway.reality.measure import processor
from headway.reality.measure.timing import clock_of


def job(request: Mapping[str, Any]) -> dict[str, Any]:
    """What the processor, or a card, takes."""
    usual = processor.QUICK if request["quick"] else processor.MeasureSizes()
    sizes = replace(usual, ring_bytes=min(usual.ring_bytes, request["ring_bytes"]))
    if request["device"] == "processor":
        clock = clock_of(request["threads"])
        start, wall = clock(), time.perf_counter()
        times = processor.measure(sizes, clock)
        library, narrow = f"numpy {np.__version__}", ()
        if importlib.util.find_spec("torch") is not None:
            from headway.reality.measure import card

            fastest = max(matmul.flop_per_s for matmul in times.matmuls if matmul.format == processor.NATIVE[0])
            narrow = tuple(card.narrow_matmuls(sizes, clock, request["threads"], fastest))
            library += ", torch"
        share = (clock() - start) / (time.perf_counter() - wall)
        return {"library": library, "share": min(1.0, share), **asdict(replace(times, matmuls=(*times.matmuls, *narrow)))}
    from headway.reality.measure import card

    return card.measure(sizes)


if __name__ == "__main__":
    threads.answer(job)

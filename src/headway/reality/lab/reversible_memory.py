"""The process in which one pass, forward and backward, is weighed: nothing else ever ran in it, so its peak is the pass's."""

from __future__ import annotations

import contextlib
import ctypes
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from headway.core.cores import Reader, read_system
from headway.core.units import Byte
from headway.reality import threads
from headway.reality.lab.couplings import NumpyStack, Stack, StackSize, half_squares, random_halves

STATUS_FILE = "/proc/self/status"
KIB = 1024
WORD = 4.0  # bytes of a number
RATE = 1e-6
MMAP_THRESHOLD = -3  # of GNU's mallopt


def stack_of(library: str, size: StackSize, seed: int, dtype: str = "float32") -> Stack:
    """A stack in a library."""
    if library == "numpy":
        return NumpyStack(size, seed, dtype)
    return import_module("headway.reality.lab.couplings_torch").TorchStack(size, seed, dtype)


def resident(read: Reader = read_system) -> tuple[Byte, Byte] | None:
    """Memory that this process has now and had at most; of macOS twice the most; None where the system does not say.

    >>> resident(lambda path: "VmHWM:\\t  3 kB\\nVmRSS:\\t  2 kB\\n")
    (2048.0, 3072.0)
    """
    sizes = dict(re.findall(r"^(VmHWM|VmRSS):\s+(\d+) kB", read(STATUS_FILE), re.MULTILINE))
    if len(sizes) == 2:
        return float(sizes["VmRSS"]) * KIB, float(sizes["VmHWM"]) * KIB
    if sys.platform != "darwin":
        return None
    import resource

    most = float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return most, most


def job(request: Mapping[str, Any]) -> dict[str, Any]:
    """Bytes that a step of training holds between its passes, and its peak beyond what the process had before, and beyond its weights."""
    size, small = StackSize(**request["size"]), StackSize(layers=1, width=8, tokens=8)
    pages_of_their_own()
    for shape in (small, size):  # the first has the library load what it loads
        before = resident()
        stack = stack_of(request["library"], shape, request["seed"])
        step = stack.step(request["mode"], random_halves(shape, request["seed"]), half_squares, request["seed"], rate=RATE)
    after = resident()
    return {"activations": step.activations, "peak": after[1] - before[0] - WORD * size.params * size.layers if before and after else None}


def pages_of_their_own() -> None:
    """Each large array in pages that go back when it is dropped: else what a heap has between arrays would count as theirs."""
    with contextlib.suppress(AttributeError, TypeError, OSError):  # other libraries than GNU's
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, 2**16)


if __name__ == "__main__":
    threads.answer(job)

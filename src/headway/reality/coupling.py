"""The additive coupling, forward and back: a round of a Feistel cipher and a layer of a reversible network are the same step.

    x' = y + f(x),  y' = x          back:  x = y',  y = x' - f(y')

f is evaluated in one direction only, so it needs no inverse. What "+" means is the group: XOR of bits, addition of machine words that
wraps around, addition of floats. The first two are exact; floats round, so that the way back misses the last bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Half = Any  # an array: one half of the state
Residual = Callable[[Half], Half]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What a coupling adds with, and the operation that takes it away again."""

    name: str
    add: Callable[[Half, Half], Half]
    subtract: Callable[[Half, Half], Half]


XOR = Group(name="xor", add=np.bitwise_xor, subtract=np.bitwise_xor)
SUM = Group(name="sum", add=np.add, subtract=np.subtract)  # unsigned words wrap around; floats round


def couple(x: Half, y: Half, residual: Residual, group: Group) -> tuple[Half, Half]:
    """One coupling forward: (y + f(x), x).

    >>> words = np.array([7], dtype=np.uint32), np.array([4], dtype=np.uint32)
    >>> couple(*words, lambda x: x * x, SUM)
    (array([53], dtype=uint32), array([7], dtype=uint32))
    """
    return group.add(y, residual(x)), x


def uncouple(x: Half, y: Half, residual: Residual, group: Group) -> tuple[Half, Half]:
    """One coupling back: (y, x - f(y)).

    >>> uncouple(np.array([53], dtype=np.uint32), np.array([7], dtype=np.uint32), lambda x: x * x, SUM)
    (array([7], dtype=uint32), array([4], dtype=uint32))
    """
    return y, group.subtract(x, residual(y))


def forward(x: Half, y: Half, residuals: Sequence[Residual], group: Group) -> tuple[Half, Half]:
    """All couplings in order."""
    for residual in residuals:
        x, y = couple(x, y, residual, group)
    return x, y


def back(x: Half, y: Half, residuals: Sequence[Residual], group: Group) -> tuple[Half, Half]:
    """All couplings undone, the last first."""
    for residual in reversed(residuals):
        x, y = uncouple(x, y, residual, group)
    return x, y


# -- what a number format loses on the way back ----------------------------------------------------------------------------------

FORMATS = ("fixed64", "fp64", "fp32", "fp16", "bf16")
POINT = 16  # bits behind the binary point of fixed64
ROUNDOFF = {"fixed64": 0.0, "fp64": 2.0**-53, "fp32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8}  # of an addition, relative
WIDTH = 64


def rounded(values: np.ndarray, form: str) -> np.ndarray:
    """Values as the format holds them; bf16 is fp32 with 16 bits cut off, rounded to even.

    >>> rounded(np.array([1.00390625, 1.005]), "bf16").tolist()
    [1.0, 1.0078125]
    """
    if form == "fixed64":
        return np.rint(values * 2.0**POINT).astype(np.int64)
    if form == "bf16":
        bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
        even = (bits >> np.uint32(16)) & np.uint32(1)
        return ((bits + np.uint32(0x7FFF) + even) & np.uint32(0xFFFF0000)).view(np.float32)
    return values.astype({"fp64": np.float64, "fp32": np.float32, "fp16": np.float16}[form])


def inversion_error(layers: int, form: str, seed: int) -> float:
    """Relative error of the input that a stack of random layers returns: forward, then back, all sums in one number format.

    >>> inversion_error(16, "fixed64", 0)
    0.0
    """
    rng = np.random.default_rng(seed)
    residuals = [_layer(rng, form) for _ in range(layers)]
    start, group = rounded(rng.standard_normal((2, 8, WIDTH)), form), group_of(form)
    return relative_error(np.stack(back(*forward(start[0], start[1], residuals, group), residuals, group)), start)


def group_of(form: str) -> Group:
    """Sums as a number format makes them.

    >>> group_of("bf16").add(np.float32([256.0]), np.float32([1.0])).tolist()  # a step of 2 between neighbours there
    [256.0]
    """

    def formatted(operation: Callable[[Half, Half], Half]) -> Callable[[Half, Half], Half]:
        return operation if form != "bf16" else lambda half, residual: rounded(operation(half, residual), form)

    return Group(name=form, add=formatted(np.add), subtract=formatted(np.subtract))


def relative_error(values: np.ndarray, truth: np.ndarray) -> float:
    """Length of the difference over that of the truth.

    >>> relative_error(np.array([3.0, 4.5]), np.array([3.0, 4.0]))
    0.1
    """
    exact = truth.astype(np.float64)
    return float(np.linalg.norm(values.astype(np.float64) - exact) / np.linalg.norm(exact))


def _layer(rng: np.random.Generator, form: str) -> Residual:
    """A random layer: norm, a matmul to four times the width, a ramp, a matmul back; computed in double, held in the format."""
    into = rng.standard_normal((WIDTH, 4 * WIDTH)) / WIDTH**0.5
    out = rng.standard_normal((4 * WIDTH, WIDTH)) / (4 * WIDTH) ** 0.5

    def residual(half: Half) -> Half:
        values = half.astype(np.float64)
        normed = (values - values.mean(-1, keepdims=True)) / (values.std(-1, keepdims=True) + 1e-5)
        return rounded(np.maximum(normed @ into, 0.0) @ out, form)

    return residual

"""A stack of additive couplings in numpy, forward and backward, by three ways of coming by the activations that a backward pass reads.

Plain keeps what each operation of a layer read; checkpointed keeps each layer's input and computes the layer again; reversible keeps the
two streams behind the last layer alone and makes the others again from them. Each layer draws its dropout mask from a seed of its own, so
that a layer that is computed again drops the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from headway.core.units import Byte
from headway.reality import coupling

PLAIN, CHECKPOINTED, REVERSIBLE = MODES = ("plain", "checkpointed", "reversible")
DROPOUT = 0.1  # share of a layer's output that is dropped
EPSILON = 1e-5  # of a norm
EXPANSION = 2  # of a layer's middle over the width

Array = Any  # of numpy, or a tensor of torch
Inputs = tuple[Array, ...]
Loss = Callable[[Array, Array], tuple[float, Array, Array]]  # of both streams: its value, and its gradients


@dataclass(frozen=True, slots=True, kw_only=True)
class StackSize:
    """Layers of a stack, the width of each stream, and the tokens that pass it at once."""

    layers: int
    width: int
    tokens: int

    @property
    def params(self) -> int:
        """Weights of one layer: a matrix into its middle, one out of it."""
        return 2 * EXPANSION * self.width**2


@dataclass(frozen=True, slots=True, kw_only=True)
class StackStep:
    """What one forward and backward pass gives."""

    loss: float
    gradients: Sequence[Array]  # of the weights in their order, where no rate spends them; then of both streams of the input
    activations: Byte  # of activations between the passes


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One operation of a layer as it is timed alone."""

    name: str
    forward: Callable[[], Any]
    backward: Callable[[], Any]


class Stack(Protocol):
    """A stack in either library."""

    weights: list[Array]

    def step(self, mode: str, halves: np.ndarray, loss: Loss, seed: int, form: str = "fp32", rate: float | None = None) -> StackStep: ...
    def drift(self, halves: np.ndarray, seed: int, form: str) -> float: ...  # relative error of the input, behind all layers and back
    def residuals(self, seed: int) -> Sequence[coupling.Residual]: ...  # each layer's f, of arrays of numpy
    def pieces(self, halves: np.ndarray) -> Sequence[Piece]: ...


def half_squares(x: Array, y: Array) -> tuple[float, Array, Array]:
    """Half the sum of squares of both streams, whose gradient is the streams themselves."""
    return 0.5 * float((x * x).sum() + (y * y).sum()), x, y


# -- operations: forward gives what it makes and what its backward pass reads; backward the gradient of its input, and of a weight -----


class Norm:
    """Mean 0 and variance 1 of each token."""

    def forward(self, x: Array) -> tuple[Array, Inputs]:
        mean = x.mean(-1, keepdims=True)
        output = x - mean
        rate = 1 / np.sqrt((output * output).mean(-1, keepdims=True) + EPSILON).astype(x.dtype)
        output *= rate
        return output, (x, mean, rate)

    def backward(self, reads: Inputs, gradient: Array) -> tuple[Array, Array | None]:
        x, mean, rate = reads
        output = (x - mean) * rate
        result = gradient - gradient.mean(-1, keepdims=True)
        output *= (gradient * output).mean(-1, keepdims=True)
        result -= output
        result *= rate
        return result, None


class Product:
    """Tokens times a matrix of weights."""

    def __init__(self, weight: Array) -> None:
        self.weight = weight

    def forward(self, x: Array) -> tuple[Array, Inputs]:
        return x @ self.weight, (x,)

    def backward(self, reads: Inputs, gradient: Array) -> tuple[Array, Array | None]:
        return gradient @ self.weight.T, reads[0].T @ gradient


class SquaredRamp:
    """max(x, 0) squared, whose slope has no jump: a rebuilt input that is off by a rounding changes the gradient by no more."""

    def forward(self, x: Array) -> tuple[Array, Inputs]:
        ramp = np.maximum(x, 0)
        return ramp * ramp, (ramp,)

    def backward(self, reads: Inputs, gradient: Array) -> tuple[Array, Array | None]:
        result = reads[0] * gradient
        result *= 2
        return result, None


class Dropout:
    """A share of the numbers dropped at random, the others larger for it."""

    def __init__(self, seed: Sequence[int]) -> None:
        self.seed = seed

    def forward(self, x: Array) -> tuple[Array, Inputs]:
        stays = np.random.default_rng(self.seed).random(x.shape, dtype=np.float32) >= DROPOUT
        return self.backward((stays,), x)[0], (stays,)

    def backward(self, reads: Inputs, gradient: Array) -> tuple[Array, Array | None]:
        result = gradient * reads[0]
        result *= 1 / (1 - DROPOUT)
        return result, None


# -- the stack ----------------------------------------------------------------------------------------------------------------------


def random_weights(size: StackSize, seed: int, dtype: str = "float32") -> list[np.ndarray]:
    """Two matrices of each layer, the second smaller by the root of the depth as GPT-2's are, so that streams do not grow with it."""
    draw, middle, kind = np.random.default_rng(seed), EXPANSION * size.width, np.dtype(dtype)
    into, out = (kind.type(share**-0.5) for share in (size.width, middle * size.layers))
    pairs = (((size.width, middle), into), ((middle, size.width), out)) * size.layers
    return [draw.standard_normal(shape, dtype=kind) * scale for shape, scale in pairs]


def random_halves(size: StackSize, seed: int, dtype: str = "float32") -> np.ndarray:
    """Both streams of an input."""
    return np.random.default_rng((seed, 1)).standard_normal((2, size.tokens, size.width), dtype=np.dtype(dtype))


class NumpyStack:
    """The stack in numpy."""

    def __init__(self, size: StackSize, seed: int, dtype: str = "float32") -> None:
        self.weights: list[Array] = random_weights(size, seed, dtype)

    def _layer(self, place: int, seed: int) -> tuple[Any, ...]:
        into, out = self.weights[2 * place : 2 * place + 2]
        return Norm(), Product(into), SquaredRamp(), Product(out), Dropout((seed, place))

    def step(self, mode: str, halves: np.ndarray, loss: Loss, seed: int, form: str = "fp32", rate: float | None = None) -> StackStep:
        """Loss and gradients; streams are held and added in a number format, f is computed in the stack's own.

        With a rate each gradient moves its weight as soon as it is there, and is dropped.
        """
        group, trail = coupling.group_of(form), list[Any]()
        layers = [self._layer(place, seed) for place in range(len(self.weights) // 2)]

        def residual(half: Array, layer: Any, mode: str = mode) -> Array:
            output, reads = _run(layer, self._numbers(half, form))
            trail.append({PLAIN: reads, CHECKPOINTED: half, REVERSIBLE: None}[mode])
            return _in_format(output, form)

        x, y = (_in_format(half, form) for half in halves)
        x, y = coupling.forward(x, y, [partial(residual, layer=layer) for layer in layers], group)
        activations = bytes_of([*trail, *((x, y) if mode == REVERSIBLE else ())])
        value, gradient, aside = loss(self._numbers(x, form), self._numbers(y, form))
        gradients = list[Array]()
        for layer in reversed(layers):
            reads = trail.pop()
            if mode == CHECKPOINTED:
                residual(reads, layer, PLAIN)
            elif mode == REVERSIBLE:
                x, y = coupling.uncouple(x, y, partial(residual, layer=layer, mode=PLAIN), group)
            back, (into, out) = _pulled(layer, reads if mode == PLAIN else trail.pop(), gradient)
            gradient, aside = aside + back, gradient
            if rate is None:
                gradients += [out, into]
                continue
            for place, slope in ((1, into), (3, out)):
                slope *= rate
                layer[place].weight -= slope
        return StackStep(loss=value, gradients=[*reversed(gradients), gradient, aside], activations=activations)

    def _numbers(self, half: Array, form: str) -> Array:
        """A stream as the numbers that f is computed from."""
        return (half * 2.0**-coupling.POINT if form == "fixed64" else half).astype(self.weights[0].dtype, copy=False)

    def residuals(self, seed: int) -> Sequence[coupling.Residual]:
        """Each layer's f."""
        layers = [self._layer(place, seed) for place in range(len(self.weights) // 2)]
        return [lambda half, layer=layer: _run(layer, half)[0] for layer in layers]

    def drift(self, halves: np.ndarray, seed: int, form: str) -> float:
        """Relative error of the input, behind all layers and back."""
        group, start = coupling.group_of(form), _in_format(halves, form)
        residuals = [lambda half, f=f: _in_format(f(self._numbers(half, form)), form) for f in self.residuals(seed)]
        ends = coupling.forward(start[0], start[1], residuals, group)
        return coupling.relative_error(np.stack(coupling.back(*ends, residuals, group)), start)

    def pieces(self, halves: np.ndarray) -> Sequence[Piece]:
        """The operations of the first layer, each with an input of its own, and the sum of both streams."""
        pieces, x = [], halves[0]
        for operation in self._layer(0, 0):
            output, reads = operation.forward(x)
            forward, backward = partial(operation.forward, x), partial(operation.backward, reads, output)
            pieces.append(Piece(name=type(operation).__name__, forward=forward, backward=backward))
            x = output
        add = partial(np.add, halves[0], halves[1])
        return [*pieces, Piece(name="Coupling", forward=add, backward=add)]


def _in_format(values: Array, form: str) -> Array:
    """Numbers as a format holds them, without a copy where they are held so already."""
    return values if values.dtype == {"fp64": np.float64, "fp32": np.float32}.get(form) else coupling.rounded(values, form)


def _run(layer: Iterable[Any], x: Array) -> tuple[Array, list[Inputs]]:
    """f of a layer, and what its backward pass reads."""
    trail = []
    for operation in layer:
        x, reads = operation.forward(x)
        trail.append(reads)
    return x, trail


def _pulled(layer: Sequence[Any], trail: list[Inputs], gradient: Array) -> tuple[Array, tuple[Array, Array]]:
    """Gradients of a layer's input and of both of its matrices; what an operation read is dropped behind it."""
    weights = []
    for operation in reversed(layer):
        gradient, weight = operation.backward(trail.pop(), gradient)
        weights += [] if weight is None else [weight]
    return gradient, (weights[1], weights[0])


def bytes_of(values: Any) -> float:
    """Bytes of arrays in lists of lists, each array once."""
    unique = {id(array): array.nbytes for array in _arrays(values)}
    return float(sum(unique.values()))


def _arrays(values: Any) -> Iterable[Array]:
    if isinstance(values, list | tuple):
        for value in values:
            yield from _arrays(value)
    elif values is not None:
        yield values

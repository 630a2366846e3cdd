"""The stack of additive couplings in torch: by its autograd, its checkpointing, and a function of our own that keeps two streams."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from headway.reality import coupling
from headway.reality.lab.couplings import CHECKPOINTED, DROPOUT, EPSILON, REVERSIBLE, Loss, Piece, StackSize, StackStep, random_weights

# Without torch the module loads all the same, for who reads its names, and runs nothing.
torch: Any = import_module("torch") if find_spec("torch") else None
Function: Any = torch.autograd.Function if torch else object
Tensor = Any
SUM = coupling.Group(name="torch", add=operator.add, subtract=operator.sub)
DTYPES = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
LAYERS = 2**20  # more than a stack has: seeds of masks of unlike steps never meet


class Couplings(Function):
    """All layers as one operation of autograd, which keeps the streams behind the last layer; or every stream, to compare with."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, stack: TorchStack, seed: int, form: str, keeps: bool) -> Any:
        """Through all layers; nothing inside is recorded."""
        streams = list[Tensor]()

        def residual(half: Tensor, place: int) -> Tensor:
            streams.extend([half] * keeps)
            return _in_format(stack.layer(stack.numbers(half, form), place, seed), form)

        residuals = [partial(residual, place=place) for place in stack.places]
        x, y = coupling.forward(_in_format(x, form), _in_format(y, form), residuals, SUM)
        ctx.stack, ctx.seed, ctx.form, ctx.keeps = stack, seed, form, keeps
        ctx.save_for_backward(x, y, *streams)
        return stack.numbers(x, form), stack.numbers(y, form)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        """Each layer's input made again from its output, then the layer with its gradients, the last layer first.

        Gradients of weights go where autograd gathers them, layer by layer, so that no more than one layer's lie here.
        """
        gradient, aside = gradients
        x, y, *streams = ctx.saved_tensors
        for place in reversed(ctx.stack.places):
            run = list[Tensor]()

            def residual(half: Tensor, place: int = place, run: list[Tensor] = run) -> Tensor:
                with torch.enable_grad():
                    entry = ctx.stack.numbers(half, ctx.form).detach().requires_grad_()
                    run += [entry, ctx.stack.layer(entry, place, ctx.seed)]
                return _in_format(run[1].detach(), ctx.form)

            if ctx.keeps:
                residual(streams[place])
            else:
                x, y = coupling.uncouple(x, y, residual, SUM)
            torch.autograd.backward(run[1], gradient)
            gradient, aside = aside + run[0].grad, gradient
        return gradient, aside, None, None, None, None


class TorchStack:
    """The stack in torch, on the processor."""

    def __init__(self, size: StackSize, seed: int, dtype: str = "float32") -> None:
        self.weights = [torch.from_numpy(weight).requires_grad_() for weight in random_weights(size, seed, dtype)]

    @property
    def places(self) -> range:
        """Numbers of the layers."""
        return range(len(self.weights) // 2)

    def numbers(self, half: Tensor, form: str) -> Tensor:
        """A stream as the numbers that f is computed from."""
        return (half * 2.0**-coupling.POINT if form == "fixed64" else half).to(self.weights[0].dtype)

    def layer(self, x: Tensor, place: int, seed: int) -> Tensor:
        """f of one layer."""
        into, out = self.weights[2 * place : 2 * place + 2]
        return _dropout(_squared(_norm(x) @ into) @ out, place, seed)

    def step(self, mode: str, halves: np.ndarray, loss: Loss, seed: int, form: str = "fp32", rate: float | None = None) -> StackStep:
        """Loss and gradients; bytes are those of the tensors that autograd is handed to keep, weights apart."""
        tensors, weights = dict[int, int](), {weight.untyped_storage().data_ptr() for weight in self.weights}

        def keep(tensor: Tensor) -> Tensor:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in weights:
                tensors[storage.data_ptr()] = storage.nbytes()
            return tensor

        entry = [torch.from_numpy(half).requires_grad_() for half in halves]
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            if mode == REVERSIBLE or f"torch.{DTYPES.get(form)}" != str(self.weights[0].dtype):
                x, y = Couplings.apply(*entry, self, seed, form, mode != REVERSIBLE)
            else:
                residuals = [partial(self.layer, place=place, seed=seed) for place in self.places]
                if mode == CHECKPOINTED:
                    checkpoint = import_module("torch.utils.checkpoint").checkpoint
                    residuals = [partial(checkpoint, f, use_reentrant=False, preserve_rng_state=False) for f in residuals]
                x, y = coupling.forward(entry[0], entry[1], residuals, SUM)
        value, *gradients = loss(x.detach(), y.detach())
        spends = [] if rate is None else [weight.register_post_accumulate_grad_hook(partial(_spend, rate)) for weight in self.weights]
        torch.autograd.backward((x, y), gradients)
        for spend in spends:
            spend.remove()
        results = [tensor.grad for tensor in (*([] if spends else self.weights), *entry)]
        for weight in self.weights:
            weight.grad = None
        return StackStep(loss=value, gradients=results, activations=float(sum(tensors.values())))

    def residuals(self, seed: int) -> Sequence[coupling.Residual]:
        """Each layer's f, of arrays of numpy."""

        def residual(half: np.ndarray, place: int) -> np.ndarray:
            with torch.no_grad():
                return self.layer(torch.from_numpy(half), place, seed).numpy()

        return [partial(residual, place=place) for place in self.places]

    def drift(self, halves: np.ndarray, seed: int, form: str) -> float:
        """Relative error of the input, behind all layers and back."""
        start = [_in_format(torch.from_numpy(half), form) for half in halves]
        residuals = [lambda half, place=place: _in_format(self.layer(self.numbers(half, form), place, seed), form) for place in self.places]
        with torch.no_grad():
            x, y = coupling.forward(start[0], start[1], residuals, SUM)
            streams = coupling.back(x, y, residuals, SUM)
        return coupling.relative_error(*(torch.stack(list(halves)).double().numpy() for halves in (streams, start)))

    def pieces(self, halves: np.ndarray) -> Sequence[Piece]:
        """The operations of the first layer, each with an input and a graph of its own, and the sum of both streams."""
        into, out = self.weights[:2]
        operations = {
            "Norm": (_norm, ()), "Product into": (lambda x: x @ into, (into,)), "SquaredRamp": (_squared, ()),
            "Product out": (lambda x: x @ out, (out,)), "Dropout": (lambda x: _dropout(x * 1, 0, 0), ()),
        }  # fmt: skip
        pieces, x = [], torch.from_numpy(halves[0])
        for name, (operation, weights) in operations.items():
            entry = x.detach().requires_grad_()
            x = operation(entry)
            backward = partial(torch.autograd.grad, x, (entry, *weights), x.detach().clone(), retain_graph=True)
            pieces.append(Piece(name=name, forward=partial(operation, entry), backward=backward))
        add = partial(torch.add, *map(torch.from_numpy, halves))
        return [*pieces, Piece(name="Coupling", forward=add, backward=add)]


def _spend(rate: float, weight: Tensor) -> None:
    """A gradient moves its weight as soon as it is there."""
    with torch.no_grad():
        weight.sub_(weight.grad, alpha=rate)
    weight.grad = None


def _norm(x: Tensor) -> Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[-1:], eps=EPSILON)


def _squared(x: Tensor) -> Tensor:
    ramp = torch.relu(x)
    return ramp * ramp


def _dropout(x: Tensor, place: int, seed: int) -> Tensor:
    """Dropout by a generator of the layer's own, which is not torch's: nothing else that draws is moved, and the mask comes again."""
    generator = torch.Generator().manual_seed(LAYERS * seed + place)
    drops = torch.empty(x.shape, dtype=torch.bool).bernoulli_(DROPOUT, generator=generator)
    return x.mul_(1 / (1 - DROPOUT)).masked_fill_(drops, 0)


def _in_format(values: Tensor, form: str) -> Tensor:
    """Numbers as a format holds them."""
    return (values * 2.0**coupling.POINT).round().to(torch.int64) if form == "fixed64" else values.to(getattr(torch, DTYPES[form]))

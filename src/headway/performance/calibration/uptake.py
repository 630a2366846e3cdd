"""What a deployment takes from the user's own runs: factors on its server, and how much narrower its intervals are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.quantity import known
from headway.core.trace import unrecorded
from headway.performance.calibration.factors import FIRST, MOVE, PARAMETERS, RunFactors, calibrated, factors_of
from headway.performance.calibration.in_force import Calibrations
from headway.performance.calibration.key import RunKey, layout_texts
from headway.performance.calibration.posterior import NOISE, Posterior
from headway.performance.layout import Layout
from headway.performance.request import NO_RUNS, Server

NOISE_OF = {"tpot": "tpot", "decode": "tpot", "ttft": "ttft", "prefill": "rate", "rate": "rate"}  # of a run, by quantity of an interval
MOVES = tuple(RunFactors(**factors_of(move)) for place, move in enumerate(MOVE * np.eye(len(PARAMETERS))) if place != FIRST)
MOST_TOLD = 3  # runs that a factor names


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWidth:
    """Half of the interval of a logarithm as runs of the user's own leave it."""

    runs: tuple[str, ...]
    scatter: Any
    quantity: str  # as an answer tells it


@dataclass(frozen=True, slots=True, kw_only=True)
class Uptake:
    """What runs say of a deployment in a layout, or in each of an array of layouts."""

    factors: RunFactors
    posteriors: tuple[Posterior, ...]
    place: Any = 0  # of the posterior of each layout

    @property
    def runs(self) -> tuple[str, ...]:
        """Every run that says something, PROFILE:ID."""
        return tuple(dict.fromkeys(run for posterior in self.posteriors for run in posterior.runs))

    def widths(self, server: Server, quantities: Callable[[Server], Mapping[str, Any]]) -> dict[str, RunWidth]:
        """What the runs leave of the interval of each quantity; the server has the factors of the runs."""
        with unrecorded():
            usual = quantities(replace(server, first_token_factor=NO_RUNS))
            shifted = [quantities(calibrated(server, move)) for move in MOVES]
            scatters = {name: self._scatter(name, usual[name], [by_move[name] for by_move in shifted]) for name in usual}
            return {name: RunWidth(runs=self.runs, scatter=scatter, quantity=name) for name, scatter in scatters.items()}

    def _scatter(self, name: str, usual: Any, shifted: list[Any]) -> Any:
        slopes = [(np.log(value) - np.log(usual)) / MOVE for value in shifted]
        slopes.insert(FIRST, np.zeros(np.shape(usual)) + (name == "ttft"))
        along, noise = np.stack(np.broadcast_arrays(*slopes), axis=-1), NOISE[NOISE_OF[name]]
        scatters = [posterior.scatter(along, noise) if posterior.runs else np.inf for posterior in self.posteriors]
        scatter = scatters[0] if len(scatters) == 1 else np.choose(self.place, np.broadcast_arrays(*scatters))
        return scatter if np.ndim(scatter) else known(float(scatter), "scatter", "", "derived", self.source)

    @property
    def source(self) -> str:
        """The runs, in words."""
        return runs_text(self.runs)


def runs_text(runs: tuple[str, ...]) -> str:
    """Runs in words: how many, and the first of them.

    >>> runs_text(("mine:a", "mine:b", "mine:c", "mine:d"))
    '4 runs of your own: mine:a, mine:b, mine:c, ...'
    """
    rest = ", ..." if len(runs) > MOST_TOLD else ""
    return f"{len(runs)} run{'s' if len(runs) > 1 else ''} of your own: {', '.join(runs[:MOST_TOLD])}{rest}"


def uptake(force: Calibrations, key: RunKey, layout: Layout) -> Uptake | None:
    """What the runs in force say of a deployment by its key, in a layout or in each of an array; None where they say nothing."""
    of_layouts = layout_texts(layout)
    texts = of_layouts.ravel().tolist()
    order = {text: place for place, text in enumerate(dict.fromkeys(map(force.layout_text, texts)))}
    posteriors = tuple(force.posterior(replace(key, layout=text)) for text in order)
    if not any(posterior.runs for posterior in posteriors):
        return None
    place = np.reshape([order[force.layout_text(text)] for text in texts], of_layouts.shape)
    values = factors_of(np.array([posterior.mean for posterior in posteriors]))
    source = runs_text(tuple(dict.fromkeys(run for posterior in posteriors for run in posterior.runs)))
    factors = {}
    for name in PARAMETERS:
        factor = values[name][place]
        factors[name] = factor if np.ndim(factor) else known(float(factor), f"{name} factor", "", "measured", source)
    return Uptake(factors=RunFactors(**factors), posteriors=posteriors, place=place)

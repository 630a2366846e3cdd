"""The calibration profiles in force, and which of their runs an answer has used, for its first note."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from headway.core.units import Number
from headway.performance.calibration.clashes import Clash
from headway.performance.calibration.key import TRAINING, RunKey, left_after
from headway.performance.calibration.observation import Observation, profile_of
from headway.performance.calibration.posterior import Posterior, months, posterior
from headway.performance.calibration.profile import Profile, observations_of

NAMES = {  # of quantities; of those of an answer the first is told
    "tpot": "TPOT", "decode": "a decode step", "ttft": "TTFT", "prefill": "a prefill", "step": "a step",
}  # fmt: skip
ROOM = "room"  # for KV cache, of an engine's log
OLD = 3  # months from which an answer tells the age of its runs
UNMEASURED = "another layout"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUse:
    """Runs that a number rests on, and the halves of its interval as factors: with them, and without."""

    runs: tuple[str, ...]  # PROFILE:ID
    quantity: str
    half: Number
    usual: Number
    month: str = ""  # of the question, "" for today


@dataclass(kw_only=True)
class Calibrations:
    """Profiles that an answer may use, and what it has used of them."""

    profiles: tuple[Profile, ...]
    observations: tuple[Observation, ...]
    uses: list[RunUse] = field(default_factory=list)
    clashes: list[Clash] = field(default_factory=list)
    posteriors: dict[RunKey, Posterior] = field(default_factory=dict)  # of deployments that were asked about

    def posterior(self, key: RunKey) -> Posterior:
        """What the runs say today of a deployment, of the version of its engine that its newest runs have where the question says none."""
        observations = self.observations
        if not key.version:
            key, observations = replace(key, version=self.newest_version(key)), self.over_newest
        if key not in self.posteriors:
            self.posteriors[key] = posterior(observations, key)
        self.tell_clash(self.posteriors[key])
        return self.posteriors[key]

    @functools.cached_property
    def over_newest(self) -> tuple[Observation, ...]:
        """The observations beside predictions of the newest engines."""
        return tuple(observation.over_newest for observation in self.observations)

    def newest_version(self, key: RunKey) -> str:
        """Version of an engine in the newest runs of a deployment, else of the engine; "" where they say none."""
        runs = [run for run in self.observations if run.key.engine == key.engine and (run.key.mode == TRAINING) == (key.mode == TRAINING)]
        subject = (key.model, key.chip)
        newest = max(runs, key=lambda run: ((run.key.model, run.key.chip) == subject, run.month), default=None)
        return newest.key.version if newest else ""

    def tell_clash(self, by_runs: Posterior) -> None:
        """Keep that profiles behind a number of the answer contradict each other, if they do."""
        self.clashes += [by_runs.clash] if by_runs.clash else []

    def layout_text(self, text: str) -> str:
        """A layout as a key has it: all that were not measured are alike."""
        return text if text in self.layouts else UNMEASURED

    @functools.cached_property
    def layouts(self) -> frozenset[str]:
        """Layouts that were measured."""
        return frozenset(observation.key.layout for observation in self.observations)

    def tell(self, runs: tuple[str, ...], quantity: str = "", half: Number = None, usual: Number = None, month: str = "") -> None:
        """Keep that numbers of the answer rest on runs, and the interval of one of them."""
        self.uses.append(RunUse(runs=runs, quantity=quantity, half=half, usual=usual, month=month))

    def applied(self) -> list[Profile]:
        """The profiles of which the answer used a run."""
        names = {profile_of(run) for use in self.uses for run in use.runs}
        return [profile for profile in self.profiles if profile.name in names]

    def note(self) -> str:
        """What the answer rests on beside laws and the world's runs; "" where it used no run."""
        if not self.uses:
            return ""
        runs = list(dict.fromkeys(run for use in self.uses for run in use.runs))
        days = sorted({observation.month for observation in self.observations if observation.run in runs and observation.month})
        when = f" of {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else ""
        names = ", ".join(profile.name for profile in self.applied())
        parts = "; ".join([*self._narrower(), *self._rooms(), *self._versions(), *dict.fromkeys(clash.text for clash in self.clashes)])
        return f"calibrated on {len(runs):,} run{'s' if len(runs) > 1 else ''}{when} ({names}){': ' if parts else ''}{parts}"

    def age_note(self) -> str:
        """That the runs are old, where the newest is; "" where it is not."""
        days = {observation.run: observation.month for observation in self.observations if observation.month}
        uses = {(use.month, max(dates)) for use in self.uses if (dates := [days[run] for run in use.runs if run in days])}
        age = max((months(month) - months(newest) for month, newest in uses), default=0.0)
        if age <= OLD:
            return ""
        return f"the newest of these runs is {age:.0f} months old: {left_after(age)}; newer ones say more"

    def _narrower(self) -> list[str]:
        """How much narrower the first of NAMES is, of those that the answer has."""
        quantity = next((name for name in NAMES if any(use.quantity == name for use in self.uses)), "")
        if not quantity:
            return []
        uses = [use for use in self.uses if use.quantity == quantity]
        with_runs, without = (_ends([getattr(use, name) for use in uses]) for name in ("half", "usual"))
        return [f"{NAMES[quantity]} {with_runs}, else {without}"]

    def _versions(self) -> list[str]:
        """Which version of an engine a question that says none was taken to be of."""
        versions = {(key.engine, key.version) for key, by_runs in self.posteriors.items() if key.version and by_runs.runs}
        return [f"as of {engine} {version}, which the newest of them say" for engine, version in sorted(versions)]

    def _rooms(self) -> list[str]:
        """How much more room for KV cache logs of the engine's start found than the laws do."""
        factors = [factor for use in self.uses if use.quantity == ROOM for factor in np.ravel(use.half).tolist() if factor != 1]
        return [f"KV room {float(np.median(factors)):.3g} times the laws', as the engine logged it"] if factors else []


def _ends(halves: Sequence[Any]) -> str:
    """The least and the most of half an interval, as shares of what is expected."""
    values = np.concatenate([np.ravel(half) for half in halves]) - 1
    shares = dict.fromkeys(f"{value:.0%}".rstrip("%") for value in (np.nanmin(values), np.nanmax(values)))
    return f"+-{' to '.join(shares)} %"


_open: ContextVar[Calibrations | None] = ContextVar("calibrations", default=None)


def calibrations() -> Calibrations | None:
    """The profiles in force; None where there are none."""
    return _open.get()


@contextmanager
def using(profiles: Sequence[Profile]) -> Iterator[Calibrations]:
    """Within this block these profiles are in force."""
    force = Calibrations(profiles=tuple(profiles), observations=observations_of(profiles))
    token = _open.set(force if profiles else None)
    try:
        yield force
    finally:
        _open.reset(token)


@contextmanager
def aside() -> Iterator[None]:
    """Within this block numbers are computed that the answer does not print: which runs they go by is not told."""
    force = calibrations()
    count = len(force.uses) if force else 0
    yield
    if force:
        del force.uses[count:]


def within(profiles: Sequence[Profile], function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is called later, as of words and pictures of an answer, with these profiles in force."""

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        with using(profiles):
            return function(*args, **keywords)

    return call

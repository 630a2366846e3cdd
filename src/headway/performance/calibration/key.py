"""What makes two runs alike: model, chip, count, layout, formats, engine, version and mode of the deployment that was measured."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.hardware.system import System
from headway.laws.calibration import age_correlation
from headway.models.config import catalogue_name
from headway.models.model import Model
from headway.performance.calibration.factors import PARAMETERS, TRAINED
from headway.performance.formats import Formats
from headway.performance.layout import NAMES, Layout

SERVED, OFFLINE, SPLIT, TRAINING = MODES = ("served", "offline", "split", "training")
# Share of a factor that deployments keep in common which differ in one trait. Runs of another layout take half of the error of TPOT, as
# a correlation of 0.85 does; of another model or chip a quarter is kept, and of both nothing. Served models share nothing: runs of one
# made TPOT of others on its chip worse (median 9.2 to 10.1 %), which offline runs do not.
SHARES: Mapping[str, float] = {"layout": 0.85, "model": 0.25, "chip": 0.25, "weights": 0.5, "kv": 0.9, "version": 0.64, "mode": 0.8}
# Parameters of TTFT, of which months keep nothing, and other layouts at most a quarter.
PASSING_SHARES: Mapping[str, Mapping[str, float]] = {
    name: {**SHARES, "layout": layout, "model": 0.0, "chip": 0.0} for name, layout in (("host", 0.0), ("start", 0.0), ("first", 0.25))
}
HALF_LIFE, PASSING_HALF_LIFE = 8.0, 0.5  # months: half of the gain in TPOT lasts one to six, that in TTFT none
LEAST_SHARE = 0.1  # of every parameter, below which runs say nothing: another model on another chip


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKey:
    """A deployment as runs of it are filed; "" matches anything, with the wider interval of what is not known."""

    model: str
    chip: str
    chips: int
    layout: str  # degrees other than 1, as layouts are written: tp=8 ep=8
    weights: str
    kv: str
    engine: str  # family, as --engine has it
    version: str = ""
    mode: str = SERVED


def parameters_of(key: RunKey) -> tuple[str, ...]:
    """Parameters that runs of a deployment tell apart, in the order of slopes and covariances."""
    return TRAINED if key.mode == TRAINING else PARAMETERS


def run_key(model: Model, system: System, layout: Layout, formats: Formats, engine: str, version: str = "", mode: str = SERVED) -> RunKey:
    """Key of a deployment of these parts."""
    return RunKey(
        model=catalogue_name(model.name), chip=system.chip.name, chips=int(system.chips), layout=str(layout), weights=formats.labels[0],
        kv=formats.labels[1], engine=engine, version=version, mode=mode,
    )  # fmt: skip


def layout_texts(layout: Layout) -> Any:
    """A layout, or each of an array of layouts, as text.

    >>> layout_texts(Layout(tp=np.array([1, 8]))).tolist()
    ['tp=1', 'tp=8']
    """
    degrees = np.broadcast_arrays(*(np.asarray(getattr(layout, name), dtype=np.int64) for name in NAMES))
    layouts = (Layout(**dict(zip(NAMES, row, strict=True))) for row in zip(*(part.ravel().tolist() for part in degrees), strict=True))
    return np.reshape(np.array(list(map(str, layouts)), dtype=object), np.shape(degrees[0]))


@functools.lru_cache(maxsize=200_000)
def correlation(first: RunKey, second: RunKey, months: float) -> tuple[float, ...]:
    """Correlation of the factors of two deployments, measured so many months apart, by parameter.

    A product over traits, each the covariance of a part in common and a part of one's own, so that all together are a covariance.
    """
    is_served = first.model != second.model and SERVED in (first.mode, second.mode)
    if first.engine != second.engine or (first.mode == TRAINING) != (second.mode == TRAINING) or is_served:
        return (0.0,) * len(parameters_of(first))
    apart = [name for name in SHARES if getattr(first, name) != getattr(second, name)]
    blank = [name for name in apart if not (getattr(first, name) and getattr(second, name))]
    if first.chips != second.chips and "layout" not in apart:
        apart.append("layout")
    values = []
    for parameter in parameters_of(first):
        rule = PASSING_SHARES.get(parameter, SHARES)
        half_life = PASSING_HALF_LIFE if parameter in PASSING_SHARES else HALF_LIFE
        shares = (math.sqrt(rule[name]) if name in blank else rule[name] for name in apart)
        values.append(math.prod(shares) * age_correlation(months, half_life))
    return tuple(values)


def left_after(age: float) -> str:
    """What so many months leave of what a served run says, part by part.

    >>> left_after(8.0)
    "of what it says of a step 50 % is left, of the host's launches, a run's start and TTFT by itself nothing; each part goes back to its \
prediction at its own pace, so that a slow run may leave a little less than the prediction, within the interval"
    """
    passing = round(100 * age_correlation(age, PASSING_HALF_LIFE))
    rest = f"a step {100 * age_correlation(age, HALF_LIFE):.0f} % is left, of the host's launches, a run's start and TTFT by itself"
    pace = "each part goes back to its prediction at its own pace, so that a slow run may leave a little less than the prediction"
    return f"of what it says of {rest} {f'{passing} %' if passing else 'nothing'}; {pace}, within the interval"


def applies(first: RunKey, second: RunKey, months: float) -> bool:
    """Whether a run of one deployment says anything of another."""
    return max(correlation(first, second, months)) >= LEAST_SHARE

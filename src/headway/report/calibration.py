"""What a calibration says in words: its first sentence, a table for people, and what is left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.core.catalog import fold
from headway.core.columns import Column
from headway.core.listing import Listing
from headway.evidence.calibration.contradictions import Contradiction
from headway.evidence.calibration.deployments import DeploymentOfRuns, FactorOfRuns, QuantityOfRuns
from headway.performance.calibration.key import TRAINING, RunKey, left_after
from headway.performance.calibration.posterior import months
from headway.performance.calibration.profile import CalibrationRun
from headway.report.causes import times
from headway.report.words import sentence

NAMES = {"tpot": "TPOT", "ttft": "TTFT", "rate": "throughput", "step": "step", "memory": "memory"}
FACTORS = {  # of a deployment, for the table and the first sentence
    "step": ("step", "the step takes {} times as long"), "fixed": ("fixed costs", "fixed costs are {} times as long"),
    "host": ("host's launches", "the host's launches take {} times as long"),
    "start": ("start of a run", "{} times as many requests come at once at the start"),
    "first": ("TTFT beyond these", "a factor on TTFT alone makes its prediction {} times as long"),
    "memory": ("memory of a chip", "its memory is {} times as much"),
}  # fmt: skip
ABOUT = "measured over predicted, and half of the 90 % interval; of a factor its value"
MOST_NAMED = 10  # runs that a note names
OLD = 3  # months from which a profile says that it is
HELD_OUT = "held out: each run predicted by the others alone"
CHANGE = ("of", "before", "after", "held_out")  # columns of the table for people
_ENDS = {"": "", "_lo": ", lower end of the 90 % interval", "_hi": ", upper end of it"}
COLUMNS = {
    "deployment": Column("", "what was measured: model, chips, engine, layout, formats, version, mode"),
    "chip": Column("", "chip, by its catalogue name"),
    "layout": Column("", "degrees of the layout other than 1"),
    "mode": Column("", "served, offline, split or training"),
    "version": Column("", "version of the engine; empty where nobody says"),
    "runs": Column("count", "runs of the deployment that are used"),
    "ids": Column("", "their ids"),
    **{f"{name}_factor{end}": Column("", f"what the runs say of the {FACTORS[name][0]}, over what is predicted{about}")
       for name in FACTORS for end, about in _ENDS.items()},
    "kv_room_factor": Column("", "room for KV cache as the engine logged it at its start, over that of the laws"),
    **{f"{name}_{key}": Column("", f"{text} of {NAMES[name]}{about}")
       for name in NAMES for key, text, about in (
           ("ratio", "measured over predicted", ", without the runs"), ("half", "half of the 90 % interval", ", without the runs"),
           ("ratio_by_runs", "measured over predicted", ", with them"), ("half_by_runs", "half of the 90 % interval", ", with them"),
           ("ratio_by_others", "measured over predicted", ", each run by the others alone"),
           ("half_by_others", "half of the 90 % interval", ", each run by the others alone"))},
    "profile": Column("", "the file that was written; null without --save"),
}  # fmt: skip


def name_of(key: RunKey) -> str:
    """A deployment as people read it."""
    about = ", ".join(filter(None, (key.engine, key.version, key.layout.replace("=", " "), _formats(key), key.mode)))
    return f"{machine_of(key)} ({about})"


def machine_of(key: RunKey) -> str:
    """Model and chips of a deployment."""
    return f"{key.model} on {key.chips} {fold(key.chip)}"


def _formats(key: RunKey) -> str:
    return key.weights if key.kv in ("", key.weights) else f"{key.weights} with {key.kv} KV"


def row(deployment: DeploymentOfRuns, path: str | None) -> dict[str, Any]:
    """A deployment as a row."""
    key = deployment.key
    cells: dict[str, Any] = {
        "deployment": name_of(key), "model": key.model, "chip": fold(key.chip), "chips": key.chips, "layout": key.layout,
        "weights": key.weights, "kv": key.kv, "engine": key.engine, "version": key.version, "mode": key.mode, "runs": len(deployment.runs),
        "ids": ", ".join(used_run.run.id for used_run in deployment.runs),
    }  # fmt: skip
    cells |= {f"{name}_factor{end}": None for name in FACTORS for end in _ENDS}
    for factor in deployment.factors:
        ends = {"": factor.value, "_lo": factor.low, "_hi": factor.high}
        cells |= {f"{factor.name}_factor{end}": value if factor.is_learnt else None for end, value in ends.items()}
    for name in NAMES:
        quantity = next((quantity for quantity in deployment.quantities if quantity.name == name), None)
        keys = ("ratio", "half", "ratio_by_runs", "half_by_runs", "ratio_by_others", "half_by_others")
        cells |= {f"{name}_{key}": quantity and getattr(quantity, key) for key in keys}
    return cells | {"kv_room_factor": deployment.start and float(deployment.start.room), "profile": path}


def people(deployments: Sequence[DeploymentOfRuns]) -> Listing:
    """The deployments for people: a line for each quantity and for each factor that the runs tell."""
    lines: list[dict[str, Any]] = []
    for deployment in deployments:
        cells = [
            {"of": NAMES[quantity.name], "before": _cell(quantity.ratio, quantity.half),
             "after": _cell(quantity.ratio_by_runs, quantity.half_by_runs)}
            | ({"held_out": _cell(quantity.ratio_by_others, quantity.half_by_others or 0)} if quantity.ratio_by_others else {})
            for quantity in deployment.quantities
        ]  # fmt: skip
        cells += [
            {"of": FACTORS[factor.name][0], "before": _cell(1.0, factor.usual - 1),
             "after": _cell(factor.value, factor.high / factor.value - 1)}
            for factor in deployment.factors if factor.is_learnt
        ]  # fmt: skip
        cells += [{"of": "KV room", "before": "1.00", "after": f"{deployment.start.room:.2f}"}] if deployment.start else []
        about: dict[str, Any] = {"deployment": name_of(deployment.key), "runs": len(deployment.runs)}
        lines += [about | cell for cell in cells]
    return Listing(lines)


def _cell(value: float, half: float) -> str:
    return f"{value:.2f} {plus_minus(half)}"


def plus_minus(half: float) -> str:
    """Half of an interval, a share, as people write it.

    >>> plus_minus(0.304)
    '+-30 %'
    """
    return f"+-{100 * half:.0f} %"


def count_of(runs: int) -> str:
    """A number of runs.

    >>> count_of(1), count_of(3)
    ('1 run', '3 runs')
    """
    return f"{runs:,} run{'s' if runs > 1 else ''}"


def headline(deployments: Sequence[DeploymentOfRuns]) -> str:
    """What the runs change, of the deployment with the most runs: its first quantity, and the factor that is surest not to be 1."""
    first = deployments[0]
    count, key = count_of(sum(len(deployment.runs) for deployment in deployments)), first.key
    of_one = f"{count} of {machine_of(key)} ({', '.join(filter(None, (key.engine, key.layout.replace('=', ' '))))})"
    start = of_one if len(deployments) == 1 else f"{count} of {len(deployments)} deployments"
    which = "" if len(deployments) == 1 else f" ({machine_of(key)})"
    change = _change(first.quantities[0]) if first.quantities else _room(first)
    return sentence(f"{start}: {change}{which}", *(f"; {text}" for text in _surest(first.factors)))


def _room(deployment: DeploymentOfRuns) -> str:
    """What a log alone says."""
    return "no quantity is predicted" if deployment.start is None else f"KV room {times(deployment.start.room, 3)} times the laws'"


def _change(quantity: QuantityOfRuns) -> str:
    return f"{NAMES[quantity.name]} {plus_minus(quantity.half)} -> {plus_minus(quantity.half_by_runs)}"


def _surest(factors: Sequence[FactorOfRuns]) -> list[str]:
    """The factors whose interval does not hold 1, else the one that is known best."""
    off = [factor for factor in factors if factor.is_learnt and not factor.low <= 1 <= factor.high]
    silent = ["every factor may be 1: as predicted"] if any(factor.is_learnt for factor in factors) else []
    return [FACTORS[factor.name][1].format(times(factor.value, 3)) for factor in off] or silent


def run_notes(runs: Sequence[CalibrationRun]) -> list[str]:
    """Which runs a profile keeps."""
    names, files = [run.id for run in runs], ", ".join(dict.fromkeys(run.file for run in runs))
    first, last = min(run.date for run in runs), max(run.date for run in runs)
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    when = first if first == last else f"{first} to {last}"
    return [f"{count_of(len(names))} of {when}: {', '.join(names[:MOST_NAMED])}{more}, from {files}"]


def age_notes(runs: Sequence[CalibrationRun], today: str) -> list[str]:
    """That the newest of served runs is old, where it is, and what is left of it."""
    age = months(today) - months(max(run.date for run in runs))
    if age < OLD or runs[0].key.mode == TRAINING:
        return []
    return [f"the newest run is {age:.0f} months old: {left_after(age)}"]


def contradiction_note(contradiction: Contradiction) -> str:
    """That a run and the others of its deployment exclude each other."""
    rest = ", ".join(contradiction.rest[:3]) + (f" and {len(contradiction.rest) - 3} more" if len(contradiction.rest) > 3 else "")
    what = f"its {NAMES[contradiction.quantity]} is {times(contradiction.ratio, 3)} times what they say"
    return f"run {contradiction.run} contradicts {rest}: {what} ({contradiction.deviations:.1f} standard deviations); intervals are wider"

"""Numbers of a fit: log-normal priors, fitted values with standard errors, widths of the 90 % intervals, and data/efficiency.toml."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from headway.core import catalog
from headway.core.errors import BadFile
from headway.core.quantity import known
from headway.evidence.fit.statistics import cluster_weights, quantile, t_factor
from headway.performance.achieved import KERNELS, Efficiencies, entries, kernel_sections, kind_of

INTERVAL = "interval"
UNSAID = {"value": 0.0, "unit": "", "error": 0.0, "rows": 0, "range": "stated", "meaning": "", "source": "user's file", "date": "undated"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedNumbers:
    """A fitted number of data/efficiency.toml."""

    section: str  # class.family.dtype
    key: str
    value: float
    unit: str
    error: float  # one standard error, in `unit`
    rows: int
    range: str  # scope of the measurements behind the fit
    meaning: str
    source: str = "measurements"
    date: str = "undated"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRow:
    """Errors of the predictions of one group: |ln(predicted/measured)| and bias."""

    kind: str  # operator class
    family: str
    dtype: str
    scope: str  # "in sample", or the group left out of the fit
    rows: int
    median: float
    p90: float
    bias: float  # median of ln(predicted/measured)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFit:
    """Result of the kernel fit: numbers, and the table of errors."""

    parameters: tuple[FittedNumbers, ...]
    errors: tuple[ErrorRow, ...]


def line(number: FittedNumbers) -> str:
    """A fitted number as a line of TOML."""

    def short(value: float, digits: int) -> str:
        text = repr(float(f"{value:.{digits}g}"))
        return text if "inf" not in text else "inf"

    texts = {"range": number.range, "meaning": number.meaning, "source": number.source, "date": number.date, "kind": "fitted"}
    words = ", ".join(f"{key} = {quoted(text)}" for key, text in texts.items())
    figures = f"value = {short(number.value, 4)}, unit = {quoted(number.unit)}, error = {short(number.error, 2)}, rows = {number.rows}"
    return f"{number.key} = {{ {figures}, {words} }}"


def quoted(text: str) -> str:
    """Text as a TOML basic string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def write_efficiency(path: Path, fitted: tuple[FittedNumbers, ...], head: str, keep_other_sections: bool = True) -> None:
    """Write numbers to `path`; `keep_other_sections` retains classes of the old file that `fitted` does not contain.

    Numbers of a class belong together, so that one new number of it drops all old ones; intervals count one by one.
    """
    kinds, places = {kind_of(number.section) for number in fitted}, {(number.section, number.key) for number in fitted}
    retained = [
        number
        for number in (read_efficiency(path) if keep_other_sections else ())
        if (number.section, number.key) not in places and ((kind := kind_of(number.section)) not in kinds or kind == INTERVAL)
    ]
    blocks = [head.rstrip("\n")] if head else []
    all_numbers = (*fitted, *retained)
    sections = dict.fromkeys(number.section for number in all_numbers)
    for section in sections:
        blocks.append("\n".join([*_heading(section, sections), *(line(number) for number in all_numbers if number.section == section)]))
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


def _heading(section: str, present: Collection[str]) -> list[str]:
    """The line that opens a section; for a class of kernels also where a number that is not in the section is looked for."""
    kind, *family_and_form = section.split(".")
    if kind not in KERNELS or len(family_and_form) < 2:
        return [f"[{section}]"]
    family, form = family_and_form[0], ".".join(family_and_form[1:])
    fallbacks = [name for name in dict.fromkeys(kernel_sections(kind, family, form)) if name in present and name != section]
    return [f"[{section}]", *([f"# what is not here is in {', then '.join(fallbacks)}"] if fallbacks else [])]


def read_efficiency(path: Path) -> tuple[FittedNumbers, ...]:
    """All numbers of the file, in file order; empty if there is no file. A file written by hand may give values alone."""
    numbers = []
    for section, key, entry in entries(catalog.read(path), path) if path.exists() else ():
        values = {name: entry.get(name, default) for name, default in UNSAID.items()}
        for name, value in values.items():
            wants = str if isinstance(UNSAID[name], str) else int | float
            if isinstance(value, bool) or not isinstance(value, wants):
                raise BadFile(path, f"{section}.{key}: got {name} {value!r}; wants {'text' if wants is str else 'a number'}")
        numbers.append(FittedNumbers(section=section, key=key, **values))
    return tuple(numbers)


DRAWS = 100  # bootstrap draws of the sources
KEYS = ("decode", "prefill", "tpot", "ttft", "offline")
ALIKE = (("decode", "prefill", "tpot", "offline"), ("ttft",))  # times of steps, and waits: errors of like size
NARROWEST, MOST_FREEDOM = 1e-3, 100.0
WIDTH_OF = {"ttft_split": "ttft"}  # too few clusters of split pools were measured for a width of their own
QUEUED = "queued"  # the circumstance of TTFT alone
SLOWER = "limited"  # the circumstance that widens the slow end alone: fewer seats than predicted make nothing faster
WIDER = ("unmeasured", "foreign", "experts", "limited", "guessed", "queued")
MEANINGS = {
    "decode": "half of the 90 % interval of a decode step, as a factor",
    "prefill": "half of the 90 % interval of a prefill, as a factor",
    "tpot": "half of the 90 % interval of TPOT under load, as a factor",
    "ttft": "half of the 90 % interval of TTFT under load, as a factor",
    "offline": "half of the 90 % interval of saturated throughput, as a factor",
    "unmeasured": "that many times wider in the logarithm on chips whose kernels were not measured",
    "foreign": "and on platforms that engines were not first written for: neither NVIDIA's nor cards",
    "experts": "and for models with routed experts",
    "limited": "and, towards slower alone, by the share of the seats that is taken: how many the KV cache has room for is uncertain",
    "guessed": "and for measured rows whose layout is not stated",
    "queued": "and, for TTFT alone, by the share of it that other users add to a request's own; in full for users of split pools",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutResiduals:
    """Residuals ln(predicted / measured) of rows that the fit had not seen, and circumstances that may widen their interval."""

    key: Any
    error: Any
    source: Any  # of rows that err together, which count once: a model on a chip with an engine
    wider: dict[str, Any]  # per circumstance of WIDER: how far it applies to each row, 0 to 1
    slower: Any  # whether each row was measured slower than predicted
    few: bool = False  # whether few clusters were measured, which makes an interval wider

    def where(self, keep: np.ndarray) -> HeldOutResiduals:
        """Rows where `keep` is true."""
        wider = {name: holds[keep] for name, holds in self.wider.items()}
        return replace(self, key=self.key[keep], error=self.error[keep], source=self.source[keep], wider=wider, slower=self.slower[keep])


def widths(samples: HeldOutResiduals) -> tuple[FittedNumbers, ...]:
    """Half-width of the 90 % interval per quantity, and its growth per circumstance; errors by bootstrap over sources, then over rows."""
    names, random = np.unique(samples.source), np.random.default_rng(0)
    draws: dict[str, list[float]] = {}
    for _ in range(DRAWS):
        members = [np.flatnonzero(samples.source == name) for name in random.choice(names, len(names))]
        rows = np.concatenate([random.choice(places, len(places)) for places in members])
        for name, value in width_factors(samples.where(rows)).items():
            draws.setdefault(name, []).append(value)
    counts = {key: int((samples.key == key).sum()) for key in KEYS} | {name: int(samples.wider[name].sum()) for name in WIDER}
    return tuple(
        FittedNumbers(
            section="interval.other", key=name, value=value, unit="", error=float(np.std(draws[name])) if name in draws else 0.0,
            rows=counts[name] or len(samples.error), range="rows left out of the fit, by source; docs/accuracy.md",
            meaning=MEANINGS[name], source="published serving runs, docs/accuracy.md", date=DATE,
        )
        for name, value in width_factors(samples).items()
    )  # fmt: skip


def width_names(keys: Iterable[str]) -> Any:
    """Names of the widths that hold quantities with these keys."""
    return np.array([WIDTH_OF.get(str(key), str(key)) for key in keys], dtype=str)


def width_factors(samples: HeldOutResiduals) -> dict[str, float]:
    """Width per quantity and growth per circumstance, rows that err together counted once in each quantity."""
    names = np.char.add(np.char.add(samples.key.astype(str), "|"), samples.source.astype(str))
    samples = replace(samples, key=width_names(samples.key))
    weight, size = cluster_weights(names), np.abs(samples.error)
    growth: dict[str, float] = dict.fromkeys(WIDER, 1.0)
    base: dict[str, float] = {}
    for _ in range(10):  # quantile regression of the logarithms by coordinate descent: one circumstance at a time
        scale = _scale(samples, growth)
        base = {key: quantile((size / scale)[samples.key == key], weight[samples.key == key]) for key in KEYS if (samples.key == key).any()}
        base_widths = np.array([base[key] for key in samples.key])
        for name in WIDER:
            extent, other_scale = np.asarray(samples.wider[name], dtype=float), _scale(samples, {**growth, name: 1.0})
            rows = extent > 0
            if rows.any():
                logs = np.log(np.maximum(size / base_widths / other_scale, NARROWEST)[rows]) / extent[rows]
                growth[name] = max(1.0, float(np.exp(quantile(logs, (weight * extent)[rows]))))
    half = pooled_widths(base, {key: len(np.unique(samples.source[samples.key == key])) for key in base}) if samples.few else base
    return {key: float(np.exp(value)) for key, value in half.items()} | growth


LEAST_KINDS = 4  # kinds of chip without measured kernels


def unseen_kind(samples: HeldOutResiduals, kinds: np.ndarray, intervals: Sequence[FittedNumbers]) -> FittedNumbers:
    """Growth on chips whose kernels were not measured: of intervals that hold 90 % of them where no chip of their kind was in the fit.

    Each kind counts once, as the next chip may be of another; Student's t allows for how few kinds there were. Fewer than
    LEAST_KINDS say nothing about others: the growth then is that of the rows.
    """
    value = {line.key: line.value for line in intervals}
    unseen = np.asarray(samples.wider["unmeasured"], dtype=float) > 0
    rows, labels = samples.where(unseen), kinds[unseen]
    extents = rows.wider | {SLOWER: rows.wider[SLOWER] * rows.slower, "unmeasured": np.zeros(len(labels))}
    scale = _scale(replace(rows, wider=extents), {name: value[name] for name in WIDER})
    size = np.abs(rows.error) / scale / np.log([value[key] for key in width_names(rows.key)])
    names = np.char.add(np.char.add(rows.key.astype(str), "|"), rows.source.astype(str))
    weight = np.zeros(len(labels))
    for kind in np.unique(labels):
        clusters = cluster_weights(names[labels == kind])
        weight[labels == kind] = clusters / clusters.sum()

    def growth(keep: np.ndarray) -> float:
        count = len(np.unique(labels[keep]))
        return max(1.0, quantile(size[keep], weight[keep]) * t_factor(count))

    old = next(line for line in intervals if line.key == "unmeasured")
    if len(np.unique(labels)) < LEAST_KINDS:
        return old
    without = [growth(labels != kind) for kind in np.unique(labels)]
    where = "kinds of chip without measured kernels, each left out of the fit and counted once; docs/accuracy.md"
    return replace(old, value=growth(labels == labels), error=float(np.std(without)), rows=len(labels), range=where)


def pooled_widths(halves: dict[str, float], kinds: dict[str, int]) -> dict[str, float]:
    """Half-widths in the logarithm, with their variances shrunk to those of quantities alike and a t quantile for what is then known.

    The logarithm of a variance of `f` degrees of freedom scatters by 2 / f of itself; what those alike scatter beyond it (DerSimonian
    and Laird 1986) is 2 over the degrees of freedom that their mean stands for (Smyth 2004, Stat. Appl. Genet. Mol. Biol. 3(1), 3).

    >>> halves = pooled_widths({"tpot": 0.4, "decode": 0.36, "offline": 1.0}, {"tpot": 40, "decode": 40, "offline": 2})
    >>> {key: round(half, 2) for key, half in halves.items()}
    {'decode': 0.38, 'tpot': 0.39, 'offline': 0.4}
    """
    pooled: dict[str, float] = {}
    for alike in ALIKE:
        keys = [key for key in alike if key in halves]
        if not keys:
            continue
        freedom = np.array([max(kinds[key] - 1, 1) for key in keys], dtype=float)
        logs, weights = 2 * np.log(np.maximum([halves[key] for key in keys], NARROWEST)), freedom / 2
        mean = float(np.average(logs, weights=weights))
        excess = float(weights @ (logs - mean) ** 2) - (len(logs) - 1)
        apart = max(excess, 0.0) / max(float(weights.sum() - weights @ weights / weights.sum()), NARROWEST)
        prior = 0.0 if len(logs) == 1 else min(2 / max(apart, 2 / MOST_FREEDOM), MOST_FREEDOM)
        variance = (prior * np.exp(mean) + freedom * np.exp(logs)) / (prior + freedom)
        for key, square, degrees in zip(keys, variance, freedom, strict=True):
            pooled[key] = float(np.sqrt(square)) * t_factor(1 + int(degrees + prior))
    return pooled


def _scale(samples: HeldOutResiduals, growth: dict[str, float]) -> Any:
    scale = np.ones(len(samples.error))
    for name, factor in growth.items():
        scale = scale * factor ** np.asarray(samples.wider[name], dtype=float)
    return scale


DATE = "2026-11"
Place = tuple[str, str]  # section and key of a number


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorNumber:
    """A number with a log-normal prior: one standard deviation is a factor exp(spread); fixed if `spread` is 0."""

    section: str
    key: str
    prior: float  # times the value of the same key in the section `parent`, if any
    spread: float = 0.0
    unit: str = ""
    meaning: str = ""
    most: float = math.inf
    parent: str = ""

    @property
    def place(self) -> Place:
        """Section and key."""
        return self.section, self.key

    def at(self, z: float, base: float = 1.0) -> float:
        """Value at `z` standard deviations from the prior; `base` is the parent's value."""
        return min(self.prior * base * math.exp(self.spread * z), self.most)


def free_places(numbers: Iterable[PriorNumber]) -> list[Place]:
    """Places of the numbers that a fit moves."""
    return [number.place for number in numbers if number.spread]


def values_at(numbers: Sequence[PriorNumber], moves: Mapping[Place, float]) -> dict[Place, float]:
    """Values of all numbers, parents first; `moves` in standard deviations of the priors."""
    values: dict[Place, float] = {}
    for number in numbers:
        values[number.place] = number.at(moves.get(number.place, 0.0), values[number.parent, number.key] if number.parent else 1.0)
    return values


def overlaid(
    sections: Mapping[str, Mapping[str, Any]], numbers: Sequence[PriorNumber | FittedNumbers], values: Iterable[float]
) -> Efficiencies:
    """Efficiencies of `sections` with these values of numbers."""
    table = {name: dict(section) for name, section in sections.items()}
    for number, value in zip(numbers, values, strict=True):
        fact = known(value, f"{number.section}.{number.key}", number.unit, "fitted", number.meaning)
        table.setdefault(number.section, {})[number.key] = fact
    return Efficiencies(table)


def fitted_lines(
    numbers: Sequence[PriorNumber], values: Mapping[Place, float], errors: Mapping[Place, float], rows: int, what: str, runs: str
) -> tuple[FittedNumbers, ...]:
    """Lines of a file of fitted numbers; `errors` of their logarithms: without one a number was stated, not fitted to `runs`."""
    lines = []
    for number in numbers:
        value, error = values[number.place], errors.get(number.place, 0.0)
        source = f"published {runs} runs, docs/accuracy.md" if error else "stated, docs/decisions.md"
        lines.append(FittedNumbers(
            section=number.section, key=number.key, value=value, unit=number.unit, error=value * error, rows=rows if error else 0,
            range=what if error else "fixed", meaning=number.meaning, source=source, date=DATE,
        ))  # fmt: skip
    return tuple(lines)

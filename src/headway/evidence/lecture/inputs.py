"""A claim with other inputs: quantities with units, lists and ranges as axes, chips, systems and models as values; and its curve.

A curve goes along the input that moves most figures. Words, counts and shares of inputs are data (data/lecture/inputs.toml); whether an
input moves a figure is found by a small change of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from headway.core import schema, units
from headway.core.errors import BadValue, HeadwayError, UnknownName
from headway.core.listing import format_value
from headway.core.quantity import known, user_input
from headway.core.trace import record
from headway.evidence.claims.claim import Claim, Parts, claims
from headway.evidence.claims.rows import look_up, recompute
from headway.evidence.lecture.chapters import document
from headway.hardware.chip import chip
from headway.hardware.system import system
from headway.models.config import model

SUBJECTS = {"model": ("model", "block", "kv"), "chip": ("chip", "domain"), "system": ("domain", "system")}  # word -> kinds of fact it sets
MOST_CASES = 1000
PROBES = (2.0, 0.5, 1.1)  # times an input's value, to see whether it counts; of one that is zero, its value
SAME = 1e-9  # relative difference of figures that only rounding tells apart
MOST_NAMED = 10  # inputs that an error lists
MOST_SEATS = 10_000  # of a train: its queue is solved state by state
# Inputs that a claim's check runs one by one: whole numbers, and the most that answer at once and exactly.
RUNS = {("CR-02", "layers"): 64, ("CR-07", "rounds"): 32, ("CR-07", "flips"): 1_000_000}
# Units that text is not read in: the unit to read, and the factor to the input's.
READ_AS = {"USD/Mtok": ("USD/token", 1e6), "byte/token": ("byte", 1.0), "flop/token": ("flop", 1.0), "m": ("", 1.0)}
PER_MTOK = {"USD/Mtok": 1.0, "USD/token": 1e-6}  # a bare price of tokens is in USD per million


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InputCase:
    """One combination of changed inputs: labels as the user typed them, and values for the recomputation."""

    labels: dict[str, Any]
    values: dict[str, Any]


def cases(claim: Claim, changes: Sequence[str]) -> list[InputCase]:
    """Every combination of the changes NAME=VALUE of a claim's inputs."""
    if not claim.inputs:
        raise BadValue("--with", " ".join(changes), f"a claim with inputs; {claim.id} has none, because no law gives it")
    axes = [list(_axis(claim, text)) for text in changes]
    names = [name for axis in axes for name in axis[0][0]]
    for name in names:
        if names.count(name) > 1:
            raise BadValue("--with", " ".join(changes), f"{name} once; several values have commas: {name}=1,2")
    count = math.prod(len(axis) for axis in axes)
    if count > MOST_CASES:
        raise BadValue("--with", f"{count} combinations", f"at most {MOST_CASES}")
    combinations = []
    for members in itertools.product(*axes):
        labels: dict[str, Any] = {}
        values: dict[str, Any] = {}
        for label, changed in members:
            labels |= label
            values |= changed
        combinations.append(InputCase(labels=labels, values=values))
    return combinations


def figures(claim: Claim, case: InputCase) -> Parts:
    """Figures of a claim with other inputs; a combination that has no answer is wrong input."""
    try:
        with record(), np.errstate(all="ignore"):
            parts = recompute(claim, case.values)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise BadValue("--with", _text(case), f"inputs for which {claim.id} has an answer ({error})") from None
    if parts is None:
        raise BadValue("--with", _text(case), f"a claim that is computed; {claim.id} is not")
    if any(math.isnan(float(value)) for value in parts.values()):
        raise BadValue("--with", _text(case), f"inputs for which {claim.id} has an answer")
    return parts


def idle_inputs(claim: Claim, combinations: Sequence[InputCase]) -> tuple[str, ...]:
    """Changed inputs without which every figure stays as it is; BadValue for one of which no value moves a figure."""
    names = [name for name in combinations[0].labels if not any(_moves(claim, case, name) for case in combinations)]
    changed = {name: [key for case in combinations for key, value in _values(claim, case, name) if value != claim.inputs[key]]
               for name in names}  # fmt: skip
    for name in names:
        if changed[name] and not any(_can_move(claim, case, key) for case in combinations[:1] for key in changed[name]):
            able = [key for key in claim.inputs if _can_move(claim, combinations[0], key)]
            more = f" and {len(able) - MOST_NAMED} more" if len(able) > MOST_NAMED else ""
            text = f"an input that moves a figure of {claim.id}: {', '.join(able[:MOST_NAMED])}{more}; {name} moves none"
            raise BadValue("--with", _text(combinations[0], name), text if able else f"no --with: no input moves a figure of {claim.id}")
    return tuple(name for name in names if changed[name])


def _values(claim: Claim, case: InputCase, name: str) -> list[tuple[str, Any]]:
    """Inputs that a label sets, with their values: itself, or the facts of a model, chip or system."""
    return [(key, value) for key, value in case.values.items() if key == name or (name in SUBJECTS and key in _paths_of(claim, name))]


def _moves(claim: Claim, case: InputCase, name: str) -> bool:
    """Whether a figure of a case would be another one without one of its changes."""
    names = [key for key, _ in _values(claim, case, name)]
    rest = {key: value for key, value in case.values.items() if key not in names}
    return _differ(figures(claim, case), figures(claim, InputCase(labels=case.labels, values=rest)))


def _can_move(claim: Claim, case: InputCase, name: str) -> bool:
    """Whether some value of an input moves a figure of a case."""
    present = case.values.get(name, claim.inputs[name])
    plain = figures(claim, case)
    for value in [float(present) * factor for factor in PROBES] if present else PROBES:
        changed = InputCase(labels=case.labels, values=case.values | {name: user_input(value, name, claim.inputs[name].unit)})
        with contextlib.suppress(HeadwayError):
            if _differ(figures(claim, changed), plain):
                return True
    return False


def _differ(parts: Parts, plain: Parts) -> bool:
    return any(not math.isclose(float(parts[name]), float(plain[name]), rel_tol=SAME) for name in parts)


def _text(case: InputCase, *names: str) -> str:
    """Labels of a case as typed, all or the named ones."""
    labels = {name: case.labels[name] for name in names or case.labels}
    return " ".join(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in labels.items())


def type_of(claim: Claim, name: str, value: float) -> Any:
    """A value in place of an input, with the input's unit."""
    return user_input(value, name, claim.inputs[name].unit)


def _axis(claim: Claim, text: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Members of one change: label, and the inputs that it sets."""
    name, equals, value = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals or not value.strip():
        example, usual = next(iter(claim.inputs.items()))
        raise BadValue("--with", text, f"NAME=VALUE, such as {example}={float(usual):g}")
    if name in claim.inputs:
        yield from _input_axis(claim, name, value)
    elif name in SUBJECTS:
        for subject in value.split(","):
            yield {name: subject.strip()}, _facts(claim, name, subject.strip())
    else:
        names = [*claim.inputs, *(word for word in SUBJECTS if _paths(claim, word))]
        more = f" and {len(names) - MOST_NAMED} more (headway lecture {claim.id})" if len(names) > MOST_NAMED else ""
        raise UnknownName(f"input of {claim.id}", name, names, "inputs: " + ", ".join(names[:MOST_NAMED]) + more)


def _input_axis(claim: Claim, name: str, text: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Quantities of an input's unit, or names of chips, systems and models that have this fact.

    A name begins with a letter or is a count of chips such as 8xh100-sxm, and so is no number.
    """
    first = text.strip().lower().split(",")[0]
    if name in claim.today and first not in ("nan", "inf") and re.match(r"[a-z]|\d+x[a-z]", first):
        for subject in text.split(","):
            yield {name: subject.strip()}, {name: _fact_of(claim.today[name], subject.strip(), f"--with {name}")}
        return
    for value in _quantities(claim, name, text):
        yield {name: float(value)}, {name: value}


def _quantities(claim: Claim, name: str, text: str) -> list[Any]:
    present = claim.inputs[name]
    unit, factor = READ_AS.get(present.unit, (present.unit, 1.0))
    text = text.replace("/token", "") if present.unit in ("byte/token", "flop/token") else text
    text = text.strip().removesuffix("m") if present.unit == "m" else text
    if present.unit in PER_MTOK and not any(mark in text for mark in ("$", "USD", "usd")):
        unit, factor = "", PER_MTOK[present.unit]
    runs = RUNS.get((claim.id, name))
    most = runs or (MOST_SEATS if name.endswith("seats") else math.inf)
    field = schema.Field(unit, low=0, high=most, open_low=float(present) != 0, integer=runs is not None)
    values, _ = schema.axis(text, field, f"--with {name}")
    members = values if isinstance(values, tuple) else (values,)
    return [user_input(float(value) if factor == 1.0 else float(value) * factor, name, present.unit) for value in members]


# -- names as values ------------------------------------------------------------------------------------------------------------


def _paths(claim: Claim, word: str) -> dict[str, str]:
    """Inputs of a claim whose catalogue fact is of the kinds that a word sets."""
    return {name: path for name, path in claim.today.items() if path.split()[0] in SUBJECTS[word]}


def _paths_of(claim: Claim, word: str) -> dict[str, str]:
    """Inputs that a word sets: a chip stands for a system where a claim has no fact of a chip."""
    return _paths(claim, word) or (_paths(claim, "system") if word == "chip" else {})


def _facts(claim: Claim, word: str, subject: str) -> dict[str, Any]:
    """Facts of a model, chip or system for the inputs of a claim that are of one."""
    paths = _paths_of(claim, word)
    if not paths:
        fitting = ", ".join(kind for kind in SUBJECTS if _paths(claim, kind))
        raise BadValue(
            "--with", f"{word}={subject}", f"an input of {claim.id}; no {word} is in it" + (f", but {fitting}" if fitting else "")
        )
    names = {path.split()[1] for path in paths.values()}
    if len(names) > 1:
        raise BadValue("--with", f"{word}={subject}", f"one input of {claim.id}, which has several: {', '.join(paths)}")
    if word == "chip" and not subject[:1].isdigit() and any(path.split()[0] == "domain" for path in paths.values()):
        subject = f"1x{subject}"
    return {name: _fact_of(path, subject, f"--with {word}") for name, path in paths.items()}


def _fact_of(path: str, subject: str, field: str) -> Any:
    """Fact of another subject at a path of the catalogue; an error that names what would work, of an unknown name the catalogue's own."""
    kind, _, key = path.split()
    is_model = kind in SUBJECTS["model"]
    find = model if is_model else chip if kind == "chip" else system if kind in ("domain", "system") else None
    if find is None:
        raise HeadwayError(f"--with: {subject!r} cannot stand for a {kind} here; give the quantity itself")
    find(subject)
    value = look_up(f"{kind} {subject} {key}")
    if value is None:
        raise BadValue(field, subject, f"a {'model' if is_model else 'chip or system'} with {key.replace('_', ' ')}")
    return known(value, f"{subject} {key}", getattr(value, "unit", ""), "input", f"catalogue, {subject}, given by the user", "now")


def lecture_figures(claim: Claim) -> Mapping[str, float]:
    """Figures of a claim with its own inputs."""
    parts = recompute(claim)
    return {name: float(value) for name, value in (parts or {}).items()}


QUANTITY = re.compile(r"(?<![\w./^])(\d[\d,]*(?:\.\d+)?)(?: ?([a-zA-Z%][\w/%]*))?(?![/^-])")  # 72, 200 k, 80 %, 100 GB/s
LONGEST_UNIT = 2  # letters of one that stands alone: a longer word beside a number is what is counted
COUNT_UNITS = ("", "token")  # units of what is counted, whose numbers may stand without one


def figure_names(claim: Claim, combinations: Sequence[InputCase]) -> dict[str, str]:
    """Names of figures with the inputs of these cases in place of the lecture's; … for one that takes several values.

    >>> one, two = ([InputCase(labels={}, values={"chips": user_input(n, "chips")}) for n in counts] for counts in ([64.0], [64.0, 96.0]))
    >>> [figure_names(claims()["MOE-03"], case)["experts per chip on 72"] for case in (one, two)]
    ['experts per chip on 64', 'experts per chip on …']
    """
    moves, names = moving(claim.id), {}
    for name in figures(claim, combinations[0]):
        words = name
        for key in combinations[0].values:
            usual = float(claim.inputs[key]) if name in moves.get(key, ()) else math.nan
            equals = [peer for peer in moves if name in moves[peer] and float(claim.inputs[peer]) == usual]
            if equals and len(moves[key]) == min(len(moves[peer]) for peer in equals):  # of several, the one that is about fewest figures
                values = [float(case.values[key]) for case in combinations]
                words = QUANTITY.sub(functools.partial(_of_cases, claim.inputs[key], values), words)
        names[name] = words
    return names if len({*names.values()}) == len(names) else {name: name for name in names}


def _of_cases(usual: Any, values: Sequence[float], match: re.Match[str]) -> str:
    """A quantity in the name of a figure with the value of an input in place of the lecture's, where it is that of the input."""
    number, word = match[1].replace(",", ""), match[2] or ""
    unit = "token" if len(word) == 1 and usual.unit.startswith("token") else usual.unit  # 50 M tokens/s: what is counted follows
    texts = {f"{100 * value:.3g} %" if word == "%" else format_value(value, unit) for value in values}
    text = texts.pop() if len(texts) == 1 else "…"
    is_count = usual.unit in COUNT_UNITS and (not word or (len(word) > LONGEST_UNIT and word.isalpha()))
    for end in (*([word, word.lower()] if word else []), *([""] if is_count else [])):
        with contextlib.suppress(HeadwayError):
            if math.isclose(units.parse(f"{number} {end}".strip(), usual.unit), float(usual), rel_tol=SAME):
                return text if end or not word else f"{text} {word}"
    return match[0]


NUDGE = 1.07  # factor on an input, to see which figures it changes
SPREAD = 16.0  # a curve goes from the lecture's value over this to the value times this
STEPS = 64  # of an axis
MOST_SHARE, SHARE_STEP = 0.98, 0.02
MOST_FIGURES = 0.65  # a curve shows a claim if its input moves at least so many of the figures that move at all
DIGITS = 4
CAPITALS = {"hbm": "HBM", "bw": "bandwidth", "kv": "KV", "mfu": "MFU", "ddr": "DDR", "bf16": "bf16", "usd": "cost", "dsv3": "DeepSeek-V3",
            "up": "scale-up bandwidth", "out": "scale-out bandwidth"}  # fmt: skip
CHIP = re.compile(r"(gb|b|h|a)\d{2,3}$")
TPU = re.compile(r"v\d[ep]?$")


@functools.cache
def _about() -> dict[str, Any]:
    return document("inputs")


def input_words(claim: Claim, name: str) -> str:
    """An input of a claim in words.

    >>> input_words(claims()["RB-10"], "total"), input_words(claims()["TS-03"], "h100_bw")
    ('total parameters', 'H100 bandwidth')
    """

    def part_words(part: str) -> str:
        if CHIP.match(part):
            return part.upper()
        return f"TPU {part}" if TPU.match(part) else CAPITALS.get(part, part)

    words = _about()["words"]
    text = words.get(claim.id, {}).get(name) or words.get(name)
    return text if isinstance(text, str) else " ".join(part_words(part) for part in name.split("_"))


@functools.cache
def moving(claim_id: str) -> dict[str, list[str]]:
    """Inputs that change a figure of the claim, each with those figures."""
    claim = claims()[claim_id]
    base = _figures(claim, {})
    changed: dict[str, list[str]] = {}
    for name, value in claim.inputs.items():
        if (claim.id, name) in RUNS or float(value) <= 0 or not base:
            continue
        nudged = _figures(claim, {name: type_of(claim, name, float(value) * NUDGE)})
        names = [figure for figure in base if figure in nudged and abs(nudged[figure] - base[figure]) > 1e-9 * abs(base[figure])]
        if names:
            changed[name] = names
    return changed


def _figures(claim: Claim, values: dict[str, Any]) -> dict[str, float]:
    try:
        parts = figures(claim, InputCase(labels={}, values=values))
    except BadValue:
        return {}
    return {name: float(value) for name, value in parts.items()}


def axis(claim: Claim) -> str:
    """The input that the claim's curve goes along; "" where no input moves a figure."""
    present = moving(claim.id)
    preferred = _about()["along"].get(claim.id, "")
    if preferred in present:
        return str(preferred)
    free = [name for name in present if name not in _about()["constants"]] or list(present)
    return max(free, key=lambda name: len(present[name]), default="")


def is_curve(claim: Claim) -> bool:
    """Whether one curve shows the claim: its input moves most of the figures that move at all."""
    present, along = moving(claim.id), axis(claim)
    is_preferred = along == _about()["along"].get(claim.id)
    if not along or (along in _about()["constants"] and not is_preferred):
        return False
    movable = {figure for names in present.values() for figure in names}
    return is_preferred or len(present[along]) >= MOST_FIGURES * len(movable)


def is_count(name: str) -> bool:
    """Whether an input is a whole number."""
    return name in _about()["counts"]


def ends(name: str, value: float) -> tuple[float, float, float]:
    """Lowest and highest value of an input's curve, and the step between points; 0 where they are spaced by a factor."""
    if name in _about()["shares"] and value <= 1:
        return SHARE_STEP, 1.0 if value == 1 else MOST_SHARE, SHARE_STEP
    highest = min(value * SPREAD, MOST_SEATS) if name.endswith("seats") else value * SPREAD
    if is_count(name) and value >= 1:
        step = float(max(1, math.floor(value * SPREAD / STEPS)))
        return step, highest, step
    return value / SPREAD, highest, 0.0


def span(claim: Claim, name: str) -> str:
    """The range of an input's curve, as the command line takes it.

    >>> span(claims()["PP-07"], "stages"), span(claims()["RB-10"], "total")
    ('1..64+1', '41.94B..10.74T*1.09')
    """
    value = claims()[claim.id].inputs[name]
    low, high, step = ends(name, float(value))
    if step:
        return f"{low:g}..{high:g}+{step:g}"
    return f"{word(low, value.unit)}..{word(high, value.unit)}*{SPREAD ** (2 / STEPS):.3g}"


def word(value: float, unit: str) -> str:
    """A value as the command line takes it; prices of tokens are bare numbers in USD per million."""
    if unit in PER_MTOK:
        return f"{value / PER_MTOK[unit]:.{DIGITS}g}"
    return units.show(float(f"{value:.{DIGITS}g}"), unit, DIGITS).replace(" ", "")

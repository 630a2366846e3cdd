"""Accuracy targets, and the generated parts of docs/accuracy.md and README.md (text between markers)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headway.core.errors import BadFile
from headway.core.units import show
from headway.evidence import class_pages
from headway.evidence.fit.class_scores import ClassScore
from headway.evidence.fit.crossval import NumberShift, floor_residuals
from headway.evidence.fit.residuals import ORDER, SLACK, ErrorGroup, Residual, grouped, stats, worst
from headway.evidence.fit.result import ErrorRow

LEAST_COVERED, MOST_COVERED, EACH_COVERED = 0.85, 0.95, 0.75
FEW = 5  # measurements a group needs before its coverage is judged
ONE_STEP = ("decode", "prefill")  # kinds of row that measure single steps, without a loop of requests around them


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Largest error allowed for one measure; None: no limit."""

    measure: str
    median: float
    aim: float | None
    p90: float | None
    width: float | None


TARGETS = (
    Target(measure="served TPOT", median=0.20, aim=0.15, p90=0.5, width=2.5),
    Target(measure="TTFT", median=0.40, aim=None, p90=None, width=None),
    Target(measure="decode", median=0.15, aim=0.10, p90=None, width=1.8),
    Target(measure="prefill", median=0.22, aim=0.15, p90=None, width=None),
    Target(measure="throughput", median=0.22, aim=0.18, p90=0.65, width=None),
)


class TargetResult(NamedTuple):
    """One accuracy target: the limit, the measured value, and whether it is met."""

    what: str
    limit: str
    result: str
    met: bool


def check_targets(residuals: Sequence[Residual]) -> list[TargetResult]:
    """All accuracy targets checked against cross-validated residuals."""
    error_checks = [
        line for target in TARGETS for line in _errors(target, [residual for residual in residuals if residual.measure == target.measure])
    ]
    return [*error_checks, *_coverage(residuals), *_floors(residuals)] if residuals else []


def _errors(target: Target, residuals: Sequence[Residual]) -> Iterable[TargetResult]:
    if not residuals:
        return
    s, aim = stats(residuals), f" (aim {target.aim:.0%})" if target.aim else ""
    name = target.measure
    yield TargetResult(what=f"{name}, median error", limit=f"<= {target.median:.0%}{aim}", result=f"{s.median_error:.1%}",
                  met=s.median_error <= target.median)  # fmt: skip
    if target.p90:
        yield TargetResult(
            what=f"{name}, p90 of abs ln ratio", limit=f"<= {target.p90:g}", result=f"{s.p90_log:.3f}", met=s.p90_log <= target.p90
        )
    if target.width:
        yield TargetResult(what=f"{name}, median hi/lo", limit=f"<= {target.width:g}", result=f"{s.width:.2f}", met=s.width <= target.width)


def _coverage(residuals: Sequence[Residual]) -> Iterable[TargetResult]:
    share = stats(residuals).coverage
    limit = f"{LEAST_COVERED:.0%} to {MOST_COVERED:.0%}"
    yield TargetResult(
        what="coverage of all 90 % intervals", limit=limit, result=f"{share:.1%}", met=LEAST_COVERED <= share <= MOST_COVERED
    )
    for by, name in (("source", "source"), ("family", "chip family")):
        groups = covered(residuals, by)
        low = [f"{group} {coverage:.0%} of {n}" for group, coverage, n in groups if coverage < EACH_COVERED]
        result = (
            "; ".join(low) or f"all of {len(groups)} at least {min(coverage for _, coverage, _ in groups):.0%}" if groups else "no group"
        )
        limit = f">= {EACH_COVERED:.0%} (groups of {FEW} or more)"
        yield TargetResult(what=f"coverage within each {name}", limit=limit, result=result, met=not low)


def covered(residuals: Iterable[Residual], by: str) -> list[tuple[str, float, int]]:
    """Coverage of the 90 % intervals per value of the field `by`: name, share, size; groups below FEW are left out."""
    members_by_group: dict[str, list[Residual]] = {}
    for residual in residuals:
        members_by_group.setdefault(getattr(residual, by), []).append(residual)
    return [(name, stats(members).coverage, len(members)) for name, members in members_by_group.items() if len(members) >= FEW]


def _floors(residuals: Sequence[Residual]) -> Iterable[TargetResult]:
    plain_steps = [residual for residual in residuals if residual.reliability == "A" and residual.roofline == "yes"]
    yield _zero_check("measured A rows of plain steps (roofline=yes) faster than the floor", beyond_floor(plain_steps), len(plain_steps))
    single_steps = [residual for residual in residuals if residual.kind in ONE_STEP]
    faster_ids = [
        residual.id
        for residual in single_steps
        if (residual.floor / residual.predicted if residual.is_time else residual.predicted / residual.floor) > 1 + SLACK
    ]
    yield _zero_check("predictions of single steps below the floor", faster_ids, len(single_steps))


def beyond_floor(residuals: Iterable[Residual]) -> list[str]:
    """Ids of measurements faster than the roofline floor."""
    return [residual.id for residual in residuals if residual.limit_share > 1 + SLACK]


def _zero_check(what: str, ids: Sequence[str], of: int) -> TargetResult:
    examples = f": {', '.join(ids[:5])}" if ids else ""
    return TargetResult(what=what, limit="none", result=f"{len(ids)} of {of}{examples}", met=not ids)


def worst_groups(residuals: Sequence[Residual], least: int, count: int) -> list[tuple[str, str, Residual, float, int]]:
    """Groups (source, chip, engine, model class) with the largest median error: measure, name, an example, error and size."""
    members_by_group: dict[tuple[str, ...], list[Residual]] = {}
    for residual in residuals:
        members_by_group.setdefault((residual.measure, residual.source, residual.chip, residual.engine, residual.model_class), []).append(
            residual
        )
    groups = [
        (key[0], ", ".join(key[1:]), members[0], stats(members).median_error, len(members))
        for key, members in members_by_group.items()
        if len(members) >= least
    ]
    return sorted(groups, key=lambda line: -line[3])[:count]


PAGE, SUMMARY, LONG = "accuracy", "accuracy-summary", "accuracy-tables"  # names of the parts between markers
FIGURE, LONG_PAGE = "accuracy.png", "accuracy_serving.md"
LEAST = 5  # measurements that a group needs to be listed among the worst
MOST_NAMED = 10
TABLES = (("family", "chip family"), ("chip", "chip"), ("engine", "engine"), ("model_class", "class of model"), ("kind", "kind of row"))
HEAD = ("n", "median error", "p90 abs ln", "bias ln", "coverage", "hi/lo")

READ = (
    "How to read the tables. Median error: of |predicted / measured - 1|. p90 abs ln: 90th percentile of |ln(predicted / measured)|. Bias: "
    "median of ln(predicted / measured). Coverage: share of measurements within the 90 % interval. hi/lo: median width of that interval."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Data of the accuracy page."""

    residuals: Sequence[Residual]  # cross-validated: `fold` names the rows that the fit had not seen
    flat: Sequence[Residual]  # residuals of the flat model on these measurements
    kernels: Sequence[ErrorRow]
    rows: int  # rows of reliability A and B with a stated input length, scored or not
    predicted: int  # rows with a stated input length that have a prediction
    unstated: int  # rows whose input length is not stated
    command: str  # command that regenerates the page
    date: str
    shifts: Sequence[NumberShift] = ()  # numbers that one group decides
    models: Sequence[Residual] = ()  # residuals of single-source modes, predicted with whole models left out
    numbers: int = 0  # count of numbers fitted to the rows
    scores: Sequence[ClassScore] = ()  # of classes left out


def page(report: Report) -> str:
    """Part of docs/accuracy.md about times, rates and costs."""
    parts = [_start(report), *_class_parts(report), _fit_gain(report), f"![served TPOT, predicted against measured]({FIGURE})"]
    return "\n\n".join(part for part in parts if part)


def whole_page(report: Report) -> str:
    """Page and long tables in one, where the tables have no page of their own."""
    return f"{page(report)}\n\n{tables(report)}"


def tables(report: Report) -> str:
    """The long tables, which stand on a page of their own where there is one."""
    parts = [
        _folds(report), _targets(report), _by_source(report.residuals), _models(report.models),
        *(_by(report.residuals, field, name) for field, name in TABLES), _all_classes(report), _worst_groups(report.residuals),
        _worst_rows(report.residuals), _shifts(report), _kernels(report.kernels),
    ]  # fmt: skip
    return "\n\n".join(part for part in parts if part)


def _class_parts(report: Report) -> Iterable[str]:
    """Targets of classes left out."""
    if not report.scores:
        return
    checks = [TargetResult(*line) for line in class_pages.targets(report.scores, report.predicted / max(report.rows, 1))]
    yield f"### What holds on classes that the fit has not seen\n\n{class_pages.READ}"
    yield f"{sum(check.met for check in checks)} of {len(checks)} targets are reached.\n\n{target_table(checks, 'result')}"


def _folds(report: Report) -> str:
    """Table of each measure in each kind of fold."""
    if not report.scores:
        return ""
    head = ("measured", "left out, class by class", "n", "median", "coverage", "hi/lo", "worst class: median, bias, coverage, rows")
    return f"### Folds\n\n{class_pages.READ}\n\n{table(head, class_pages.fold_lines(report.scores))}"


def _all_classes(report: Report) -> str:
    if not report.scores:
        return ""
    head = ("measured", "left out", "class", "n", "median error", "bias ln", "coverage")
    return f"### Every class left out\n\n{class_pages.READ}\n\n{table(head, class_pages.class_lines(report.scores))}"


def summary(report: Report) -> str:
    """Accuracy summary of README.md: the error of each measure, what the fit buys, the coverage."""
    fitted, flat, floor = (_all(residuals) for residuals in (report.residuals, report.flat, floor_residuals(report.residuals)))
    head = ("measured", "n", "median error", "p90 abs ln", "in the 90 % interval", "flat efficiencies miss by", "roofline misses by")
    lines = [
        (name, f"{fitted[name].stats.n:,}", _share(fitted[name]), f"{fitted[name].stats.p90_log:.2f}", f"{fitted[name].stats.coverage:.0%}",
         _share(flat[name]), _share(floor[name]))
        for name in ORDER if name in fitted
    ]  # fmt: skip
    return f"{_folds_sentence(report.residuals)}\n\n{table(head, lines)}"


def inserted(document: str, name: str, text: str, path: str = "") -> str:
    """`document` with `text` between the markers called `name`."""
    start, end = (f"<!-- {name}: {what} -->" for what in ("generated, do not edit", "end"))
    head, marker, rest = document.partition(start)
    _, end_marker, tail = rest.partition(end)
    if not marker or not end_marker:
        raise BadFile(path or "the page", f"has no part between {start!r} and {end!r}")
    return f"{head}{start}\n\n{text.strip()}\n\n{end}{tail}"


# -- parts ------------------------------------------------------------------------------------------------------------------------


def _start(report: Report) -> str:
    rows = len({(residual.line, residual.id) for residual in report.residuals})
    share = report.predicted / report.rows if report.rows else 0.0
    provenance = f"Generated by `{report.command}` on {report.date}: {len(report.residuals):,} measurements of {rows:,} published rows"
    count = f"Of {report.rows:,} rows whose input length is stated, {report.predicted:,} are predicted ({share:.1%})"
    silent = f"of {report.unstated:,} more it is not stated and not guessed"
    return f"{provenance} of reliability A and B. {_folds_sentence(report.residuals)} {count}; {silent}.\n\n{READ}"


def _folds_sentence(residuals: Iterable[Residual]) -> str:
    """Sentence on the groups of rows left out of the fits."""
    folds = {residual.fold for residual in residuals}
    if not folds - {""}:
        return "**These rows were seen by the fit: nothing here is cross-validated.**"
    caveat = " Some rows were seen by the fit." if "" in folds else ""
    return f"Every row is predicted by a fit that has not seen its group: {len(folds - {''})} groups were left out in turn.{caveat}"


def target_table(checks: Iterable[tuple[str, str, str, bool]], name: str = "found") -> str:
    """Table of targets; `name` heads the column of what was measured."""
    return table(("what", "asked", name, "reached"), [(*texts, "yes" if met else "**no**") for *texts, met in checks])


def _targets(report: Report) -> str:
    checks = check_targets(report.residuals)
    sentence = f"{sum(check.met for check in checks)} of {len(checks)} are reached." if checks else "Nothing was measured."
    other_steps = [
        residual
        for residual in report.residuals
        if residual.kind in ONE_STEP and not (residual.reliability == "A" and residual.roofline == "yes")
    ]
    faster_ids = beyond_floor(other_steps)
    examples = f": {', '.join(faster_ids[:MOST_NAMED])}" if faster_ids else ""
    faster = f"Other measured single steps faster than the floor: {len(faster_ids)} of {len(other_steps)}{examples}."
    return f"### Targets\n\n{sentence}\n\n{target_table(checks)}\n\n{faster}"


def _fit_gain(report: Report) -> str:
    """Table of errors of the fitted model, the flat model and the floor."""
    fitted, flat, floor = (_all(residuals) for residuals in (report.residuals, report.flat, floor_residuals(report.residuals)))
    models = (fitted, flat, floor)
    lines = [
        (name, f"{fitted[name].stats.n:,}", *(text for model in models for text in _brief(model[name]))) for name in ORDER if name in fitted
    ]
    head = ("measured", "n", "fitted: median", "p90 abs ln", "flat: median", "p90 abs ln", "floor: median", "p90 abs ln")
    about = (
        "`flat`: 0.7 of peak FLOP/s, 0.8 of HBM bandwidth, 3 us per kernel, no engine, the same closed loop. `floor`: the datasheet "
        "roofline. Both see the same lengths, layouts and number formats."
    )
    return f"### What the fit buys\n\n{table(head, lines)}\n\n{about}"


def _all(residuals: Iterable[Residual]) -> dict[str, ErrorGroup]:
    return {group.measure: group for group in grouped(residuals, "all")}


def _by_source(residuals: Sequence[Residual]) -> str:
    """Table of errors by source, each with the rows left out of its fits."""
    lines = []
    for group in grouped(residuals, "source"):
        folds = sorted(
            {residual.fold or "nothing" for residual in residuals if residual.source == group.name and residual.measure == group.measure}
        )
        fold_text = folds[0] if len(folds) == 1 else f"{len(folds)} groups: {', '.join(folds[:3])}{', ...' if len(folds) > 3 else ''}"
        lines.append((group.measure, group.name, *_numbers(group), fold_text))
    return f"### By source\n\n{table(('measured', 'source', *HEAD, 'left out of the fit'), lines)}"


def _models(residuals: Sequence[Residual]) -> str:
    """Table of errors of single-source modes, predicted with a whole model left out."""
    if not residuals:
        return ""
    lines = [(group.measure, group.name, *_numbers(group)) for group in grouped(residuals, "model")]
    sentence = "Modes that one source alone has are predicted above with a quarter of the chips left out; here with a whole model left out."
    return f"### Whole models left out\n\n{sentence}\n\n{table(('measured', 'model', *HEAD), lines)}"


def _by(residuals: Sequence[Residual], field: str, name: str) -> str:
    lines = [(group.measure, group.name, *_numbers(group)) for group in grouped(residuals, field)]
    return f"### By {name}\n\n{table(('measured', name, *HEAD), lines)}"


def _numbers(group: ErrorGroup) -> tuple[str, ...]:
    s = group.stats
    return f"{s.n:,}", _share(group), f"{s.p90_log:.2f}", f"{s.bias:+.2f}", f"{s.coverage:.0%}", f"{s.width:.2f}"


def _brief(group: ErrorGroup) -> tuple[str, str]:
    return _share(group), f"{group.stats.p90_log:.2f}"


def _share(group: ErrorGroup) -> str:
    return f"{group.stats.median_error:.1%}"


def _worst_groups(residuals: Sequence[Residual]) -> str:
    groups = worst_groups(residuals, LEAST, 15)
    lines = [(measure, name, str(size), f"{error:.0%}") for measure, name, _, error, size in groups]
    about = f"Groups of at least {LEAST} measurements of one source, chip, engine and class of model."
    return f"### Worst groups\n\n{about}\n\n{table(('measured', 'group', 'n', 'median error'), lines)}" if lines else ""


def _worst_rows(residuals: Sequence[Residual]) -> str:
    lines = [
        (residual.measure, residual.id, f"{residual.model} on {residual.chip}, {residual.engine}", *_pair(residual))
        for residual in worst(residuals, 2)
    ]
    return f"### Worst rows\n\n{table(('measured', 'row', 'what', 'measurement', 'predicted', 'predicted / measured'), lines)}"


def _pair(residual: Residual) -> tuple[str, str, str]:
    unit = "s" if residual.is_time else "token/s"
    return show(residual.measured, unit), show(residual.predicted, unit), f"{residual.predicted / residual.measured:.2f}"


def _shifts(report: Report) -> str:
    """Table of fitted numbers that one group of rows decides."""
    if not report.numbers:
        return ""
    sentence = f"{report.numbers} numbers were fitted to the rows. Leaving a group out moves these by more than three standard errors:"
    lines = [(shift.number, shift.fold, f"{shift.errors:+.1f}") for shift in report.shifts]
    return f"### What one group decides\n\n{sentence}\n\n{table(('number', 'left out', 'moves by standard errors'), lines)}"


def _kernels(errors: Sequence[ErrorRow]) -> str:
    if not errors:
        return ""
    lines = [(row.kind, row.family, row.dtype, row.scope, f"{row.rows:,}", f"{row.median:.1%}", f"{row.p90:.2f}") for row in errors]
    head = ("kernels", "chip family", "format", "fit", "rows", "median abs ln", "p90 abs ln")
    return f"### Kernels\n\n{table(head, lines)}"


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)

"""Generated parts of docs/accuracy.md, docs/prices.md and README.md (text between markers), and the accuracy targets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from headway.core import user_file
from headway.core.errors import BadFile
from headway.core.units import show
from headway.economics.inversion.calibration import OURS, LadderVerdict, PriceScore, SizeVerdict
from headway.evidence.fit.result import ErrorRow
from headway.evidence.serving.crossval import ClassScore, NumberShift, floor_residuals
from headway.evidence.serving.score import ORDER, SLACK, ErrorGroup, Residual, grouped, stats, worst

LEAST_COVERED, MOST_COVERED, EACH_COVERED = 0.85, 0.95, 0.75
FEW = 5  # measurements a group needs before its coverage is judged, or to be listed among the worst
ONE_STEP = ("decode", "prefill")  # kinds of row that measure single steps, without a loop of requests around them
TARGETS = {  # measure -> largest median error, the error aimed at, largest p90 of |ln ratio| and median hi / lo; None: no limit
    "served TPOT": (0.20, 0.15, 0.5, 2.5), "TTFT": (0.40, None, None, None), "decode": (0.15, 0.10, None, 1.8),
    "prefill": (0.22, 0.15, None, None), "throughput": (0.22, 0.18, 0.65, None),
}  # fmt: skip


class TargetResult(NamedTuple):
    """One accuracy target: the limit, the measured value, and whether it is met."""

    what: str
    limit: str
    result: str
    met: bool


def check_targets(residuals: Sequence[Residual]) -> list[TargetResult]:
    """All accuracy targets checked against cross-validated residuals."""
    return [*_error_targets(residuals), *_coverage_targets(residuals), *_floor_targets(residuals)] if residuals else []


def _error_targets(residuals: Sequence[Residual]) -> Iterator[TargetResult]:
    for measure, (median, aim, p90, width) in TARGETS.items():
        of_measure = [residual for residual in residuals if residual.measure == measure]
        if not of_measure:
            continue
        errors = stats(of_measure)
        limit = f"<= {median:.0%}" + (f" (aim {aim:.0%})" if aim else "")
        yield TargetResult(f"{measure}, median error", limit, f"{errors.median_error:.1%}", errors.median_error <= median)
        if p90:
            yield TargetResult(f"{measure}, p90 of abs ln ratio", f"<= {p90:g}", f"{errors.p90_log:.3f}", errors.p90_log <= p90)
        if width:
            yield TargetResult(f"{measure}, median hi/lo", f"<= {width:g}", f"{errors.width:.2f}", errors.width <= width)


def _coverage_targets(residuals: Sequence[Residual]) -> Iterator[TargetResult]:
    """Coverage of the 90 % intervals: of all, and of each source and chip family of FEW measurements and more."""
    share = stats(residuals).coverage
    limit = f"{LEAST_COVERED:.0%} to {MOST_COVERED:.0%}"
    yield TargetResult("coverage of all 90 % intervals", limit, f"{share:.1%}", LEAST_COVERED <= share <= MOST_COVERED)
    for by, name in (("source", "source"), ("family", "chip family")):
        groups = [(group, stats(members).coverage, len(members)) for (group,), members in _members(residuals, (by,)) if len(members) >= FEW]
        low = [f"{group} {coverage:.0%} of {n}" for group, coverage, n in groups if coverage < EACH_COVERED]
        result = (
            "; ".join(low) or f"all of {len(groups)} at least {min(coverage for _, coverage, _ in groups):.0%}" if groups else "no group"
        )
        yield TargetResult(f"coverage within each {name}", f">= {EACH_COVERED:.0%} (groups of {FEW} or more)", result, not low)


def _floor_targets(residuals: Sequence[Residual]) -> Iterator[TargetResult]:
    plain_steps = [residual for residual in residuals if residual.reliability == "A" and residual.roofline == "yes"]
    single_steps = [residual for residual in residuals if residual.kind in ONE_STEP]
    below = [
        residual.id
        for residual in single_steps
        if (residual.floor / residual.predicted if residual.is_time else residual.predicted / residual.floor) > 1 + SLACK
    ]
    for what, ids, of in (
        ("measured A rows of plain steps (roofline=yes) faster than the floor", beyond_floor(plain_steps), plain_steps),
        ("predictions of single steps below the floor", below, single_steps),
    ):
        examples = f": {', '.join(ids[:5])}" if ids else ""
        yield TargetResult(what, "none", f"{len(ids)} of {len(of)}{examples}", not ids)


def beyond_floor(residuals: Iterable[Residual]) -> list[str]:
    """Ids of measurements faster than the roofline floor."""
    return [residual.id for residual in residuals if residual.limit_share > 1 + SLACK]


def _members(residuals: Iterable[Residual], fields: Sequence[str]) -> Iterable[tuple[tuple[str, ...], list[Residual]]]:
    """Residuals by their values of some fields."""
    groups: dict[tuple[str, ...], list[Residual]] = {}
    for residual in residuals:
        groups.setdefault(tuple(getattr(residual, field) for field in fields), []).append(residual)
    return groups.items()


PAGE, SUMMARY, LONG = "accuracy", "accuracy-summary", "accuracy-tables"  # names of the parts between markers
FIGURE, LONG_PAGE = "accuracy.png", "accuracy_serving.md"
MOST_NAMED = 10
MOST_GROUPS = 15
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


def section(title: str, head: Sequence[str], lines: Iterable[Sequence[str]], about: str = "") -> str:
    """A section of a page: its title, what to know, a table."""
    return "\n\n".join(part for part in (f"### {title}", about, table(head, lines)) if part)


def page(report: Report) -> str:
    """Part of docs/accuracy.md about times, rates and costs."""
    return "\n\n".join((*_short_sections(report), f"![served TPOT, predicted against measured]({FIGURE})"))


def whole_page(report: Report) -> str:
    """Page and long tables in one, where the tables have no page of their own."""
    return f"{page(report)}\n\n{tables(report)}"


def tables(report: Report) -> str:
    """The long tables, which stand on a page of their own where there is one."""
    return "\n\n".join(_long_sections(report))


def summary(report: Report) -> str:
    """Accuracy summary of README.md: the error of each measure, what the fit buys, the coverage."""
    head = ("measured", "n", "median error", "p90 abs ln", "in the 90 % interval", "flat efficiencies miss by", "roofline misses by")
    lines = [
        (name, f"{fitted.stats.n:,}", _share(fitted), f"{fitted.stats.p90_log:.2f}", f"{fitted.stats.coverage:.0%}", _share(flat),
         _share(floor))
        for name, fitted, flat, floor in _by_model(report)
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


def target_table(checks: Iterable[tuple[str, str, str, bool]], name: str = "found") -> str:
    """Table of targets; `name` heads the column of what was measured."""
    return table(("what", "asked", name, "reached"), [(*texts, "yes" if met else "**no**") for *texts, met in checks])


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


# -- parts ------------------------------------------------------------------------------------------------------------------------


def _short_sections(report: Report) -> Iterator[str]:
    """Where the figures come from, targets of classes left out, and what the fit buys over the flat model and the floor."""
    rows = len({(residual.line, residual.id) for residual in report.residuals})
    share = report.predicted / report.rows if report.rows else 0.0
    provenance = f"Generated by `{report.command}` on {report.date}: {len(report.residuals):,} measurements of {rows:,} published rows"
    count = f"Of {report.rows:,} rows whose input length is stated, {report.predicted:,} are predicted ({share:.1%})"
    silent = f"of {report.unstated:,} more it is not stated and not guessed"
    yield f"{provenance} of reliability A and B. {_folds_sentence(report.residuals)} {count}; {silent}.\n\n{READ}"
    if report.scores:
        checks = [*class_targets(report.scores, report.predicted / max(report.rows, 1))]
        yield f"### What holds on classes that the fit has not seen\n\n{CLASS_READ}"
        yield f"{sum(check.met for check in checks)} of {len(checks)} targets are reached.\n\n{target_table(checks, 'result')}"
    lines = [
        (name, f"{models[0].stats.n:,}", *(text for model in models for text in (_share(model), f"{model.stats.p90_log:.2f}")))
        for name, *models in _by_model(report)
    ]
    head = ("measured", "n", "fitted: median", "p90 abs ln", "flat: median", "p90 abs ln", "floor: median", "p90 abs ln")
    yield section("What the fit buys", head, lines) + (
        "\n\n`flat`: 0.7 of peak FLOP/s, 0.8 of HBM bandwidth, 3 us per kernel, no engine, the same closed loop. `floor`: the datasheet "
        "roofline. Both see the same lengths, layouts and number formats."
    )


def _folds_sentence(residuals: Iterable[Residual]) -> str:
    """Sentence on the groups of rows left out of the fits."""
    folds = {residual.fold for residual in residuals}
    if not folds - {""}:
        return "**These rows were seen by the fit: nothing here is cross-validated.**"
    caveat = " Some rows were seen by the fit." if "" in folds else ""
    return f"Every row is predicted by a fit that has not seen its group: {len(folds - {''})} groups were left out in turn.{caveat}"


def _by_model(report: Report) -> Iterator[tuple[str, ErrorGroup, ErrorGroup, ErrorGroup]]:
    """Each measure with its errors by the fitted model, the flat model and the floor."""
    models = [
        {group.measure: group for group in grouped(residuals, "all")}
        for residuals in (report.residuals, report.flat, floor_residuals(report.residuals))
    ]
    for name in ORDER:
        if name in models[0]:
            yield name, models[0][name], models[1][name], models[2][name]


def _share(group: ErrorGroup) -> str:
    return f"{group.stats.median_error:.1%}"


def _by(residuals: Sequence[Residual], field: str) -> list[tuple[str, ...]]:
    """Lines of a table of errors by measure and a field."""
    return [
        (group.measure, group.name, f"{group.stats.n:,}", _share(group), f"{group.stats.p90_log:.2f}", f"{group.stats.bias:+.2f}",
         f"{group.stats.coverage:.0%}", f"{group.stats.width:.2f}")
        for group in grouped(residuals, field)
    ]  # fmt: skip


def _long_sections(report: Report) -> Iterator[str]:
    """Tables of folds, targets, errors by every field, worst groups and rows, numbers that one group decides, kernels."""
    residuals = report.residuals
    if report.scores:
        head = ("measured", "left out, class by class", "n", "median", "coverage", "hi/lo", "worst class: median, bias, coverage, rows")
        yield section("Folds", head, fold_lines(report.scores), CLASS_READ)
    checks = check_targets(residuals)
    sentence = f"{sum(check.met for check in checks)} of {len(checks)} are reached." if checks else "Nothing was measured."
    rest = [residual for residual in residuals if residual.kind in ONE_STEP and (residual.reliability, residual.roofline) != ("A", "yes")]
    ids = beyond_floor(rest)
    examples = f": {', '.join(ids[:MOST_NAMED])}" if ids else ""
    faster = f"Other measured single steps faster than the floor: {len(ids)} of {len(rest)}{examples}."
    yield f"### Targets\n\n{sentence}\n\n{target_table(checks)}\n\n{faster}"
    yield section("By source", ("measured", "source", *HEAD, "left out of the fit"), _source_lines(residuals))
    if report.models:
        about = (
            "Modes that one source alone has are predicted above with a quarter of the chips left out; here with a whole model left out."
        )
        yield section("Whole models left out", ("measured", "model", *HEAD), _by(report.models, "model"), about)
    for field, name in TABLES:
        yield section(f"By {name}", ("measured", name, *HEAD), _by(residuals, field))
    if report.scores:
        head = ("measured", "left out", "class", "n", "median error", "bias ln", "coverage")
        yield section("Every class left out", head, class_lines(report.scores), CLASS_READ)
    yield from _worst_sections(residuals)
    if report.numbers:
        sentence = f"{report.numbers} numbers were fitted to the rows. Leaving a group out moves these by more than three standard errors:"
        lines = [(shift.number, shift.fold, f"{shift.errors:+.1f}") for shift in report.shifts]
        yield section("What one group decides", ("number", "left out", "moves by standard errors"), lines, sentence)
    if report.kernels:
        lines = [
            (row.kind, row.family, row.dtype, row.scope, f"{row.rows:,}", f"{row.median:.1%}", f"{row.p90:.2f}") for row in report.kernels
        ]
        yield section("Kernels", ("kernels", "chip family", "format", "fit", "rows", "median abs ln", "p90 abs ln"), lines)


def _source_lines(residuals: Sequence[Residual]) -> Iterator[tuple[str, ...]]:
    """Errors by source, each with the rows left out of its fits."""
    for line in _by(residuals, "source"):
        folds = sorted({residual.fold or "nothing" for residual in residuals if (residual.measure, residual.source) == line[:2]})
        more = f"{len(folds)} groups: {', '.join(folds[:3])}{', ...' if len(folds) > 3 else ''}"
        yield (*line, folds[0] if len(folds) == 1 else more)


def _worst_sections(residuals: Sequence[Residual]) -> Iterator[str]:
    """Groups of a source, chip, engine and class of model with the largest median error, and the worst rows."""
    groups = _members(residuals, ("measure", "source", "chip", "engine", "model_class"))
    errors = [(key, stats(members).median_error, len(members)) for key, members in groups if len(members) >= FEW]
    lines = [
        (key[0], ", ".join(key[1:]), str(size), f"{error:.0%}")
        for key, error, size in sorted(errors, key=lambda group: -group[1])[:MOST_GROUPS]
    ]
    if lines:
        about = f"Groups of at least {FEW} measurements of one source, chip, engine and class of model."
        yield section("Worst groups", ("measured", "group", "n", "median error"), lines, about)
    rows = []
    for residual in worst(residuals, 2):
        unit = "s" if residual.is_time else "token/s"
        rows.append((
            residual.measure, residual.id, f"{residual.model} on {residual.chip}, {residual.engine}", show(residual.measured, unit),
            show(residual.predicted, unit), f"{residual.predicted / residual.measured:.2f}",
        ))  # fmt: skip
    yield section("Worst rows", ("measured", "row", "what", "measurement", "predicted", "predicted / measured"), rows)


# -- classes left out: targets, and a table of folds by source, date, model family, chip and engine ---------------------------------


CLASS_LIMITS = {  # measure -> largest median error in the worst of the four kinds of fold, largest hi / lo
    "served TPOT": (0.15, 2.5), "TTFT": (0.25, None), "TTFT, split pools": (0.60, None), "decode": (0.10, 2.5), "prefill": (0.20, 3.5),
    "throughput": (0.15, 3.5),
}  # fmt: skip
FOUR = ("date", "family", "chip", "engine")  # kinds of fold of what comes next; rows of another source are seldom of one of these alone
ANSWERED = 0.97
FEWEST_ROWS = 20  # measurements of a measure in a kind of fold
CLASS_NAMES = {"source": "source", "date": "quarter", "family": "model family", "chip": "kind of chip", "engine": "engine"}
CLASS_READ = (
    "Each class is predicted by a fit, and held by intervals, that have not seen it; a quarter of a year by those of the quarters before "
    "it alone. Rows of a model, a chip and an engine count once together. A class counts in a measure of which its fit still saw 20 rows. "
    "Median: of |predicted / measured - 1|. Coverage: share within the 90 % interval. Bias: median of ln(predicted / measured)."
)


def class_targets(scores: Sequence[ClassScore], answered: float) -> Iterator[TargetResult]:
    """Targets of classes left out; `answered` is the share of rows that are predicted."""
    limits = f"{LEAST_COVERED:.0%} to {MOST_COVERED:.0%}"
    for measure, (most, width) in CLASS_LIMITS.items():
        rows = [score for score in scores if score.measure == measure and score.kind in FOUR and score.all_rows.rows >= FEWEST_ROWS]
        if not rows:
            continue
        worst_fold = max(rows, key=lambda score: score.all_rows.median)
        median, where = worst_fold.all_rows.median, CLASS_NAMES[worst_fold.kind]
        what = f"{measure}, median error, worst kind of fold"
        yield TargetResult(what, f"<= {most:.0%}", f"{median:.1%} ({where} unseen)", median <= most)
        shares = [score.all_rows.coverage for score in rows]
        low, high = min(shares), max(shares)
        within = low >= LEAST_COVERED and high <= MOST_COVERED
        yield TargetResult(f"{measure}, coverage", limits, f"{low:.0%} to {high:.0%}", within)
        if width is not None:
            widest = max(score.width for score in rows)
            yield TargetResult(f"{measure}, median hi/lo", f"<= {width:g}", f"{widest:.2f}", widest <= width)
    yield TargetResult("rows that state their lengths, predicted", f">= {ANSWERED:.0%}", f"{answered:.1%}", answered >= ANSWERED)
    few = [
        f"{group.name}, {score.measure}: {group.coverage:.0%} of {group.rows}"
        for score in scores for group in score.classes if group.coverage < EACH_COVERED
    ]  # fmt: skip
    result = "; ".join(dict.fromkeys(few)) or "all"
    yield TargetResult("coverage in every class of 20 rows and more", f">= {EACH_COVERED:.0%}", result, not few)


def fold_lines(scores: Sequence[ClassScore]) -> Iterator[tuple[str, ...]]:
    """A line for each measure and kind of fold."""
    for measure in CLASS_LIMITS:
        for score in scores:
            if score.measure == measure and score.all_rows.rows >= FEWEST_ROWS:
                group, known = score.worst, score.all_rows
                text = "" if group is None else f"{group.name}: {group.median:.0%}, {group.bias:+.2f}, {group.coverage:.0%}, {group.rows}"
                yield (measure, CLASS_NAMES[score.kind], f"{known.rows:,}", f"{known.median:.1%}", f"{known.coverage:.0%}",
                       f"{score.width:.2f}", text)  # fmt: skip


def class_lines(scores: Sequence[ClassScore]) -> Iterator[tuple[str, ...]]:
    """A line for each class."""
    for score in scores:
        for group in score.classes:
            yield (score.measure, CLASS_NAMES[score.kind], group.name, str(group.rows), f"{group.median:.1%}", f"{group.bias:+.2f}",
                   f"{group.coverage:.0%}")  # fmt: skip


# -- prices -------------------------------------------------------------------------------------------------------------------------


PART = "prices"  # name of the markers around the tables


def write_prices(path: str, estimates: Sequence[SizeVerdict], scored: Sequence[PriceScore], kv: Sequence[LadderVerdict]) -> None:
    """Write size estimates, price scores and KV estimates between the markers of the page at `path` (docs/prices.md)."""
    methods = [
        (row.method, row.size, str(row.models), f"{row.rms:.2f}", f"{row.over_constant:.2f}", f"{row.width:.1f}", f"{row.coverage:.0%}")
        for row in scored
    ]
    parts = [table(("method", "parameters", "models", "rms ln error", "of the constant's", "median hi/lo", "held"), methods)]
    for size in ("active", "total"):
        rows = sorted((row for row in estimates if row.size == size and row.method == OURS), key=lambda estimate: estimate.truth)
        lines = [
            (row.example.model, row.example.family, *map(show, (row.truth, row.lo, row.value, row.hi)), "yes" if row.holds else "no")
            for row in rows
        ]
        parts.append(table((f"model, {size} parameters", "family left out", "published", "lo", "middle", "hi", "held"), lines))
    ladders = [
        (
            ladder.sold, ladder.model,
            *(show(value, "byte/token") for value in (ladder.fp8, ladder.bf16, ladder.lo, ladder.value, ladder.hi)),
            f"{ladder.hi / ladder.lo:.1f}",
        )
        for ladder in kv
    ]  # fmt: skip
    parts.append(table(("ladder", "model", "KV per token, fp8", "bf16", "lo", "middle", "hi", "hi/lo"), ladders))
    text = user_file.text_of(path, user_file.PAGE)
    Path(path).write_text(inserted(text, PART, "\n\n".join(parts), path), encoding="utf-8")

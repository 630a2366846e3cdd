"""`headway fit --from KERNELS/ --from MEASURED.csv`, `headway fit --training ROWS.csv`: refit, and write numbers with errors."""

from __future__ import annotations

import datetime
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headway.core import schema, user_file
from headway.core.columns import Column
from headway.core.errors import BadFile, BadValue, MissingExtra
from headway.core.listing import Listing
from headway.evidence.fit import nearest
from headway.evidence.fit.result import write_efficiency
from headway.evidence.kernels.efficiency import HEAD
from headway.evidence.pages import inserted
from headway.evidence.questions import Fit
from headway.evidence.serving import class_means, page, refit
from headway.evidence.serving.folds import SEED
from headway.evidence.training import refit as training_refit
from headway.report import output, prediction_pictures
from headway.report.pictures.file import check_path
from headway.report.pictures.frame import View
from headway.report.words import sentence

KEYS = {
    "section": Column("", "class.family.format of a kernel, or engine, platform or interval"),
    "key": Column("", "what the number is of it"),
    "value": Column("", "the number, in the unit beside it"),
    "unit": Column("", "its unit"),
    "error": Column("", "one standard error, in the same unit; 0 where the number was stated, not fitted"),
    "rows": Column("", "measurements it was fitted to"),
    "meaning": Column("", "what it says"),
}


def folder(name: str) -> Path:
    """Path of an existing folder to write to."""
    path = Path(name)
    if not path.is_dir():
        raise BadFile(name, "is not a folder to write to")
    return path


def text_of(path: str) -> str:
    """Text of a page."""
    return user_file.text_of(path, user_file.PAGE)


TRAINING_NUMBERS = Path("training") / "efficiency.toml"  # within the output folder


def run_training(args: Fit) -> output.Answer:
    """Answer of a training fit: writes the numbers and lists them."""
    out = folder(args.out)
    if args.report:  # fail early if the page has no markers
        inserted(text_of(args.report), training_refit.PAGE, "", args.report)
    rows = Path(args.training)
    fit_result = training_refit.refit(rows, f"headway fit --training {rows.name}", datetime.date.today().isoformat())
    paths = [out / TRAINING_NUMBERS]
    paths[0].parent.mkdir(exist_ok=True)
    write_efficiency(paths[0], fit_result.numbers, training_refit.HEAD, keep_other_sections=False)
    if args.report:
        paths.append(_insert(args.report, training_refit.PAGE, training_refit.page(fit_result)))
    return _answer(fit_result, sentence(training_refit.sentence(fit_result)), paths)


def _answer(fit_result: Any, first: str, paths: Sequence[Path]) -> output.Answer:
    """Answer that lists the numbers of a fit, below its sentence and the files written."""
    rows = [{key: getattr(number, key) for key in KEYS} for number in fit_result.numbers]
    words = output.Summary(first, tuple(KEYS), remarks=[f"written: {', '.join(map(str, paths))}"])
    table, notes = Listing(rows, always=tuple(KEYS)), fit_result.notes
    return output.Answer(table, describe=lambda _: words, describes_none=True, columns=KEYS, most=400, notes=notes)


NUMBERS, NEAREST = "efficiency.toml", "evidence.csv"


def run(args: Fit) -> output.Answer:
    """Answer of a fit: writes the numbers and lists them."""
    if args.training:
        if args.from_ or args.summary or args.folds:
            raise BadValue("--training", args.training, "no --from, --folds or --summary beside it: it is a fit of its own")
        return run_training(args)
    kernels, measured = _sources(args.from_)
    out = folder(args.out)
    return _folds(args, kernels, measured, out) if args.folds else _numbers(args, kernels, measured, out)


def _numbers(args: Fit, kernels: Path | None, measured: list[Path], out: Path) -> output.Answer:
    """The numbers of kernels and engines, and on a page the errors of the kernels."""
    if args.summary:
        raise BadValue("--summary", args.summary, "--folds beside it: errors are those of rows left out")
    if args.report and kernels is None:
        raise BadValue("--report", args.report, "a folder of measured kernels, or --folds beside it: errors are those of rows left out")
    if args.report:  # fail early if the page has no markers
        inserted(text_of(args.report), page.KERNELS, "", args.report)
    fit_result = refit.refit(kernels, measured)
    paths = [out / NUMBERS]
    write_efficiency(paths[0], fit_result.numbers, fit_result.head)
    if measured:
        paths.append(out / class_means.FILE)
        paths[-1].write_text(class_means.text(fit_result.classes), encoding="utf-8")
    if args.report:
        paths.append(_insert(args.report, page.KERNELS, page.kernels(fit_result.errors)))
    fitted = [number for number in fit_result.numbers if number.error]
    first = sentence(f"{len(fitted)} numbers fitted, {len(fit_result.numbers) - len(fitted)} stated")
    return _answer(fit_result, first, paths)


def _folds(args: Fit, kernels: Path | None, measured: list[Path], out: Path) -> output.Answer:
    """Widths of intervals, the table of nearest rows, and the pages, from folds of clusters."""
    if kernels is not None or not measured:
        raise BadValue("--folds", "" if kernels is None else str(kernels), "measured runs alone: --from MEASURED.csv")
    _check_pages(args.report, args.summary)
    seed = int(schema.scalar(args.seed, schema.Field(integer=True, low=0, open_low=False), "--seed"))
    folded = refit.folded(measured, seed)
    command = f"headway fit --folds {' '.join(f'--from {path.name}' for path in measured)}{'' if seed == SEED else f' --seed {seed}'}"
    report = page.Report(folded=folded, command=command, date=datetime.date.today().isoformat())
    paths = [out / NUMBERS]
    write_efficiency(paths[0], folded.numbers, HEAD)
    paths += _pages(report, out, args.report, args.summary)
    groups = [
        f"{name} by {errors.median:.1%} ({errors.rows:,})"
        for name in page.MEASURES if (left_out := page.of_measure(folded.result.clusters, name)) for errors in [page.by_cluster(left_out)]
    ]  # fmt: skip
    start = f"{len(folded.numbers)} widths of intervals"
    clauses = [f"; median error on clusters that the fit has not seen: {groups[0]}", *(f", {group}" for group in groups[1:])]
    return _answer(folded, sentence(start, *clauses), paths)


def _insert(path: str, name: str, text: str) -> Path:
    """Write a part of a page between its markers."""
    Path(path).write_text(inserted(text_of(path), name, text, path), encoding="utf-8")
    return Path(path)


def _sources(paths: Sequence[str] | None) -> tuple[Path | None, list[Path]]:
    """Folder of measured kernels, and files of measured runs."""
    if not paths:
        raise BadValue("--from", "nothing", "a folder of measured kernels or a CSV of measured runs; or --training ROWS.csv")
    folders = [Path(path) for path in paths if Path(path).is_dir()]
    files = [Path(path) for path in paths if not Path(path).is_dir()]
    missing = [path for path in paths if not Path(path).exists()]
    if missing:
        raise BadFile(missing[0], "is neither a folder of kernels nor a file of measured runs")
    if len(folders) > 1:
        raise BadValue("--from", " ".join(map(str, folders)), "one folder of kernels")
    return (folders[0] if folders else None), files


def _check_pages(report: str | None, summary: str | None) -> None:
    """Raise an error if a page lacks its markers or the picture cannot be drawn, before any work is done."""
    for path, name in ((report, page.PAGE), (summary, page.SUMMARY)):
        if path:
            inserted(text_of(path), name, "", path)
    if report:
        check_path(str(Path(report).with_name(page.FIGURE)))
        if importlib.util.find_spec("vl_convert") is None:
            raise MissingExtra("the picture of --report", "plot")


def _pages(report: page.Report, out: Path, path: str | None, summary: str | None) -> list[Path]:
    """Write the table of nearest rows and the requested pages; returns their paths."""
    residuals = report.folded.result.clusters
    paths = [out / NEAREST]
    paths[0].write_text(nearest.text(nearest.entries(residuals, report.date)), encoding="utf-8")
    long_page = str(Path(path).with_name(page.LONG_PAGE)) if path and Path(path).with_name(page.LONG_PAGE).is_file() else None
    short = page.page if long_page else page.whole_page
    for file, name, text in ((path, page.PAGE, short), (long_page, page.LONG, page.tables), (summary, page.SUMMARY, page.summary)):
        if file:
            paths.append(_insert(file, name, text(report)))
    if path:
        paths.append(Path(path).with_name(page.FIGURE))
        prediction_pictures.parity(residuals, "served TPOT", View()).save(paths[-1])
    return paths

"""`headway fit --from KERNELS/ --from MEASURED.csv`, `headway fit --training ROWS.csv`: refit, and write numbers with errors."""

from __future__ import annotations

import datetime
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headway.core import user_file
from headway.core.columns import Column
from headway.core.errors import BadFile, BadValue, MissingExtra
from headway.core.listing import Listing
from headway.evidence import pages
from headway.evidence.fit import nearest
from headway.evidence.fit.result import write_efficiency
from headway.evidence.pages import inserted
from headway.evidence.questions import Fit
from headway.evidence.serving import class_means, refit
from headway.evidence.serving.score import grouped
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
    out, page = folder(args.out), args.report
    if page:  # fail early if the page has no markers
        inserted(text_of(page), training_refit.PAGE, "", page)
    rows = Path(args.training)
    fit_result = training_refit.refit(rows, f"headway fit --training {rows.name}", datetime.date.today().isoformat())
    paths = [out / TRAINING_NUMBERS]
    paths[0].parent.mkdir(exist_ok=True)
    write_efficiency(paths[0], fit_result.numbers, training_refit.HEAD, keep_other_sections=False)
    if page:
        Path(page).write_text(inserted(text_of(page), training_refit.PAGE, training_refit.page(fit_result), page), encoding="utf-8")
        paths.append(Path(page))
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
            raise BadValue("--training", args.training, "no --from, --folds and --summary beside it: it is a fit of its own")

        return run_training(args)
    kernels, measured = _sources(args.from_)
    if args.folds and not measured:
        raise BadValue("--folds", "no measured runs", "rows to leave out: --from MEASURED.csv")
    for flag, page in (("--report", args.report), ("--summary", args.summary)):
        if page and not (measured and args.folds):
            raise BadValue(flag, page, "measured runs to report on and fits without them: --from MEASURED.csv --folds")
    out = folder(args.out)
    _check_pages(args.report, args.summary)
    command = "headway fit " + " ".join(f"--from {Path(path).name}{'/' if Path(path).is_dir() else ''}" for path in args.from_)
    command += " --folds" * bool(args.folds)
    fit_result = refit.refit(kernels, measured, command, datetime.date.today().isoformat(), bool(args.folds))
    paths = [out / NUMBERS]
    write_efficiency(paths[0], fit_result.numbers, fit_result.head)
    if measured:
        paths.append(out / class_means.FILE)
        paths[-1].write_text(class_means.text(fit_result.classes), encoding="utf-8")
    if fit_result.report is not None:
        paths += _pages(fit_result.report, out, args.report, args.summary)
    return _answer(fit_result, _first_sentence(fit_result), paths)


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


def _check_pages(page: str | None, summary: str | None) -> None:
    """Raise an error if a page lacks its markers or the picture cannot be drawn, before any work is done."""
    for path, name in ((page, pages.PAGE), (summary, pages.SUMMARY)):
        if path:
            pages.inserted(text_of(path), name, "", path)
    if page:
        check_path(str(Path(page).with_name(pages.FIGURE)))
        if importlib.util.find_spec("vl_convert") is None:
            raise MissingExtra("the picture of --report", "plot")


def _pages(report: Any, folder: Path, page: str | None, summary: str | None) -> list[Path]:
    """Write the table of nearest rows and the requested pages; returns their paths."""
    paths = [folder / NEAREST]
    paths[0].write_text(nearest.text(nearest.entries(report.residuals, report.date)), encoding="utf-8")
    long_page = str(Path(page).with_name(pages.LONG_PAGE)) if page and Path(page).with_name(pages.LONG_PAGE).is_file() else None
    short = pages.page if long_page else pages.whole_page
    for path, name, text in ((page, pages.PAGE, short), (long_page, pages.LONG, pages.tables), (summary, pages.SUMMARY, pages.summary)):
        if path:
            paths.append(Path(path))
            document = text_of(path)
            Path(path).write_text(pages.inserted(document, name, text(report), path), encoding="utf-8")
    if page:
        paths.append(Path(page).with_name(pages.FIGURE))
        prediction_pictures.parity(report.residuals, "served TPOT", View()).save(paths[-1])
    return paths


def _first_sentence(fit_result: Any) -> str:
    """Sentence on the fitted numbers and the errors on rows that the fit had not seen."""
    fitted = [number for number in fit_result.numbers if number.error]
    start, clauses = f"{len(fitted)} numbers fitted, {len(fit_result.numbers) - len(fitted)} stated", []
    if fit_result.report is not None:
        groups = [
            f"{group.measure} by {group.stats.median_error:.1%} ({group.stats.n:,})"
            for group in grouped(fit_result.report.residuals, "all")
        ]
        clauses = [f"; median error on rows that the fit has not seen: {groups[0]}", *(f", {group}" for group in groups[1:])]
    return sentence(start, *clauses)

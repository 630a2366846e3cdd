"""`headway fit --training ROWS.csv`: fit what training reaches to measured runs, and write it with its error."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from headway import output
from headway.cli.fitted_files import KEYS, folder, text_of
from headway.cli.progress import bar
from headway.listing import Listing

NUMBERS = Path("training") / "efficiency.toml"  # of the folder asked for


def run(args: Any) -> output.Answer:
    """Fit, write, and list the numbers."""
    from headway.evidence.fitted import write_efficiency
    from headway.evidence.report import inserted
    from headway.evidence.training import report
    from headway.evidence.training.refit import HEAD, refit

    out, page = folder(args.out), args.report
    if page:  # whether it has its markers, before any work is done
        inserted(text_of(page), report.PAGE, "", page)
    rows = Path(args.training)
    with bar():
        fit_result = refit(rows, f"headway fit --training {rows.name}", datetime.date.today().isoformat())
    paths = [out / NUMBERS]
    paths[0].parent.mkdir(exist_ok=True)
    write_efficiency(paths[0], fit_result.numbers, HEAD, keep_other_sections=False)
    if page:
        Path(page).write_text(inserted(text_of(page), report.PAGE, report.page(fit_result), page), encoding="utf-8")
        paths.append(Path(page))
    number_rows = [{key: getattr(number, key) for key in KEYS} for number in fit_result.numbers]
    words = output.Summary(f"{report.sentence(fit_result)}.", tuple(KEYS), [f"written: {', '.join(map(str, paths))}"])
    return output.Answer(Listing(number_rows, always=tuple(KEYS)), describe=lambda _: words, columns=KEYS, most=400)

"""Part of docs/accuracy.md about classes left out: targets, and a table of folds by source, date, model family, chip and engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headway.evidence.fit.class_scores import ClassScore

LIMITS = {  # measure -> largest median error in the worst of the four kinds of fold, largest hi / lo
    "served TPOT": (0.15, 2.5), "TTFT": (0.25, None), "TTFT, split pools": (0.60, None), "decode": (0.10, 2.5), "prefill": (0.20, 3.5),
    "throughput": (0.15, 3.5),
}  # fmt: skip
FOUR = ("date", "family", "chip", "engine")  # kinds of fold of what comes next; rows of another source are seldom of one of these alone
LEAST_COVERED, MOST_COVERED, EACH_COVERED, ANSWERED = 0.85, 0.95, 0.75, 0.97
NAMES = {"source": "source", "date": "quarter", "family": "model family", "chip": "kind of chip", "engine": "engine"}
READ = (
    "Each class is predicted by a fit, and held by intervals, that have not seen it; a quarter of a year by those of the quarters before "
    "it alone. Rows of a model, a chip and an engine count once together. A class counts in a measure of which its fit still saw 20 rows. "
    "Median: of |predicted / measured - 1|. Coverage: share within the 90 % interval. Bias: median of ln(predicted / measured)."
)


def targets(scores: Sequence[ClassScore], answered: float) -> Iterator[tuple[str, str, str, bool]]:
    """Each target: what, asked, result and whether it is met."""
    for measure, (most, width) in LIMITS.items():
        rows = [score for score in scores if score.measure == measure and score.kind in FOUR and score.all_rows.rows >= FEWEST_ROWS]
        if not rows:
            continue
        worst = max(rows, key=lambda score: score.all_rows.median)
        where = f" ({NAMES[worst.kind]} unseen)"
        median = worst.all_rows.median
        yield f"{measure}, median error, worst kind of fold", f"<= {most:.0%}", f"{median:.1%}{where}", median <= most
        shares = [score.all_rows.coverage for score in rows]
        low, high = min(shares), max(shares)
        limits = f"{LEAST_COVERED:.0%} to {MOST_COVERED:.0%}"
        yield f"{measure}, coverage", limits, f"{low:.0%} to {high:.0%}", low >= LEAST_COVERED and high <= MOST_COVERED
        if width is not None:
            widest = max(score.width for score in rows)
            yield f"{measure}, median hi/lo", f"<= {width:g}", f"{widest:.2f}", widest <= width
    yield "rows that state their lengths, predicted", f">= {ANSWERED:.0%}", f"{answered:.1%}", answered >= ANSWERED
    few = [
        f"{group.name}, {score.measure}: {group.coverage:.0%} of {group.rows}"
        for score in scores for group in score.classes if group.coverage < EACH_COVERED
    ]  # fmt: skip
    yield "coverage in every class of 20 rows and more", f">= {EACH_COVERED:.0%}", "; ".join(dict.fromkeys(few)) or "all", not few


FEWEST_ROWS = 20  # measurements of a measure in a kind of fold


def fold_lines(scores: Sequence[ClassScore]) -> Iterator[tuple[str, ...]]:
    """A line for each measure and kind of fold."""
    for measure in LIMITS:
        for score in scores:
            if score.measure == measure and score.all_rows.rows >= FEWEST_ROWS:
                worst, known = score.worst, score.all_rows
                text = "" if worst is None else f"{worst.name}: {worst.median:.0%}, {worst.bias:+.2f}, {worst.coverage:.0%}, {worst.rows}"
                yield (measure, NAMES[score.kind], f"{known.rows:,}", f"{known.median:.1%}", f"{known.coverage:.0%}",
                       f"{score.width:.2f}", text)  # fmt: skip


def class_lines(scores: Sequence[ClassScore]) -> Iterator[tuple[str, ...]]:
    """A line for each class."""
    for score in scores:
        for group in score.classes:
            yield (score.measure, NAMES[score.kind], group.name, str(group.rows), f"{group.median:.1%}", f"{group.bias:+.2f}",
                   f"{group.coverage:.0%}")  # fmt: skip

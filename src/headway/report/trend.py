"""Words and picture of `headway trend models`: what grew from year to year, and what did not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headway.core import units
from headway.core.listing import Rows
from headway.report.output import Summary
from headway.report.pictures import years
from headway.report.words import Row, sentence

if TYPE_CHECKING:
    from headway.report.pictures.frame import Picture, View


def words(rows: Sequence[Row], view: tuple[str, ...]) -> Summary:
    """Sentence on total size and context in the first and last year, then each figure year by year."""
    by_year: dict[int, list[Row]] = {}
    for row in rows:
        by_year.setdefault(int(row["year"]), []).append(row)
    years = sorted(by_year)
    most = {year: max(by_year[year], key=lambda row: row["total_params"]) for year in years}
    first, last = years[0], years[-1]
    headline = f"The largest model had {_count(most[first])} in {first}"
    if last != first:
        headline += f" and {_count(most[last])} in {last}"
    contexts = {year: _median(known) for year in years if (known := [row["max_context"] for row in by_year[year] if row["max_context"]])}
    clause = ""
    if contexts:
        low, high = min(contexts), max(contexts)
        grew = f" and {contexts[high]:,.0f} in {high}" if high != low else ""
        clause = f"; the median context was {contexts[low]:,.0f} tokens in {low}{grew}"
    unverified = sum(row["tokens_status"] == "unverified" for row in rows)
    after = [
        *_by_year(by_year),
        f"Training tokens: {unverified} of {len(rows)} are unverified, {sum(row['training_tokens'] is None for row in rows)} not public.",
    ]
    return Summary(sentence(headline, clause), view, remarks=after, first=("released", "model"))


def _count(row: Row) -> str:
    return f"{units.show(row['total_params'], '')} parameters ({row['model']})"


def _by_year(years: Mapping[int, Sequence[Row]]) -> list[str]:
    """Lines on what grew: size, the domain's memory, context, KV; each with a figure for every year that has one."""
    size, domain, context, cache = [], [], [], []
    for year, rows in sorted(years.items()):
        largest = max(rows, key=lambda row: row["total_params"])
        size.append(f"{year} {units.show(largest['total_params'], '')} ({largest['model']})")
        if largest["domain_hbm"] is not None:
            domain.append(f"{year} {units.show(largest['domain_hbm'], 'byte')} ({largest['domain_chip']})")
        contexts = [row["max_context"] for row in rows if row["max_context"] is not None]
        if contexts:
            context.append(f"{year} {_median(contexts):,.0f}")
        cache.append(f"{year} {units.show(_median([row['kv_bytes_per_token'] for row in rows]), 'byte')}")
    series = (("Largest model", size), ("Memory of the largest scale-up domain on sale", domain), ("Median context", context),
              ("Median KV per token", cache))  # fmt: skip
    return [f"{title}: {', '.join(figures)}." for title, figures in series if figures]


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


def drawing(rows: Rows, view: View) -> Picture:
    """Picture of parameters, context, KV cache and sparsity by release."""
    return years.picture(
        list(rows), years.MODELS, "model", view, title="Contexts and sparsity grew faster than active parameters",
        subtitle="each point is an open or published model by the month of its release",
        caption="Names stand where there is room; the largest, the smallest and the newest first.",
    )  # fmt: skip

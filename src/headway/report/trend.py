"""Words and picture of `headway trend models`: what grew from year to year, and what did not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from headway.core import units
from headway.core.listing import Rows
from headway.report.output import Summary
from headway.report.pictures import years
from headway.report.pictures.scale import tick_text
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


LEAST = 3  # rows of a year that have a median
SERVER = 8  # chips of a domain from which a chip is a server's
CHIPS = years.Sides(name="chip", is_lit=lambda row: (row["scale_up_domain"] or 0) >= SERVER, lit=f"chips of domains of {SERVER} or more",
                    rest="cards, desktops, hosts")  # fmt: skip
MODELS = years.Sides(name="model", is_lit=lambda row: row["sparsity"] > 1, lit="mixtures of experts", rest="dense models")


def _middles(rows: Iterable[Row], key: str) -> list[Row]:
    """Median of a column in each year with enough rows, in the middle of their dates."""
    by_year: dict[int, list[Row]] = {}
    for row in rows:
        if row.get(key):
            by_year.setdefault(int(row["year"]), []).append(row)
    return [{"x": _median([years.year(row) for row in of]), "y": _median([row[key] for row in of]), "year": year}
            for year, of in sorted(by_year.items()) if len(of) >= LEAST]  # fmt: skip


def _grew(middles: Sequence[Row], unit: str, most: str = "") -> str:
    """First and last median with their years."""
    first, last = (f"{tick_text(row['y'], unit)}{of} in {row['year']}" for row, of in ((middles[0], most), (middles[-1], "")))
    return f"{first}, {last}"


def chips(rows: Rows, view: View) -> Picture:
    """Picture of multiply-adds per byte, drain time, least step and domain by year; chips of servers are lit."""
    servers = [row for row in rows if row["year"] is not None and CHIPS.is_lit(row)]
    middles = {key: _middles(servers, key) for key, *_ in years.CHIPS[:3]}
    ratio, drain = middles["hardware_ratio_bf16"], middles["drain_s"]
    title = "Chips by the year they came out"
    if ratio and drain:
        title = f"A median server chip does {_grew(ratio, 'count', ' multiply-adds per byte read')}; reading its whole HBM takes "
        title += " to ".join(f"{end(row['y'] for row in drain) * 1000:.0f}" for end in (min, max)) + " ms in any year"
    return years.picture(
        list(rows), years.CHIPS, CHIPS, middles, view, title=title,
        subtitle="each point is a chip of the catalogue by the year it came out; the line is the median of the lit ones",
        caption="FLOP/s grew faster than bandwidth, capacity only with it; a larger domain reads the weights of a model faster.",
    )  # fmt: skip


def drawing(rows: Rows, view: View) -> Picture:
    """Picture of parameters, context, KV cache and sparsity by release; mixtures of experts are lit."""
    middles = {key: _middles(rows, key) for key, *_ in years.MODELS[:3]}
    context, cache = middles["max_context"], middles["kv_bytes_per_token"]
    title = "Models by the month of their release"
    if context and cache:
        title = f"Median context: {_grew(context, 'token', ' tokens')}; KV cache of a token: {_grew(cache, 'byte')}"
    return years.picture(
        list(rows), years.MODELS, MODELS, middles, view, title=title,
        subtitle="each point is an open or published model by the month of its release; the line is the median of all",
        caption="Above, size and longest context; below, what a token keeps in the cache, and parameters in all for one at work.",
    )  # fmt: skip

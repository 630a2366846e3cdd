"""One claim of the ledger in full: the verdict first, its figures as a table, then what was said, its inputs and the laws behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from headway import ledger, output
from headway.explain import equation_of, shown, unit
from headway.formula import Step, Traced
from headway.ledger.claims import Claim, claims
from headway.listing import Listing
from headway.quantity import Known

VIEW = ("figure", "stated", "by_hand", "recomputed", "today", "verdict")
OPEN_END = 1e9  # a claim's range that ends here, or beyond, has no upper end


def words(row: dict[str, Any]) -> output.Words:
    """What a person reads about one claim."""
    claim = claims()[row["id"]]
    said = {"claim": row["claim"], "as_stated": row["stated_text"], "source": row["source"]}
    figures = [_figure(claim, part) for part in row["parts"]]
    return output.Words(headline(claim, row), VIEW if figures else tuple(said), list(_lines(claim, row)), Listing(figures or [said]))


def headline(claim: Claim, row: dict[str, Any]) -> str:
    """The answer in one line: the verdict, and the figure it rests on beside what was said."""
    cause = f" ({row['cause']})" if row["cause"] and row["verdict"] not in ("agrees", row["cause"]) else ""
    start = f"{row['id']} {row['verdict']}{cause}"
    part = next((part for part in row["parts"] if part["verdict"] == row["verdict"]), None)
    if part is None:
        return start + (": an observation, which no law gives" if claim.empirical else "")
    value, beside = output.shown(part["recomputed"], part["unit"]), _said(claim, part)
    others = [other["verdict"] for other in row["parts"] if other["verdict"] and other is not part]
    more = ", ".join(f"{others.count(verdict)} {verdict}" for verdict in dict.fromkeys(others))
    return f"{start}: {part['name']} is {value}, {beside}" + (f"; others: {more}" if more else "")


def _said(claim: Claim, part: dict[str, Any]) -> str:
    if part["name"] in claim.ranges:
        return f"claimed {_range(claim, part)}"
    if part["stated"] is not None:
        return f"stated {output.shown(part['stated'], part['unit'])}"
    return f"worked out by hand {output.shown(part['reference'], part['unit'])}"


def _range(claim: Claim, part: dict[str, Any]) -> str:
    low, high = claim.ranges[part["name"]]
    least, most = (output.shown(end, part["unit"]) for end in (low, high))
    if high >= OPEN_END * max(1.0, low):
        return f"at least {least}"
    return f"at most {most}" if low == 0 else f"{least} .. {most}"


def _figure(claim: Claim, part: dict[str, Any]) -> dict[str, str]:
    stated, by_hand, recomputed, today = (output.shown(part[key], part["unit"]) for key in ("stated", "reference", "recomputed", "today"))
    if part["name"] in claim.ranges:
        stated = _range(claim, part)
    verdict = part["verdict"] or "not judged"
    return {"figure": part["name"], "stated": stated, "by_hand": by_hand, "recomputed": recomputed, "today": today, "verdict": verdict}


def _lines(claim: Claim, row: dict[str, Any]) -> Iterator[str]:
    """What was said, why it differs, what it was worked out with, and by which laws."""
    if row["parts"]:
        yield f"claim: {row['claim']}"
        yield f"as stated: {row['stated_text'] or '-'}   [{row['source']}]"
    if any(part["verdict"] and part["name"] not in claim.ranges for part in row["parts"]):
        yield f"tolerance: {claim.tolerance}"
    if claim.worked:
        yield f"by hand: {claim.worked}"
    for key in ("cause", "note"):
        if row[key]:
            yield f"{key}: {row[key]}"
    if row["inputs"]:
        yield "inputs:"
        yield from _inputs(row["inputs"])
    if row["parts"]:
        yield "how (all of it with --explain recomputed):"
        part = next((part for part in row["parts"] if part["verdict"] == row["verdict"]), row["parts"][0])
        yield from _how(ledger.explain(row["id"])[part["name"]], part["name"], 1, set())


def _inputs(inputs: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Each input with its value, its source, and what the catalogue says now where that is another number."""
    texts = [(one["name"], output.shown(one["value"], one["unit"])) for one in inputs]
    wide = [max(len(cells[at]) for cells in texts) for at in (0, 1)]
    for (name, value), one in zip(texts, inputs, strict=True):
        date = f", {one['date']}" if one["date"] not in ("", "undated") else ""
        yield f"  {name:<{wide[0]}}  {value:<{wide[1]}}  {one['source']}{date}{_now(one)}"


def _now(one: dict[str, Any]) -> str:
    if one["today"] is None:
        return ""
    if one["today"] == one["value"]:
        return "; the catalogue says the same"
    now, then = (output.shown(one[key], one["unit"]) for key in ("today", "value"))
    return f"; the catalogue says {now if now != then else 'the same to three digits'}"


def _how(value: Any, name: str, depth: int, seen: set[str]) -> Iterator[str]:
    """The laws under a figure, one a line; the inputs they end in are listed above."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from _how(item, name, depth, seen)
    if not isinstance(value, Traced):
        return
    step = value.step
    told = f"{step.law.name}({_arguments(step)}) = {shown(value, unit(step.law))}"
    if told in seen:
        yield f"{'  ' * depth}{name} = {told}   (as above)"
        return
    seen.add(told)
    yield f"{'  ' * depth}{name} = {told}   {equation_of(step)}"
    for key, item in step.inputs.items():
        yield from _how(item, key, depth + 1, seen)


def _arguments(step: Step) -> str:
    """Inputs of the claim by their own names, results of other laws by the law's argument."""
    return ", ".join(item.name if isinstance(item, Known) else key for key, item in step.inputs.items())

"""Words of one claim of the lecture in full: verdict, figures, place in the argument, inputs, laws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from headway.core.equation import equation_of, inputs, text_with_unit, unit_of
from headway.core.listing import Listing, format_value
from headway.core.quantity import Sourced
from headway.core.trace import Call, Traced
from headway.evidence import claims as ledger
from headway.evidence.claims.claim import Claim, claims
from headway.evidence.lecture.chapters import statement
from headway.report import output
from headway.report.lecture import place_lines

CLAIM_VIEW = ("figure", "stated", "by_hand", "recomputed", "today", "verdict")
EXACT = 1e-9  # relative, of the claims that are algebra
OPEN_END = 1e9  # upper end from which a claim's range counts as open


def words(row: dict[str, Any]) -> output.Summary:
    """Summary of one claim."""
    claim = claims()[row["id"]]
    entry = {"claim": row["claim"], "as_stated": row["stated_text"], "source": row["source"]}
    figures = [_figure(claim, part) for part in row["parts"]]
    return output.Summary(
        headline(claim, row), CLAIM_VIEW if figures else tuple(entry), list(_lines(claim, row)), Listing(figures or [entry])
    )


def headline(claim: Claim, row: dict[str, Any]) -> str:
    """Line with the verdict, the recomputed figure behind it, and the stated figure."""
    cause = f" ({row['cause']})" if row["cause"] and row["verdict"] not in ("agrees", row["cause"]) else ""
    start = f"{row['id']} {row['verdict']}{cause}"
    part = next((part for part in row["parts"] if part["verdict"] == row["verdict"]), None)
    if part is None:
        return start + (": an observation, which no law gives" if claim.empirical else "")
    value, beside = format_value(part["recomputed"], part["unit"]), _claimed_value(claim, part)
    other_verdicts = [other_part["verdict"] for other_part in row["parts"] if other_part["verdict"] and other_part is not part]
    more = ", ".join(f"{other_verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(other_verdicts))
    further = f"; others: {more}" if more else ""
    if part["stated"] == 1 and not part["unit"] and abs(part["recomputed"] - 1) < EXACT:  # a form, whose test is a ratio of 1
        return f"{start}: {statement(claim.id)}; its test, {part['name']}, is {value}{further}"
    return f"{start}: {part['name']} is {value}, {beside}{further}"


def _claimed_value(claim: Claim, part: dict[str, Any]) -> str:
    if part["name"] in claim.ranges:
        return f"claimed {_range(claim, part)}"
    if part["stated"] is not None:
        return f"stated {format_value(part['stated'], part['unit'])}"
    return f"worked out by hand {format_value(part['reference'], part['unit'])}"


def _range(claim: Claim, part: dict[str, Any]) -> str:
    low, high = claim.ranges[part["name"]]
    least, most = (format_value(end, part["unit"]) for end in (low, high))
    if high >= OPEN_END * max(1.0, low):
        return f"at least {least}"
    return f"at most {most}" if low == 0 else f"{least} .. {most}"


def _figure(claim: Claim, part: dict[str, Any]) -> dict[str, str]:
    lecture, by_hand, recomputed, today = (format_value(part[key], part["unit"]) for key in ("stated", "reference", "recomputed", "today"))
    if part["name"] in claim.ranges:
        lecture = _range(claim, part)
    verdict = part["verdict"] or "not judged"
    return {"figure": part["name"], "stated": lecture, "by_hand": by_hand, "recomputed": recomputed, "today": today, "verdict": verdict}


def _lines(claim: Claim, row: dict[str, Any]) -> Iterator[str]:
    """Lines on the statement, the cause of a difference, the inputs, and the laws."""
    if row["parts"]:
        yield f"claim: {row['claim']}"
        yield from place_lines(row["id"])
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
        yield from law_lines(ledger.explain(row["id"])[part["name"]], part["name"], 1, set())


def _inputs(inputs: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Line per input: value, source, and the catalogue's current value if different."""
    texts = [(entry["name"], format_value(entry["value"], entry["unit"])) for entry in inputs]
    wide = [max(len(cells[at]) for cells in texts) for at in (0, 1)]
    for (name, value), item in zip(texts, inputs, strict=True):
        date = f", {item['date']}" if item["date"] not in ("", "undated") else ""
        yield f"  {name:<{wide[0]}}  {value:<{wide[1]}}  {item['source']}{date}{_catalogue_today(item)}"


def _catalogue_today(item: dict[str, Any]) -> str:
    if item["today"] is None:
        return ""
    if item["today"] == item["value"]:
        return "; the catalogue says the same"
    now, then = (format_value(item[key], item["unit"]) for key in ("today", "value"))
    return f"; the catalogue says {now if now != then else 'the same to three digits'}"


def law_lines(value: Any, name: str, depth: int, printed_lines: set[str]) -> Iterator[str]:
    """Line per law behind a figure, down to the inputs listed above."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from law_lines(item, name, depth, printed_lines)
    if not isinstance(value, Traced):
        return
    step = value.step
    called = equation_of(step) if step.is_operation else f"{step.law.name}({_arguments(step)})"
    call_text = f"{called} = {text_with_unit(value, unit_of(value))}"
    if call_text in printed_lines:
        yield f"{'  ' * depth}{name} = {call_text}   (as above)"
        return
    printed_lines.add(call_text)
    yield f"{'  ' * depth}{name} = {call_text}" + ("" if step.is_operation else f"   {equation_of(step)}")
    for key, item in inputs(step).items():
        yield from law_lines(item, key, depth + 1, printed_lines)


def _arguments(step: Call) -> str:
    """Arguments of a law: a claim's inputs by name, results of other laws by the name of the argument."""
    return ", ".join(item.name if isinstance(item, Sourced) else key for key, item in step.inputs.items())

"""Words of `headway lecture`: the front page, a chapter, a search, the points that summaries dispute, one claim in full."""

from __future__ import annotations

import dataclasses
import itertools
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from headway.core.equation import equation_of, inputs, text_with_unit, unit_of
from headway.core.listing import Listing, format_value
from headway.core.quantity import Sourced
from headway.core.trace import Call, Traced
from headway.evidence import claims as ledger
from headway.evidence.claims.claim import ENDS, KINDS, LAW, Claim, claims
from headway.evidence.claims.rows import ClaimRow, range_text
from headway.evidence.claims.second_verdict import SecondVerdicts
from headway.evidence.lecture import chapters as lecture
from headway.evidence.lecture.chapters import Chapter, DisputedPoint, claim_rows, statement
from headway.evidence.lecture.search import LectureMatches
from headway.reality.lab.catalogue import experiments_of
from headway.report.output import Summary
from headway.report.words import number_of

WIDTH = 100
FRONT = ("chapter", "title", "time", "agree", "differ", "open", "what_it_says")
MATCHES = ("id", "says", "verdict", "chapter")
FRONT_NEXT = 'Next: headway lecture 1 (a chapter), lecture RB-10 (a claim), lecture --find "spinning disk", lecture "why ...?" (a question)'
MORE_NEXT = (
    "More: lecture --model deepseek-v3 --on gb200-nvl72 (your model), lecture quiz (flashcards), lecture --disputed (summaries that err)"
)


def paragraph(text: str, indent: str = "") -> str:
    """A text in lines of WIDTH letters."""
    return textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def front_page(rows: Sequence[ClaimRow], measurements: SecondVerdicts) -> Summary:
    """All chapters in a table, with the counts of verdicts."""
    about = lecture.facts()
    pages = []
    totals = [0, 0, 0]
    for page in lecture.chapters():
        counts = lecture.verdict_counts(rows, page)
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        agree, differ, unsettled = counts
        pages.append({"chapter": page.label, "title": page.title, "time": page.time, "agree": agree, "differ": differ, "open": unsettled,
                      "what_it_says": page.says})  # fmt: skip
    agree, differ, unsettled = totals
    counts = f"{agree} agree, {differ} differ, {unsettled} open"
    headline = f"{about.speaker}'s lecture ({about.host}, {about.date}): of {len(rows)} claims, {counts}."
    after = [f"{about.title}: {about.says}", *counts_here([row.id for row in rows], measurements), FRONT_NEXT, MORE_NEXT]
    return Summary(headline, FRONT, after, Listing(pages))


def counts_here(claim_ids: Iterable[str], measurements: SecondVerdicts) -> list[str]:
    """What the runs of the lab say of some claims."""
    if not measurements:
        return []
    tested = {claim_id: measurements[claim_id].verdict for claim_id in claim_ids if claim_id in measurements}
    verdicts = list(tested.values())
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
    verdict_list = ", ".join(f"{claim_id} {verdict}" for claim_id, verdict in tested.items())
    text = f", {number_of(len(tested), 'claim')}: {counts} ({verdict_list})" if tested else ": none of these claims by these runs"
    return [f"Measured here{text}"]


def chapter_page(page: Chapter, rows: Sequence[ClaimRow], measurements: SecondVerdicts) -> Summary:
    """A chapter: its prose, and below each section its claims in the order of the argument."""
    agree, differ, unsettled = lecture.verdict_counts(rows, page)
    by_id = {row.id: row for row in rows}
    counts = {"claims": agree + differ + unsettled, "agree": agree, "differ": differ, "open": unsettled}
    after: list[str] = []
    for section in page.sections:
        after += ["", section.title, *(paragraph(text) for text in section.text.split("\n\n"))]
        after.append("\n".join(line for claim_id in section.statements for line in _claim_lines(by_id[claim_id], measurements)))
    after += ["", *counts_here(page.claim_ids(), measurements), _next_line(page)]
    return Summary(f"{_name(page)}: {page.says}.", tuple(counts), after, Listing([counts]))


def _name(page: Chapter) -> str:
    return f"{page.title}" if page.number == lecture.EXTRA else f"Chapter {page.label}, {page.title} ({page.time})"


def _claim_lines(row: ClaimRow, measurements: SecondVerdicts) -> Iterator[str]:
    """A claim in two lines: what it says; the lecture's figure, the recomputed figure and the verdict; a third on what was measured."""
    yield f"    {row.id:7}{statement(row.id)}"
    cause = f" ({row.cause})" if row.cause and row.cause != row.verdict else ""
    figure = lecture.lecture_text(row)
    origin = "follows from the lecture" if figure == "-" else f"lecture: {figure}"
    recomputed = lecture.recomputed_text(row)
    middle = "" if recomputed == "-" else f"; recomputed: {recomputed}"
    yield f"           {origin}{middle}; {row.verdict}{cause}" + (f"; by {row.basis}" if row.parts and row.basis != LAW else "")
    if second := measurements.get(row.id):
        yield f"           measured here: {second.verdict}, {second.inside} of {second.points} points inside"


def _next_line(page: Chapter) -> str:
    ids = page.claim_ids()
    following = [chapter.label for chapter in lecture.chapters() if chapter.number == page.number + 1]
    onward = f"headway lecture {following[0]} (the next chapter), " if following else "headway "
    return f"Next: {onward}lecture {ids[0]} (a claim in full), lecture quiz {page.label}; try: {'; '.join(page.commands)}"


def search_page(result: LectureMatches, rows: Sequence[ClaimRow], measurements: SecondVerdicts) -> Summary:
    """The chapter that answers, its passage, and the claims that match; that nothing in the lecture answers, where so."""
    if not result.chapters:
        headline, *remarks = *result.remarks, "Nothing in the lecture answers this."
        after = [*remarks, *_unknown_lines(result), "Next: headway lecture (its chapters), headway find WORDS (all of headway)"]
        return Summary(headline, after=after)
    best = result.chapters[0].chapter
    after: list[str] = []
    if result.passage:
        after = ["", result.passage.title, *(paragraph(text) for text in result.passage.text.split("\n\n")), ""]
    after += [*result.remarks, *_unknown_lines(result)]
    commands = (result.passage.commands if result.passage else ()) or best.commands
    further = ", ".join(f"{match.chapter.label} ({match.chapter.title})" for match in result.chapters[1:3])
    after.append(
        f"Next: headway lecture {best.label}" + (f"; other chapters: {further}" if further else "") + f"; try: {'; '.join(commands)}"
    )
    people = [
        {"id": row.id, "says": statement(row.id), "verdict": row.verdict, "chapter": lecture.chapter_of(row.id).label}
        for row in rows
    ]
    if measurements:
        people = [match | {"measured_here": here_fields(match["id"], measurements)["measured_here"]} for match in people]
    view = (*MATCHES, "measured_here") if measurements else MATCHES
    return Summary(f"{_name(best)} answers: {best.says}.", view, after, Listing(people) if people else None)


def _unknown_lines(result: LectureMatches) -> Iterator[str]:
    """Words of a question that the lecture does not have, each with the nearest."""
    for word, offers in result.unknown.items():
        yield f"{word!r} does not occur" + (f"; nearest: {', '.join(offers)}" if offers else "")


def disputed_page(points: Sequence[DisputedPoint]) -> Summary:
    """Points that summaries dispute: the right version in a table, who says what and why below."""
    people, after = [], []
    for point in points:
        rows = claim_rows(point)
        verdicts = ", ".join(f"{row.id} {row.verdict}" for row in rows)
        people.append({"topic": point.topic, "right": point.right, "claims_behind": verdicts})
        after.append("")
        after.append(paragraph(f"{point.topic}: {'; '.join(point.versions)}. Right: {point.right}. {point.reason}"))
        after += ["\n".join(line for row in rows for line in _claim_lines(row, {}))] if rows else []
    headline = f"On {len(points)} points published summaries of the lecture disagree or err; this is the right version of each."
    return Summary(headline, ("topic", "right", "claims_behind"), after, Listing(people))


def place_lines(claim_id: str) -> Iterator[str]:
    """Lines on where a claim stands: plain words, chapter, the claims before and after it."""
    page = lecture.chapter_of(claim_id)
    yield f"in words: {statement(claim_id)}"
    before, after = lecture.neighbours(claim_id)
    neighbours = (("follows", before), ("leads to", after))
    steps = [f"{word} {neighbour} ({statement(neighbour)})" for word, neighbour in neighbours if neighbour]
    yield f"chapter {page.label}, {page.title}, group {claims()[claim_id].title}: " + "; ".join(steps)


def claim_fields(claim_id: str) -> dict[str, Any]:
    """Keys of a claim's row that say where it stands."""
    return {"chapter": lecture.chapter_of(claim_id).label, "says": statement(claim_id)}


def here_fields(claim_id: str, measurements: SecondVerdicts) -> dict[str, Any]:
    """Keys of a claim's row on what was measured of it; none where no runs are read."""
    if not measurements:
        return {}
    second = measurements.get(claim_id)
    if second is None:
        return {"measured_here": None, "points_here": None, "inside_here": None, "runs_here": []}
    runs = [dataclasses.asdict(run) for run in second.runs]
    return {"measured_here": second.verdict, "points_here": second.points, "inside_here": second.inside, "runs_here": runs}


# -- one claim ----------------------------------------------------------------------------------------------------------------------

CLAIM_VIEW = ("figure", "stated", "by_hand", "recomputed", "today", "verdict")
EXACT = 1e-9  # relative, of the claims that are algebra
MOST_LAWS = 40  # lines of laws; a prediction by the step model has hundreds


def claim_page(row: dict[str, Any]) -> Summary:
    """Summary of one claim."""
    claim = claims()[row["id"]]
    entry = {"claim": row["claim"], "as_stated": row["stated_text"], "source": row["source"]}
    figures = [_figure(claim, part) for part in row["parts"]]
    return Summary(
        headline(claim, row), CLAIM_VIEW if figures else tuple(entry), list(_lines(claim, row)), Listing(figures or [entry])
    )


def headline(claim: Claim, row: dict[str, Any]) -> str:
    """Line with the verdict, the recomputed figure behind it, and the stated figure."""
    cause = f" ({row['cause']})" if row["cause"] and row["verdict"] not in ("agrees", row["cause"]) else ""
    start = f"{row['id']} {row['verdict']}{cause}"
    part = next((part for part in row["parts"] if part["verdict"] == row["verdict"]), None)
    if part is None:
        return f"{start}: {KINDS[claim.kind]}"
    value, beside = format_value(part["recomputed"], part["unit"]), _claimed_value(claim, part)
    if part["name"].endswith(ENDS):
        return f"{start}: {part['name'].rpartition(', ')[0]} is {interval(row['parts'])}, {beside}"
    other_verdicts = [other_part["verdict"] for other_part in row["parts"] if other_part["verdict"] and other_part is not part]
    more = ", ".join(f"{other_verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(other_verdicts))
    further = f"; others: {more}" if more else ""
    if part["stated"] == 1 and not part["unit"] and abs(part["recomputed"] - 1) < EXACT:  # a form, whose test is a ratio of 1
        return f"{start}: {statement(claim.id)}; its test, {part['name']}, is {value}{further}"
    return f"{start}: {part['name']} is {value}, {beside}{further}"


def interval(parts: Sequence[dict[str, Any]]) -> str:
    """Ends of a bound or of a prediction, which are its first two figures."""
    return range_text((parts[0]["recomputed"], parts[1]["recomputed"]), parts[0]["unit"])


def _claimed_value(claim: Claim, part: dict[str, Any]) -> str:
    if part["name"] in claim.ranges:
        return f"claimed {range_text(claim.ranges[part['name']], part['unit'])}"
    if part["stated"] is not None:
        return f"stated {format_value(part['stated'], part['unit'])}"
    return f"worked out by hand {format_value(part['reference'], part['unit'])}"


def _figure(claim: Claim, part: dict[str, Any]) -> dict[str, str]:
    lecture, by_hand, recomputed, today = (format_value(part[key], part["unit"]) for key in ("stated", "reference", "recomputed", "today"))
    if (ends := claim.range_of(part["name"])) is not None:
        lecture = range_text(ends, part["unit"])
    verdict = part["verdict"] or "not judged"
    return {"figure": part["name"], "stated": lecture, "by_hand": by_hand, "recomputed": recomputed, "today": today, "verdict": verdict}


def _lines(claim: Claim, row: dict[str, Any]) -> Iterator[str]:
    """Lines on the statement, the cause of a difference, the inputs, and the laws."""
    if row["parts"]:
        yield f"claim: {row['claim']}"
        yield from place_lines(row["id"])
        yield f"as stated: {row['stated_text'] or '-'}   [{row['source']}]"
        yield from (f"measured on your machine by: headway lab {entry.name} ({entry.title})" for entry in experiments_of(row["id"]))
    yield from _lines_here(row)
    if any(part["verdict"] and claim.range_of(part["name"]) is None for part in row["parts"]):
        yield f"tolerance: {claim.tolerance}"
    if row["parts"] and claim.kind != LAW:
        yield f"{claim.kind}: {KINDS[claim.kind]}"
    if claim.worked:
        yield f"by hand: {claim.worked}"
    for key in ("cause", "note"):
        if row[key]:
            yield f"{key}: {row[key]}"
    if row["inputs"]:
        yield "inputs:"
        yield from _inputs(row["inputs"])
    if row["parts"]:
        part = next((part for part in row["parts"] if part["verdict"] == row["verdict"]), row["parts"][0])
        value = ledger.explain(row["id"])[part["name"]]
        yield "how (all of it with --explain recomputed):"
        yield from itertools.islice(law_lines(value, part["name"], 1, set()), MOST_LAWS)
        if isinstance(value, Sourced):  # a fact as it is
            yield f"  {part['name']} = {value.name} = {text_with_unit(value, unit_of(value))}   {value.source}"


def _lines_here(row: dict[str, Any]) -> Iterator[str]:
    """The second verdict of a claim, and each run behind it."""
    if "measured_here" not in row:
        return
    if not row["runs_here"]:
        yield "measured here: none of these runs tests it"
        return
    yield f"measured here: {row['measured_here']}, {row['inside_here']} of {row['points_here']} points inside their predicted intervals"
    for run in row["runs_here"]:
        why = f"; no verdict: {run['why_none']}" if run["why_none"] else ""
        about = f"{run['machine']}, {run['date']}, predictions {run['sha256'][:16]}"
        yield f"  {run['file']}: headway lab {run['experiment']}, {run['inside']} of {run['points']} inside ({about}){why}"


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

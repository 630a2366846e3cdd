"""The answer to a question as a page shows it: every number, word and row made here, none in the page."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from headway.core import columns
from headway.core.errors import HeadwayError
from headway.core.listing import cell, clean, first_rows, format_value, heading, headings, visible
from headway.core.question import question_of
from headway.report import complete
from headway.report.pictures.frame import View
from headway.report.result import Result
from headway.web.follow import follow
from headway.web.picture import page_picture
from headway.web.question import PageQuestion

MOST_ROWS = 200  # of the table of a page; CSV and JSON hold them all
MOST_SENT_ROWS = 20_000  # of one that is sent as a file: as many as a browser shows at once


def reply(question: PageQuestion, result: Result) -> dict[str, Any]:
    """The parts of an answer that a page asked for."""
    answer: dict[str, Any] = {"command": shlex.join(result.command)}
    if "answer" in question.parts:
        answer["answer"] = result.answer
        answer["follow"] = follow(question, result)
    if "figures" in question.parts:
        answer["figures"] = figures(result, question.is_moving)
    if "table" in question.parts:
        answer["table"] = table(result, MOST_SENT_ROWS if "html" in question.parts else MOST_ROWS)
    if "pictures" in question.parts:
        answer["pictures"], answer["undrawn"] = pictures(question, result)
    if "notes" in question.parts:
        answer |= _notes(result)
    if "json" in question.parts:
        answer["json"] = result.to_json()
    if "csv" in question.parts:
        answer["csv"] = result.to_csv()
    return answer


def _notes(result: Result) -> dict[str, Any]:
    helps = [dataclasses.asdict(change) for change in result.helps]
    checked = result.checked and result.checked.get("answer", "")
    return clean({"binds": result.binds, "helps": helps, "launch": result.launch, "checked": checked, "notes": result.notes})


# -- numbers --------------------------------------------------------------------------------------------------------------------


def figures(result: Result, is_moving: bool = False) -> list[dict[str, Any]]:
    """Every number of the first row, in words, for the page to choose from; which of them have a tree is told at rest only."""
    known = result.columns
    for row in result._answer.rows:
        numbers = [key for key, value in row.items() if _is_number(value) or (isinstance(value, str) and value)]
        trees = {} if is_moving else {key: {"explains": explains(result, key)} for key in numbers}
        return [
            {"key": key, "name": heading(key), "text": format_value(clean(row[key]), known[key].unit), "doc": known[key].doc, "row": 0}
            | trees.get(key, {})
            for key in numbers
        ]
    return []


def explains(result: Result, key: str) -> bool:
    """Whether a column's numbers have a tree behind them, as its first row tells."""
    try:
        result.explain(key, 0)
    except HeadwayError:
        return False
    return True


def _is_number(value: Any) -> bool:
    return isinstance(clean(value), int | float) and not isinstance(value, bool)


# -- the table ------------------------------------------------------------------------------------------------------------------


def table(result: Result, most: int = MOST_ROWS) -> dict[str, Any]:
    """The table that the command prints, its first rows; a cell that is a number of the data says which, so that it can be explained."""
    words = result._described.words
    rows = words.people or result._answer.rows
    people = first_rows(rows, most)
    keys = visible(people, words.view or rows.keys())
    data = first_rows(result._answer.rows, most * 2)
    places = _places(people, data) if words.people else list(range(len(people)))
    columns_known = set(result.keys())
    trees = {column for column in dict.fromkeys(key.split("~")[0] for key in keys) if column in columns_known and explains(result, column)}
    known = result.columns
    return {
        "columns": [
            {"key": key, "name": name, "doc": _doc(key, known), "number": _is_column_of_numbers(key, people)}
            for key, name in zip(keys, headings(keys), strict=True)
        ],
        "rows": [[_cell(key, row, place, data, trees) for key in keys] for row, place in zip(people, places, strict=True)],
        "more": len(rows) - len(people), "after": list(words.after),
    }  # fmt: skip


def _doc(key: str, known: Mapping[str, columns.Column]) -> str:
    parts = [known[part].doc for part in key.split("~") if part in known]
    return parts[0] if parts else ""


def _is_column_of_numbers(key: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    return any(_is_number(row.get(part)) for row in rows for part in key.split("~"))


def _cell(key: str, row: Mapping[str, Any], place: int | None, data: Sequence[Mapping[str, Any]], trees: set[str]) -> dict[str, Any]:
    text = {"text": cell(key, row)}
    column = key.split("~")[0]
    if place is not None and column in trees and _is_number(row.get(column)) and _is_number(data[place].get(column)):
        text |= {"row": place, "key": column}
    return text


def _places(people: Sequence[Mapping[str, Any]], data: Sequence[Mapping[str, Any]]) -> list[int | None]:
    """For each row for people the row of the data that it shows; None for a row of its own."""
    places: list[int | None] = []
    start = 0
    for row in people:
        place = next((at for at in range(start, len(data)) if _shows(row, data[at])), None)
        places.append(place)
        start = start if place is None else place + 1
    return places


def _shows(row: Mapping[str, Any], datum: Mapping[str, Any]) -> bool:
    shared = [key for key in row if key in datum and _is_number(row[key])]
    return bool(shared) and all(clean(row[key]) == clean(datum[key]) for key in shared)


# -- pictures -------------------------------------------------------------------------------------------------------------------


def pictures(question: PageQuestion, result: Result) -> tuple[list[dict[str, Any]], str]:
    """The pictures of an answer, all or the one asked for, and why there is none."""
    answer = result._answer
    sentences = dict(question_of(question.verb).pictures)
    names = [question.picture] if question.picture else list(answer.pictures) or [""]
    view = View(width=question.width, theme=question.theme, words=False, axes=dict(question.axes))
    page_pictures: list[dict[str, Any]] = []
    reason = ""
    for name in names:
        try:
            drawing = page_picture(name, complete.draw(answer, view, name), sentences.get(name, ""), moving=question.is_moving)
            page_pictures.append({field.name: getattr(drawing, field.name) for field in dataclasses.fields(drawing)})
        except HeadwayError as error:
            reason = " ".join(str(error).split())
    return page_pictures, "" if page_pictures else reason


# -- one number -----------------------------------------------------------------------------------------------------------------


def explanation(question: PageQuestion, result: Result) -> dict[str, Any]:
    """The tree of laws and sources behind one number, each value in words."""
    cell_ = question.explain
    if cell_ is None:
        return {}
    tree = result.explain(cell_.key, cell_.row)
    flags = f"--explain {cell_.key}"
    return {
        "key": cell_.key,
        "name": heading(cell_.key),
        "tree": _spoken(tree.to_json()),
        "command": f"{shlex.join(result.command)} {flags}",
    }


def _spoken(node: Any) -> Any:
    """A tree with the text of each value beside it; the name of an input stands at the input."""
    if isinstance(node, list):
        return [_spoken(item) for item in node]
    if not isinstance(node, dict):
        return node
    spoken = {key: _spoken(value) if key in ("inputs", "taken") or isinstance(value, dict | list) else value for key, value in node.items()}
    if "value" in node and not isinstance(node["value"], dict | list):
        unit = str(node.get("unit") or "")
        spoken["text"] = format_value(node["value"], "" if unit == "*" else unit)
    return spoken

"""The answer to a question as a page shows it: every number, word and row made here, none in the page."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shlex
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.core.errors import HeadwayError
from headway.core.listing import cell as cell_text
from headway.core.listing import clean, first_rows, format_value, heading, headings, visible
from headway.core.question import question_of
from headway.performance.calibration.key import TRAINING
from headway.report import output
from headway.report.pictures.frame import View, thinned
from headway.report.result import Result
from headway.web import pages, permitted
from headway.web.question import PROFILE, Cell, PageQuestion

if TYPE_CHECKING:
    from headway.report.pictures.frame import Picture

MOST_ROWS = 200  # of the table of a page; CSV and JSON hold them all
MOST_SENT_ROWS = 20_000  # of one that is sent as a file: as many as a browser shows at once
DEGREES = ("tp", "ep", "dp", "pp", "cp", "replicas", "redundant")
FOLLOWED = ("prompt", "output", "chip-price", "price-metric", "engine", "set", "hit-rate", "attention", "kv-share", "calibration")
OWN_PROFILE = "runs"  # name of the profile that a page's tab keeps
SEARCHED = ("best", "standard")  # kinds of first rows that a search chose
TIPS = "_tips"  # of the name of a set of rows: what a page says of points
BY_DEFINITION = "by definition"  # source of what is one or none
MOST_NEAR = 5  # numbers that a sentence on a number names
KIND_WORDS = {"datasheet": "of data sheets", "config": "of model configs", "input": "of the question", "default": "by default",
              "constant": "constant", "estimate": "estimated", "claim": "of claims"}  # fmt: skip
LEFT_OUT = ("datasets", "description", "$schema")  # rows go apart, the page says the words, and the library warns of another's schema


def reply(question: PageQuestion, result: Result) -> dict[str, Any]:
    """The parts of an answer that a page asked for."""
    answer: dict[str, Any] = {"command": "\n".join([*_calibrated_first(question), shlex.join(result.command)])}
    if "answer" in question.parts:
        answer |= {"answer": result.answer, "follow": follow(question, result), "uses": uses(question, result)}
    if "figures" in question.parts:
        answer |= {"figures": figures(result, question.is_moving), "whose": whose(result)}
    if "table" in question.parts:
        answer["table"] = table(result, MOST_SENT_ROWS if "html" in question.parts else MOST_ROWS)
    if "pictures" in question.parts:
        answer["pictures"], answer["undrawn"] = pictures(question, result)
    if "notes" in question.parts:
        helps, checked = [dataclasses.asdict(change) for change in result.helps], result.checked and result.checked.get("answer", "")
        answer |= clean({"binds": result.binds, "helps": helps, "launch": result.launch, "checked": checked, "notes": result.notes})
    if "json" in question.parts:
        answer["json"] = result.to_json()
    if "csv" in question.parts:
        answer["csv"] = result.to_csv()
    return answer


def _calibrated_first(question: PageQuestion) -> Iterator[str]:
    """The command that makes the profile of own runs that came with a question, of the files and the facts that its runs name."""
    for profile in (file for file in question.uploads if file.tool == PROFILE):
        deployments = tomllib.loads(profile.text)["deployments"]
        files = dict.fromkeys(run["file"] for deployment in deployments for run in deployment["runs"])
        words = ["headway", "calibrate", *files]
        if deployments[0]["mode"] == TRAINING:
            words.append("--training")
        else:
            facts = [
                {"on": f"{entry['chips']}x{entry['chip'].replace('_', '-')}", "weights": entry["weights"]}
                | dict(part.split("=") for part in entry["layout"].split())
                for entry in deployments
            ]
            for name, value in facts[0].items():
                words += [f"--{name}", value] if value and all(fact.get(name) == value for fact in facts) else []
        yield shlex.join([*words, "--save", profile.name.removesuffix(".toml")])


def follow(question: PageQuestion, result: Result) -> dict[str, Any] | None:
    """The question that a slider of the plan's page asks while it moves: `serve` of the plan's best layout at its batch.

    None where the answer is no plan, or its layout has two pools.
    """
    row = clean(_first(result))
    return layout_question(question, row) if row.get("kind") == "best" else None


def layout_question(question: PageQuestion, row: Mapping[str, Any]) -> dict[str, Any] | None:
    """The question `serve` of a layout that a plan lists; None where it has two pools, or the question is no plan."""
    if question.verb != "plan" or row.get("prefill_replicas") is not None or not row.get("batch"):
        return None
    flags: dict[str, Any] = {"on": row["system"]}
    flags |= {name: str(int(row[name])) for name in DEGREES if row.get(name) and row[name] != (0 if name == "redundant" else 1)}
    flags |= {name: row[name] for name in ("weights", "kv") if row.get(name)}
    flags |= {name: list(value) if isinstance(value, tuple) else value for name, value in question.flags if name in FOLLOWED}
    flags = {name: f"{row[name]:.10g}" for name in ("prompt", "output") if row.get(name)} | flags  # those that plan assumes too
    flags["batch"] = str(int(row["batch"]))  # the picture goes over all batches and marks this one
    return {"verb": "serve", "words": [row["model"]], "flags": flags}


def uses(question: PageQuestion, result: Result) -> list[dict[str, str]]:
    """Pages whose answers can go by runs of one's own: plan and serve of the deployment with the most of them, each with its address."""
    row = clean(_first(result)) if question.verb == "calibrate" else {}
    on = "{chips}x{chip}".format(**row).removeprefix("1x") if row else ""
    if not row or row["mode"] == TRAINING or not permitted.is_machine(on) or not permitted.is_model(row["model"]):
        return []
    layout = {name: value for name, _, value in (part.partition("=") for part in row["layout"].split()) if name in DEGREES}
    formats = {name: row[name] for name in ("weights", "kv") if row[name]}
    plan_flags = {"on": on, "calibration": OWN_PROFILE} | ({"engine": row["engine"]} if row["engine"] else {})
    return [
        {"title": "Use them in my plan", "at": pages.address("plan", [row["model"]], plan_flags, without=("launch",))},
        {"title": "Try their layout", "at": pages.address("serve", [row["model"]], plan_flags | layout | formats, without=("tp",))},
    ]


# -- numbers --------------------------------------------------------------------------------------------------------------------


def figures(result: Result, is_moving: bool = False) -> list[dict[str, Any]]:
    """Every number of the first row, in words, for the page to choose from; which of them have a tree is told at rest only."""
    known, row = result.columns, _first(result)
    numbers = [key for key, value in row.items() if _is_number(value) or (isinstance(value, str) and value)]
    trees = {} if is_moving else {key: {"explains": explains(result, key)} for key in numbers}
    return [
        {"key": key, "name": heading(key), "text": format_value(clean(row[key]), known[key].unit), "doc": known[key].doc, "row": 0}
        | trees.get(key, {})
        for key in numbers
    ]


def _first(result: Result) -> Mapping[str, Any]:
    """The first row, without the work of making the others; empty where there is none."""
    return next(iter(first_rows(result._answer.rows, 1)), {})


def whose(result: Result) -> str:
    """Whose the numbers are where they answer nothing: those of the nearest layout of a search, or of what was asked; and why."""
    row = clean(_first(result))
    if not row.get("kind") or not row.get("why"):
        return ""
    layout = f"{'the nearest' if row['kind'] in SEARCHED else 'this'} layout on {row['system']}" if row.get("system") else "what was asked"
    return f"The numbers are of {layout}, which falls short: {row['why']}."


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

    def described(key: str, name: str) -> dict[str, Any]:
        parts = key.split("~")
        doc = next((known[part].doc for part in parts if part in known), "")
        return {"key": key, "name": name, "doc": doc, "number": any(_is_number(row.get(part)) for row in people for part in parts)}

    def cell(key: str, row: Mapping[str, Any], place: int | None) -> dict[str, Any]:
        column = key.split("~")[0]
        is_explained = place is not None and column in trees and _is_number(row.get(column)) and _is_number(data[place].get(column))
        return {"text": cell_text(key, row)} | ({"row": place, "key": column} if is_explained else {})

    return {
        "columns": [described(key, name) for key, name in zip(keys, headings(keys), strict=True)],
        "rows": [[cell(key, row, place) for key in keys] for row, place in zip(people, places, strict=True)],
        "more": len(rows) - len(people), "after": list(words.after),
    }  # fmt: skip


def _places(people: Sequence[Mapping[str, Any]], data: Sequence[Mapping[str, Any]]) -> list[int | None]:
    """For each row for people the row of the data that it shows; None for a row of its own."""

    def shows(row: Mapping[str, Any], datum: Mapping[str, Any]) -> bool:
        shared = [key for key in row if key in datum and _is_number(row[key])]
        return bool(shared) and all(clean(row[key]) == clean(datum[key]) for key in shared)

    places: list[int | None] = []
    start = 0
    for row in people:
        places.append(next((at for at in range(start, len(data)) if shows(row, data[at])), None))
        start = start if places[-1] is None else places[-1] + 1
    return places


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
            picture = output.draw(answer, view, name)
        except HeadwayError as error:
            reason = " ".join(str(error).split())
        else:
            figure = page_picture(picture, question.is_moving)
            if figure["shape"] == question.shape:
                del figure["spec"]
            _picks(question, answer, figure["data"])
            page_pictures.append({"name": name, "about": sentences.get(name, ""), **figure})
    return page_pictures, "" if page_pictures else reason


def _picks(question: PageQuestion, answer: output.Answer, data: Mapping[str, Sequence[dict[str, Any]]]) -> None:
    """What picking a point of a picture asks: the same with the point's value of a flag, or the layout that it stands for."""
    tips = [tip for name, rows in data.items() if name.endswith(TIPS) for tip in rows]
    rows = list(answer.rows) if any("row" in tip for tip in tips) else []
    for tip in tips:
        if "flag" in tip:
            tip["pick"] = {"flags": {tip.pop("flag"): tip.pop("word")}}
        elif "row" in tip and (layout := layout_question(question, clean(rows[tip.pop("row")]))):
            tip["pick"] = layout


def page_picture(picture: Picture, moving: bool) -> dict[str, Any]:
    """A picture as a page draws it: the specification without its rows, the rows by name, and a hash of what does not move.

    Rows that stand inside it get names, because only named rows can move; a moving one has fewer of them. The ends of its axes are
    what a page sends back while a slider moves.
    """
    data: dict[str, Any] = {}
    bare = _without_rows({key: value for key, value in picture.spec.items() if key not in LEFT_OUT}, data)
    data |= picture.spec.get("datasets", {})
    if moving:
        data = {key: thinned(rows) for key, rows in data.items()}
    return {
        "spec": bare, "data": data,
        "shape": hashlib.blake2b(json.dumps(bare, sort_keys=True).encode(), digest_size=12).hexdigest(),
        "title": picture.title, "subtitle": picture.subtitle, "caption": picture.caption, "alt": picture.alt,
        "axes": {axis: list(ends) for axis, ends in picture.axes.items()},
    }  # fmt: skip


def _without_rows(node: Any, data: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_without_rows(item, data) for item in node]
    if not isinstance(node, dict):
        return node
    bare = {}
    if node.get("type") == "log":  # Vega warns of the other on it
        node = {key: value for key, value in node.items() if key != "zero"}
    for key, value in node.items():
        if key == "data" and isinstance(value, dict) and isinstance(value.get("values"), list):
            name = value.get("name") or f"rows_{len(data)}"
            data[name] = clean(value["values"])
            bare[key] = {"name": name}
        else:
            bare[key] = _without_rows(value, data)
    return bare


# -- one number -----------------------------------------------------------------------------------------------------------------


def explanation(cell: Cell, result: Result) -> dict[str, Any]:
    """The tree of laws and sources behind one number, each value in words, and a sentence: from which numbers it is worked out at once, and
    on how many facts of which kind it rests."""
    result_tree, command = result.explain(cell.key, cell.row), f"{shlex.join(result.command)} --explain {cell.key}"
    tree, name = _spoken(result_tree.to_json()), heading(cell.key)
    says = f"{name[:1].upper()}{name[1:]} is {tree.get('text', '')}"
    if "equation" in tree:
        inputs = {heading(key.removesuffix("_s")): node for key, node in tree.get("inputs", {}).items() if isinstance(node, dict)}
        near = [f"{title} {node['text']}" for title, node in inputs.items() if "text" in node and node.get("source") != BY_DEFINITION]
        facts = Counter(kind for kind, *_ in set(_facts(tree)))
        by_count = sorted(facts.items(), key=lambda item: (-item[1], item[0]))
        kinds = ", ".join(f"{count:,} {KIND_WORDS.get(kind, kind)}" for kind, count in by_count)
        worked = f", worked out from {', '.join(near[:MOST_NEAR])}" if near else ""
        says += f"{worked}. It rests on {facts.total():,} fact{'s' * (facts.total() != 1)}: {kinds}."
    else:
        says += f": {tree.get('source', '')}."
    return {"key": cell.key, "name": name, "says": says, "tree": tree, "command": command}


def _facts(node: object) -> Iterator[tuple[str, str, Any]]:
    """Kind, name and value of each fact in a tree; what is one or none by definition is no fact."""
    if isinstance(node, list):
        for item in node:
            yield from _facts(item)
    elif isinstance(node, dict) and "kind" in node and "equation" not in node:
        if node.get("source") != BY_DEFINITION and node.get("value") is not None:
            yield node["kind"], str(node.get("name")), node["value"]
    elif isinstance(node, dict):
        yield from _facts(list((node.get("inputs", {}) if "value" in node else node).values()))


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

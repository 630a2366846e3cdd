"""The lecture's pages as a folder of plain files: the page's own code as one script, and its answers made ahead on a grid of its sliders.

A browser that opens a page from a disk reads no modules and fetches nothing, so that code and answers are scripts. An answer is found by
the question that the page would have sent (web/static/stored.js in place of web/static/ask.js).
"""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import re
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import headway
from headway.cli.command import command
from headway.core import progress
from headway.core.errors import BadFile, HeadwayError
from headway.core.files import save
from headway.evidence.lecture import chapters as lecture
from headway.report.result import Result
from headway.web import board, single_file
from headway.web.question import Cell, question
from headway.web.reply import TIPS, explanation, reply
from headway.web.worker import one_line

WIDTHS = (320, 560)  # px of a picture: of a telephone, and beside the words
SECTION_STOPS, CLAIM_STOPS = 13, 5  # of a slider of what a section draws, and of a claim that is opened
PAIR = 2  # sliders of which every pair of positions is stored
DIGITS = 6  # of a place on the paper
ALONE = "These answers were computed ahead, one slider at a time: moving one puts the others back."
ASKS = "Computed ahead; other values, flashcards and the card of your own model ask headway itself:"


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteSize:
    """What was written."""

    chapters: int
    answers: int
    size: int
    cpu_s: float


@dataclass(slots=True)
class AnswerFile:
    """Answers of one file by their questions; specifications of pictures once each."""

    keys: dict[str, int] = field(default_factory=dict)
    answers: list[Any] = field(default_factory=list)
    specs: dict[str, Any] = field(default_factory=dict)

    def add(self, answer: Any, *queries: dict[str, Any]) -> None:
        """Keep an answer under one question, or under several that have it."""
        for by_width in answer.get("drawn", {}).values() if isinstance(answer, dict) else ():
            for picture in itertools.chain(*by_width.values()):
                self.specs[picture["shape"]] = picture.pop("spec")
        for query in queries:
            self.keys[json.dumps(query, sort_keys=True, separators=(",", ":"), ensure_ascii=False)] = len(self.answers)
        self.answers.append(answer)

    def script(self, name: str) -> str:
        """The file: its JSON, packed."""
        text = json.dumps({"keys": self.keys, "answers": self.answers, "specs": self.specs}, allow_nan=False, separators=(",", ":"))
        packed = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
        return f"headwayStored[{json.dumps(name)}]={json.dumps(packed)};\n"


def page_names(labels: Sequence[str] = ()) -> dict[str, str]:
    """Files of the pages of chapters, all without labels, by the chapter's label: the first is what a folder opens with."""
    names = [chapter.label for chapter in lecture.chapters() if not labels or chapter.label in labels]
    return {label: f"chapter-{label}.html".replace("+", "checks") if at else "index.html" for at, label in enumerate(names)}


def write(folder: Path, labels: Sequence[str] = ()) -> SiteSize:
    """Write the pages of chapters, all without labels, with every answer that they show."""
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / "page.js").is_file())):
        raise BadFile(folder, "holds something else; --static writes to a new folder, or to one that it wrote")
    start = time.process_time()
    selection = [chapter for chapter in lecture.chapters() if not labels or chapter.label in labels]
    names = page_names(labels)
    contents: dict[str, str | bytes] = {names[chapter.label]: _shell(chapter, names[selection[0].label]) for chapter in selection}
    contents |= {"page.js": script("chapter.js"), "style.css": _own_file("style.css"), "vega.js": single_file.script()}
    sizes, answers = [_save(folder, name, content) for name, content in contents.items()], 0
    progress.expect(len(selection))
    for chapter in selection:
        for name, answer_file in _answer_files(chapter.label, names):
            sizes.append(_save(folder, f"answers/{name}.js", answer_file.script(name)))
            answers += len(answer_file.answers)
        progress.tick(1)
    return SiteSize(chapters=len(selection), answers=answers, size=sum(sizes), cpu_s=time.process_time() - start)


def _save(folder: Path, name: str, content: str | bytes) -> int:
    """Write a file of the site; its bytes."""
    save(folder / name, content, makes_folder=True)
    return (folder / name).stat().st_size


# -- code -----------------------------------------------------------------------------------------------------------------------

IMPORT = re.compile(r"^import \{ (.+) \} from '\./([\w.]+)';\n", re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?(?:class|function|const) (\w+))", re.MULTILINE)
SERVED, STORED = "ask.js", "stored.js"  # of which the second stands in the place of the first


def _own_file(name: str) -> str:
    return (files("headway") / "web" / "static" / name).read_text(encoding="utf-8")


def script(entry: str) -> str:
    """A module of the page and those that it imports as one script without modules: each a function that gives what it exports."""
    modules: dict[str, str] = {}

    def variable(name: str) -> str:
        return "of_" + name.removesuffix(".js")

    def add(name: str) -> None:
        if name in modules:
            return
        text = _own_file(STORED if name == SERVED else name)
        for _, module in IMPORT.findall(text):
            add(module)
        text = IMPORT.sub(lambda match: f"const {{ {match[1]} }} = {variable(match[2])};\n", text)
        exports = ", ".join(name for _, name in EXPORT.findall(text))
        body = EXPORT.sub(r"\1", text)
        modules[name] = f"const {variable(name)} = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();\n"

    add(entry)
    return '"use strict";\n' + "".join(modules.values())


def _shell(chapter: lecture.Chapter, first: str) -> str:
    """The page of a chapter: the frame of the page that is served, with the chapter's words until its script has drawn it."""
    text = _own_file("index.html").replace("/static/", "").replace('type="module" src="app.js"', 'src="page.js" defer')
    lede = f'<header class="lede"><h1>{escape(chapter.title)}</h1><p>{escape(chapter.says[:1].upper() + chapter.says[1:])}.</p></header>'
    words = "".join(f"<h2>{escape(part.title)}</h2><p>{escape(part.text.strip())}</p>" for part in chapter.sections)
    about = f"Every number on these pages was computed ahead by headway {headway.__version__}; a slider has the positions that are stored."
    for pattern, replacement in {
        r"<title>.*?</title>": f"<title>{escape(chapter.title)} · headway</title>",
        r"<body>": f'<body data-chapter="{chapter.label}">',
        r'\s*<nav id="pages".*?</nav>': "",
        r'(class="wordmark" href=)"/"': rf'\1"{first}"',
        r"(<main[^>]*>).*?(</main>)": rf'\1{lede}<div id="board">{words}</div>\2',
        r"(<footer[^>]*>).*?(</footer>)": rf"\1<p>{about}</p>\2",
    }.items():
        text = re.sub(pattern, replacement, text, count=1, flags=re.DOTALL)
    return text


# -- answers --------------------------------------------------------------------------------------------------------------------


def _answer_files(label: str, names: dict[str, str]) -> Iterator[tuple[str, AnswerFile]]:
    """Each of a chapter's claims, what its sections draw, and the chapter itself, by the names of their files."""
    chapter = board.answer("chapter", {"chapter": label})
    contents = [entry | {"file": names[entry["label"]]} for entry in chapter["contents"] if entry["label"] in names]
    stages = [section["stage"] or {} for section in chapter["sections"]]
    for stage in stages:
        if "drawing" in stage:
            yield stage["drawing"], _drawing_file(stage["drawing"])
        if "verb" in stage:
            yield stage["verb"], _verb_file(stage)
    for claim_id in dict.fromkeys(claim["id"] for section in chapter["sections"] for claim in section["claims"]):
        yield claim_id, _claim_file(claim_id, any(stage.get("claim") == claim_id for stage in stages))
    chapter_file = AnswerFile()
    chapter_file.add(chapter | {"contents": contents, "asks": ASKS}, {"kind": "chapter", "chapter": label})
    yield f"chapter-{label}", chapter_file


def _drawing_file(name: str) -> AnswerFile:
    """A drawing at every position of its controls."""
    to, controls = AnswerFile(), board.drawing({"name": name})["controls"]
    for values in itertools.product(*(_control_values(control) for control in controls)):
        positions = {control["name"]: value for control, value in zip(controls, values, strict=True) if value is not None}
        to.add(board.drawing({"name": name, **positions}), {"kind": "drawing", "name": name, **positions})
    return to


def _control_values(control: dict[str, Any]) -> list[float | None]:
    """Every position of a control, and None while nobody has moved it."""
    low, step = control["low"], control["step"]
    values = [round(low + step * place, 9) for place in range(round((control["high"] - low) / step) + 1)]
    return [None, *(int(value) if value == int(value) else value for value in values)]


def _verb_file(stage: dict[str, Any]) -> AnswerFile:
    """A section that asks a verb, at every pair of positions of its sliders."""
    to, homes = AnswerFile(), {name: stage["flags"][name] for name in stage["sliders"]}
    for name, stops in stage["sliders"].items():
        at = next((place for place, stop in enumerate(stops) if stop["word"] == homes[name]), 0)
        stage["sliders"][name], _ = _thinned(stops, at, SECTION_STOPS)
    axes: dict[str, Any] = {}
    combinations = itertools.product(*([stop["word"] for stop in stops] for stops in stage["sliders"].values()))
    for words in sorted(combinations, key=lambda words: words != tuple(homes.values())):  # the first of them gives the axes
        query = {"verb": stage["verb"], "words": stage["words"], "flags": stage["flags"] | dict(zip(homes, words, strict=True))}
        answer, axes = _pictured(query, axes)
        to.add(answer, query)
    return to


def _thinned(stops: Sequence[dict[str, str]], at: int, count: int) -> tuple[list[dict[str, str]], int]:
    """Some of a slider's stops, evenly spaced, with the one at which it stands; and its place among them."""
    places = sorted({at, *(round(place * (len(stops) - 1) / (count - 1)) for place in range(count))})
    return [stops[place] for place in places], places.index(at)


def _claim_file(claim_id: str, is_drawn: bool) -> AnswerFile:
    """A claim with its curve, at the positions of its sliders: one moved at a time, or every pair of two."""
    to, claim, query = AnswerFile(), board.answer("claim", {"id": claim_id}), {"kind": "claim", "id": claim_id}
    sentence: dict[str, Any] = {"verb": "lecture", "words": [claim_id], "flags": {}}
    by_name = {entry["name"]: entry for entry in claim["inputs"]}
    along, near = by_name.get(claim["axis"]), [by_name[name] for name in claim["related"]]
    for entry in claim["inputs"]:
        if entry in near:
            entry["stops"], entry["at"] = _thinned(entry["stops"], entry["at"], SECTION_STOPS if is_drawn else CLAIM_STOPS)
        elif entry is not along:
            entry["stops"] = []
    is_pair = is_drawn and len(near) == PAIR
    to.add(claim | {"isStored": True} | ({"alone": ALONE} if len(near) > 1 and not is_pair else {}), query, query | {"with": []})
    if claim["explains"]:
        cell = {"row": 0, "key": "recomputed"}
        to.add(explanation(Cell(**cell), _result(sentence)), sentence | {"explain": cell})
    if along is None:  # no slider, and so no sentence either
        return to
    axes: dict[str, Any] = {}
    for spellings in _positions(near, is_pair):
        curves, sentences = [], []
        for words_by_name in spellings:
            changes = [f"{name}={word}" for name, word in words_by_name.items()]
            curves.append(sentence | {"flags": {"with": [f"{along['name']}={along['span']}", *changes]}})
            sentences.append(sentence | {"flags": {"with": changes}} if changes else sentence)
        answer, axes = _pictured(curves[0], axes)
        if spellings[0] and "table" in answer:
            answer["table"]["rows"] = []  # those at the lecture's own values are enough to be stored
        to.add(answer, *map(_sorted, curves))
        to.add(_sentence(sentences[0]), *map(_sorted, sentences))
    return to


def _positions(near: Sequence[dict[str, Any]], is_pair: bool) -> Iterator[list[dict[str, str]]]:
    """Positions of a claim's sliders, that of the lecture first: each in the ways to say it, since a slider may come back."""
    homes = {entry["name"]: entry["stops"][entry["at"]]["word"] for entry in near}
    yield [{}, *({name: home} for name, home in homes.items()), *([homes] if is_pair else [])]
    words = {entry["name"]: [stop["word"] for stop in entry["stops"]] for entry in near}
    if not is_pair:
        yield from ([{name: word}] for name in homes for word in words[name] if word != homes[name])
        return
    for both in itertools.product(*words.values()):
        words_by_name = dict(zip(words, both, strict=True))
        away = {name: word for name, word in words_by_name.items() if word != homes[name]}
        if away:
            yield [away, words_by_name] if away != words_by_name else [words_by_name]


def _sorted(query: dict[str, Any]) -> dict[str, Any]:
    """A question with its changes in order, as the page looks for it: sliders are moved in any."""
    return query | {"flags": {name: sorted(values) for name, values in query["flags"].items()}}


def _result(query: dict[str, Any]) -> Result:
    return command(shlex.join(question(query).argv()))


def _plain(query: dict[str, Any], result: Result, parts: list[str], **more: Any) -> dict[str, Any]:
    return reply(question(query | {"parts": parts, **more}), result)


def _sentence(query: dict[str, Any]) -> dict[str, Any]:
    """The sentence of an answer, or what the page says where there is none."""
    try:
        return _plain(query, _result(query), ["answer"])
    except HeadwayError as error:
        return {"error": one_line(error)}


def _pictured(query: dict[str, Any], axes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The answer to a question with its first picture at every width, at rest and on axes that stay; and these, its own without any."""
    try:
        result = _result(query)
    except HeadwayError as error:
        return {"error": one_line(error)}, axes
    answer = _plain(query, result, ["answer", "table"])
    by_width: dict[int, dict[str, Any]] = {}
    for width in WIDTHS:
        at_rest = _plain(query, result, ["pictures"], width=width)
        by_width[width] = {"rest": [_packed(picture) for picture in at_rest["pictures"][:1]]}
        if axes:
            on_axes = _plain(query, result, ["pictures"], width=width, axes=axes)["pictures"][:1]
            by_width[width]["moving"] = [_packed(picture, is_moving=True) for picture in on_axes]
        answer["undrawn"] = at_rest["undrawn"]
        axes = axes or next((picture["axes"] for picture in at_rest["pictures"]), {})
    return answer | {"drawn": by_width}, axes


def _packed(picture: dict[str, Any], is_moving: bool = False) -> dict[str, Any]:
    """A picture whose places have no more digits than paper shows; while it moves, nothing is said of its points."""
    data = {name: [] if is_moving and name.endswith(TIPS) else _rounded(rows) for name, rows in picture["data"].items()}
    return picture | {"data": data}


def _rounded(node: Any) -> Any:
    if isinstance(node, list | tuple):
        return [_rounded(item) for item in node]
    if isinstance(node, dict):
        return {name: _rounded(item) for name, item in node.items()}
    return float(f"{node:.{DIGITS}g}") if isinstance(node, float) else node

"""A question as a page asks it: a verb, its words and its flags, and which parts of the answer are wanted."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Sequence
from typing import Any

from headway.core.errors import BadValue, UnknownName
from headway.core.question import Question, QuestionField, question_of
from headway.report.printed import PRINTED
from headway.web import permitted

PARTS = ("answer", "figures", "table", "pictures", "notes", "json", "csv", "html", "file")
WIDTHS = (320, 1200)  # px of a picture
MOST_WORDS, MOST_FLAGS, MOST_ITEMS = 16, 60, 32
THEMES = ("css", "light", "dark")
TOOLS = ("table", "vllm", "guidellm", "trtllm-bench", "llama-bench", "inferencex")  # of a dropped file; "table" is a CSV of runs
FILE_NAME = re.compile(r"[A-Za-z0-9][\w-]{0,60}[.](?:json|jsonl|csv|md|sql)")
MOST_UPLOAD = 4_000_000  # letters


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One number of an answer: a row by its place, and a column."""

    row: int
    key: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A dropped benchmark file: its content travels with the question, and is never found by a path."""

    tool: str
    name: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PageQuestion:
    """A checked question: nothing in it names a file."""

    verb: str
    words: tuple[str, ...] = ()
    flags: tuple[tuple[str, Any], ...] = ()  # name of a flag without dashes -> text, several texts, or True
    parts: tuple[str, ...] = ()
    picture: str = ""  # name of the one that is wanted; all without
    width: int = 760
    theme: str = "css"
    axes: tuple[tuple[str, tuple[float, float]], ...] = ()  # ends that stay while a slider moves
    explain: Cell | None = None
    upload: Upload | None = None

    @property
    def is_heavy(self) -> bool:
        """Whether it searches or simulates, so that it runs on release and can be cancelled."""
        return self.verb in permitted.HEAVY

    @property
    def is_moving(self) -> bool:
        """Whether a slider moves: the axes stay, and what only matters at rest is left out."""
        return bool(self.axes)

    def argv(self) -> list[str]:
        """The words of its command line, without the program's name."""
        words = [self.verb, *self.words]
        if self.upload:
            words += [self.upload.name] if self.upload.tool == "table" else [f"--{self.upload.tool}", self.upload.name]
        for name, value in self.flags:
            words += _flag_words(f"--{name}", value)
        return words

    def command(self) -> str:
        """Its command line as one types it."""
        return shlex.join(["headway", *self.argv()])


def _flag_words(flag: str, value: Any) -> list[str]:
    if value is True:
        return [flag]
    texts = value if isinstance(value, tuple) else (value,)
    return [word for text in texts for word in ([f"{flag}={text}"] if text.startswith("-") else [flag, text])]


def question(document: Any) -> PageQuestion:
    """A question from JSON; each wrong part is a typed error."""
    if not isinstance(document, dict):
        raise BadValue("question", type(document).__name__, "an object with a verb")
    known = {field.name for field in dataclasses.fields(PageQuestion)}
    for key in document:
        if key not in known:
            raise UnknownName("part of a question", str(key)[:60], known, "one of " + ", ".join(sorted(known)))
    verb = document.get("verb")
    if not isinstance(verb, str) or verb not in permitted.VERBS:
        raise UnknownName("verb of a page", str(verb)[:60], permitted.VERBS, "one of " + ", ".join(permitted.VERBS))
    words = _words(document.get("words", []))
    asking = asked_by(verb, words)
    _check_words(asking, verb, words)
    return PageQuestion(
        verb=verb, words=tuple(words), flags=tuple(_flags(asking, verb, document.get("flags", {}))),
        parts=_parts(document.get("parts", ["answer", "figures", "table", "pictures", "notes"])),
        width=_between("width", document.get("width", 760), *WIDTHS), theme=_theme(document.get("theme", "css")),
        picture=_picture(document.get("picture", "")), axes=tuple(_axes(document.get("axes", {}))),
        explain=_cell(document.get("explain")), upload=_upload(verb, document.get("upload")),
    )  # fmt: skip


def asked_by(verb: str, words: Sequence[str]) -> type[Question]:
    """The question that a page's verb asks: where every control, its help and its legal values are declared."""
    return question_of(verb).of_words(words)


def flags_of(question: type[Question]) -> dict[str, QuestionField]:
    """The fields of a page's question by the names of their flags; of how it is printed, the choice and the order of rows."""
    printing = {flag.name: flag for flag in PRINTED.flags() if flag.name in ("where", "sort")}
    return {flag.word.removeprefix("--"): flag for flag in ({**question.flags(), **printing}).values() if flag.field.kind != "object"}


def _words(value: Any) -> list[str]:
    if not isinstance(value, list) or len(value) > MOST_WORDS or not all(isinstance(word, str) for word in value):
        raise BadValue("words", str(value)[:60], f"a list of at most {MOST_WORDS} texts")
    return value


def _check_words(asking: type[Question], verb: str, words: list[str]) -> None:
    """The subjects of a verb, each of the kind that its place declares."""
    places = list(asking.leading().values())
    if verb == "lecture" and words[:1] == ["quiz"]:
        raise permitted.Refused("lecture quiz asks at a terminal; the page deals cards itself")
    for number, word in enumerate(words):
        if not places or word.startswith("-"):
            raise BadValue("words", word[:60], "a subject of the verb, not a flag")
        place = places[min(number, len(places) - 1)]
        if place.name == "name" and words[0] == "model":
            permitted.check_model(word)
        else:
            permitted.check(place, word)


def _flags(asking: type[Question], verb: str, value: Any) -> Any:
    if not isinstance(value, dict) or len(value) > MOST_FLAGS:
        raise BadValue("flags", str(value)[:60], f"an object of at most {MOST_FLAGS} flags")
    by_name = {name: flag for name, flag in flags_of(asking).items() if flag.spellings}
    for name, item in value.items():
        if item is None or item is False or item == "" or item == []:
            continue
        flag = by_name.get(str(name))
        if flag is None:
            raise UnknownName(f"flag of {verb}", str(name)[:60], by_name)
        if isinstance(item, list) and (len(item) > MOST_ITEMS or not flag.is_list):
            raise BadValue(str(name), str(item)[:60], "one text")
        item = [_typed(part) for part in item] if isinstance(item, list) else _typed(item)
        permitted.check(flag, item)
        yield str(name), tuple(item) if isinstance(item, list) else item


def _typed(value: Any) -> Any:
    """A number as a person types it: a value of a flag is a text, and whoever writes JSON may give a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return repr(int(value)) if value == value // 1 and abs(value) < 1e15 else repr(value)


def _parts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(part in PARTS for part in value):
        raise BadValue("parts", str(value)[:60], "a list of " + ", ".join(PARTS))
    return tuple(value)


def _between(name: str, value: Any, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise BadValue(name, str(value)[:60], f"a whole number from {low} to {high}")
    return value


def _theme(value: Any) -> str:
    if value not in THEMES:
        raise BadValue("theme", str(value)[:60], "one of " + ", ".join(THEMES))
    return value


def _picture(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[\w -]{0,60}", value):
        raise BadValue("picture", str(value)[:60], "the name of a picture")
    return value


def _axes(value: Any) -> Any:
    if not isinstance(value, dict) or len(value) > 24:
        raise BadValue("axes", str(value)[:60], "an object of two ends by axis")
    for name, ends in value.items():
        if (
            not isinstance(ends, list)
            or len(ends) != 2
            or not all(_is_finite(end) for end in ends)
            or not re.fullmatch(r"[xy]\d{0,2}", name)
        ):
            raise BadValue("axes", str(ends)[:60], "two finite numbers by axis")
        yield name, (float(ends[0]), float(ends[1]))


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _cell(value: Any) -> Cell | None:
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) != {"row", "key"} or not isinstance(value["key"], str) or len(value["key"]) > 80:
        raise BadValue("explain", str(value)[:60], "a row and a key")
    return Cell(row=_between("row", value["row"], 0, 1_000_000), key=value["key"])


def _upload(verb: str, value: Any) -> Upload | None:
    if value is None and verb != "score":
        return None
    if verb != "score" or not isinstance(value, dict) or set(value) != {"tool", "name", "text"}:
        raise BadValue("upload", str(value)[:60], "for score the tool, name and text of a benchmark file, for other verbs none")
    tool, name, text = value["tool"], value["name"], value["text"]
    if tool not in TOOLS:
        raise UnknownName("benchmark tool", str(tool)[:60], TOOLS, "one of " + ", ".join(TOOLS))
    if not isinstance(name, str) or not FILE_NAME.fullmatch(name):
        raise BadValue("upload", str(name)[:60], "a plain name that ends in .json, .jsonl, .csv, .md or .sql")
    if not isinstance(text, str) or len(text) > MOST_UPLOAD:
        raise BadValue("upload", name, f"a text of at most {MOST_UPLOAD:,} letters")
    return Upload(tool=tool, name=name, text=text)

"""A question as a page asks it: a verb, its words and its flags, which parts of the answer are wanted, and how large it may be."""

from __future__ import annotations

import dataclasses
import math
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from headway.core import schema
from headway.core.errors import BadValue, HeadwayError, UnknownName, check_known
from headway.core.question import Question, QuestionField, question_of
from headway.report.printed import PRINTED
from headway.web import permitted

PARTS = ("answer", "figures", "table", "pictures", "notes", "json", "csv", "html", "file")
WIDTHS = (320, 1200)  # px of a picture
MOST_WORDS, MOST_FLAGS, MOST_ITEMS, MOST_AXES = 16, 60, 32, 24
THEMES = ("css", "light", "dark")
TOOLS = ("table", "vllm", "guidellm", "trtllm-bench", "llama-bench", "inferencex")  # of a dropped file; "table" is a CSV of runs
UPLOADS = {"score": 1, "calibrate": 3, "predict": 1}  # verbs of dropped files, and how many at most
FILE_NAME = re.compile(r"[A-Za-z0-9][\w-]{0,60}[.](?:json|jsonl|csv|md|sql)")
PROFILE = "calibration"  # in place of a tool: what runs of one's own say, by which the answer goes
PROFILE_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,60}[.]toml")
MOST_UPLOAD = 4_000_000  # letters, of all files
MOST_LIGHT, MOST_HEAVY = 4_000, 20_000  # points of a grid
UNKNOWN_RANGE = 100  # points of a range whose unit only its verb knows; the verb itself bounds it
MOST_REQUESTS = 50_000  # of a simulation
CONDITIONS = ("with", "set", "where", "sort", "find", "so-that", "assume", "tokens", "prefix-cache", "current", "mesh", "over", "rings",
              "turns")  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One number of an answer: a row by its place, and a column."""

    row: int
    key: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A dropped file: its content travels with the question, and is never found by a path."""

    tool: str
    name: str
    text: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class PageQuestion:
    """A checked question: nothing in it names a file."""

    verb: str
    words: tuple[str, ...] = ()
    flags: tuple[tuple[str, Any], ...] = ()  # name of a flag without dashes -> text, several texts, or True
    parts: tuple[str, ...] = ("answer", "figures", "table", "pictures", "notes")
    picture: str = ""  # name of the one that is wanted; all without
    width: int = 760
    theme: str = "css"
    axes: tuple[tuple[str, tuple[float, float]], ...] = ()  # ends that stay while a slider moves
    shape: str = ""  # of the picture that is drawn already: one of the same shape needs its rows alone
    explain: Cell | None = None
    uploads: tuple[Upload, ...] = ()

    @property
    def is_heavy(self) -> bool:
        """Whether it searches or simulates, so that it runs on release and can be cancelled."""
        return self.verb in permitted.HEAVY

    @property
    def is_moving(self) -> bool:
        """Whether a slider moves: the axes stay, and what only matters at rest is left out."""
        return bool(self.axes)

    @property
    def key(self) -> tuple[tuple[str, ...], tuple[Upload, ...]]:
        """What its result depends on."""
        return tuple(self.argv()), self.uploads

    def argv(self) -> list[str]:
        """The words of its command line, without the program's name."""
        words = [self.verb, *self.words]
        for file in self.uploads:
            if file.tool != PROFILE:
                words += [file.name] if file.tool == "table" or self.verb == "calibrate" else [f"--{file.tool}", file.name]
        for name, value in self.flags:
            for text in value if isinstance(value, tuple) else (value,):
                words += [f"--{name}"] if text is True else [f"--{name}={text}"] if text.startswith("-") else [f"--{name}", text]
        return words

    def command(self) -> str:
        """Its command line as one types it."""
        return shlex.join(["headway", *self.argv()])


def asked_by(verb: str, words: Sequence[str]) -> type[Question]:
    """The question that a page's verb asks: where every control, its help and its legal values are declared."""
    return question_of(verb).of_words(words)


def flags_of(question: type[Question]) -> dict[str, QuestionField]:
    """The fields of a page's question by the names of their flags; of how it is printed, the choice and the order of rows."""
    printing = {flag.name: flag for flag in PRINTED.flags() if flag.name in ("where", "sort")}
    return {flag.word.removeprefix("--"): flag for flag in ({**question.flags(), **printing}).values() if flag.field.kind != "object"}


# -- reading --------------------------------------------------------------------------------------------------------------------


def question(document: Any) -> PageQuestion:
    """A question from JSON; each wrong part is a typed error."""
    _need(isinstance(document, dict), "question", type(document).__name__, "an object with a verb")
    known = {field.name for field in dataclasses.fields(PageQuestion)} - {"uploads"} | {"upload"}
    for key in document:
        if key not in known:
            raise UnknownName("part of a question", str(key)[:60], known, "one of " + ", ".join(sorted(known)))
    verb, words, picture = document.get("verb"), document.get("words", []), document.get("picture", "")
    check_known("verb of a page", str(verb)[:60], permitted.VERBS)
    are_words = isinstance(words, list) and len(words) <= MOST_WORDS and all(isinstance(word, str) for word in words)
    _need(are_words, "words", words, f"a list of at most {MOST_WORDS} texts")
    asking = asked_by(verb, words)
    _check_words(asking, words)
    parts, theme = document.get("parts", list(PageQuestion.parts)), document.get("theme", PageQuestion.theme)
    flags = tuple(_flags(asking, document.get("flags", {})))
    _need(isinstance(parts, list) and all(part in PARTS for part in parts), "parts", parts, "a list of " + ", ".join(PARTS))
    width = _between("width", document.get("width", PageQuestion.width), *WIDTHS)
    _need(theme in THEMES, "theme", theme, "one of " + ", ".join(THEMES))
    _need(isinstance(picture, str) and re.fullmatch(r"[\w -]{0,60}", picture), "picture", picture, "the name of a picture")
    shape = document.get("shape", "")
    _need(isinstance(shape, str) and re.fullmatch(r"[0-9a-f]{0,24}", shape), "shape", shape, "the shape of a picture")
    return PageQuestion(
        verb=verb, words=tuple(words), flags=flags, parts=tuple(parts), width=width, theme=theme, picture=picture, shape=shape,
        axes=tuple(_axes(document.get("axes", {}))), explain=_cell(document.get("explain")),
        uploads=tuple(_uploads(asking, document.get("upload"))),
    )  # fmt: skip


def _need(is_right: Any, name: str, value: Any, wants: str) -> None:
    if not is_right:
        raise BadValue(name, str(value)[:60], wants)


def _between(name: str, value: Any, low: int, high: int) -> int:
    is_right = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
    _need(is_right, name, value, f"a whole number from {low} to {high}")
    return value


def _check_words(asking: type[Question], words: list[str]) -> None:
    """The subjects of a verb, each of the kind that its place declares."""
    places = list(asking.leading().values())
    if asking.verb == "lecture" and words[:1] == ["quiz"]:
        raise permitted.Refused("lecture quiz asks at a terminal; the page deals cards itself")
    for number, word in enumerate(words):
        _need(places and not word.startswith("-"), "words", word, "a subject of the verb, not a flag")
        place = places[min(number, len(places) - 1)]
        if place.name == "name" and words[0] == "model":
            permitted.check_model(word)
        else:
            permitted.check(place, word)


def _flags(asking: type[Question], value: Any) -> Iterator[tuple[str, Any]]:
    _need(isinstance(value, dict) and len(value) <= MOST_FLAGS, "flags", value, f"an object of at most {MOST_FLAGS} flags")
    by_name = {name: flag for name, flag in flags_of(asking).items() if flag.spellings}
    for name, item in value.items():
        if item is None or item is False or item == "" or item == []:
            continue
        flag = by_name.get(str(name))
        if flag is None:
            raise UnknownName(f"flag of {asking.verb}", str(name)[:60], by_name)
        _need(not isinstance(item, list) or (len(item) <= MOST_ITEMS and flag.is_list), str(name), item, "one text")
        item = [_typed(part) for part in item] if isinstance(item, list) else _typed(item)
        permitted.check(flag, item)
        yield str(name), tuple(item) if isinstance(item, list) else item


def _typed(value: Any) -> Any:
    """A number as a person types it: a value of a flag is a text, and whoever writes JSON may give a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return repr(int(value)) if value == value // 1 and abs(value) < 1e15 else repr(value)


def _axes(value: Any) -> Iterator[tuple[str, tuple[float, float]]]:
    _need(isinstance(value, dict) and len(value) <= MOST_AXES, "axes", value, "an object of two ends by axis")
    for name, ends in value.items():
        are_ends = isinstance(ends, list) and len(ends) == 2 and all(
            isinstance(end, int | float) and not isinstance(end, bool) and abs(end) < 1e300 for end in ends
        )  # fmt: skip
        _need(are_ends and re.fullmatch(r"[xy]\d{0,2}", name), "axes", ends, "two finite numbers by axis")
        yield name, (float(ends[0]), float(ends[1]))


def _cell(value: Any) -> Cell | None:
    if value is None:
        return None
    is_cell = isinstance(value, dict) and set(value) == {"row", "key"} and isinstance(value["key"], str) and len(value["key"]) <= 80
    _need(is_cell, "explain", value, "a row and a key")
    return Cell(row=_between("row", value["row"], 0, 1_000_000), key=value["key"])


def _uploads(asking: type[Question], value: Any) -> Iterator[Upload]:
    """Files of a question, one or a list: results of benchmarks, as many as its verb reads, and a profile of own runs that it may go by."""
    files = [] if value is None else value if isinstance(value, list) else [value]
    are_files = all(isinstance(file, dict) and set(file) == {"tool", "name", "text"} for file in files)
    _need(are_files, "upload", value, "the tool, name and text of each file")
    profiles = [file for file in files if file["tool"] == PROFILE]
    most, texts = UPLOADS.get(asking.verb, 0), [file["text"] for file in files]
    count_fits = min(1, most) <= len(files) - len(profiles) <= most and len(profiles) <= ("calibration" in asking.flags())
    _need(count_fits, "upload", f"{len(files)} files", f"{min(1, most)} to {most} benchmark files of {asking.verb}")
    are_texts = all(isinstance(text, str) for text in texts) and sum(map(len, texts)) <= MOST_UPLOAD
    _need(are_texts, "upload", "the files", f"texts of at most {MOST_UPLOAD:,} letters in all")
    for file in files:
        check_known("benchmark tool", str(file["tool"])[:60], (*TOOLS, PROFILE))
        form, wants = (PROFILE_NAME, ".toml") if file in profiles else (FILE_NAME, ".json, .jsonl, .csv, .md or .sql")
        is_name = isinstance(file["name"], str) and form.fullmatch(file["name"])
        _need(is_name, "upload", file["name"], f"a plain name that ends in {wants}")
        _need([entry["name"] for entry in files].count(file["name"]) == 1, "upload", file["name"], "a name of its own for each file")
        yield Upload(**file)


# -- its size, known before it runs ---------------------------------------------------------------------------------------------


def check_size(question: PageQuestion) -> None:
    """Raise BadValue for a question whose lists and ranges span more points than a page may ask."""
    flags = flags_of(asked_by(question.verb, question.words))
    points = 1
    for name, value in question.flags:
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str):
                points *= _points(name, text, flags[name].field)
    most = MOST_HEAVY if question.is_heavy else MOST_LIGHT
    if points > most:
        raise BadValue("question", f"{points:,} points", f"at most {most:,}; the command line has no such bound")
    for name, value in question.flags:
        if name in ("requests", "users", "cards") and isinstance(value, str):
            count = max(map(float, _members(value, schema.Field(open_low=False), name)), default=0.0)
            if math.isfinite(count) and count > MOST_REQUESTS:
                raise BadValue(name, value, f"at most {MOST_REQUESTS:,} on a page")


def _points(name: str, text: str, field: schema.Field) -> int:
    """How many members a list or a range has."""
    if ".." not in text:
        return 1 if name in CONDITIONS else text.count(",") + 1
    if field.is_number:
        return max(1, len(_members(text, field, name)))
    return sum(UNKNOWN_RANGE if ".." in part else 1 for part in text.split(","))


def _members(text: str, field: schema.Field, name: str) -> tuple[Any, ...]:
    """The members of a list or a range; none of what is wrong, which the verb says."""
    try:
        values, _ = schema.axis(text, field, name)
    except HeadwayError:
        return ()
    return values if isinstance(values, tuple) else (values,)

"""Pages and their controls: which questions a page asks (data/web/pages.toml), and the controls that the verbs themselves declare."""

from __future__ import annotations

import bisect
import functools
import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from headway import QUESTIONS
from headway.cli.parser import help_of
from headway.core import schema, spellings, units
from headway.core.catalog import default_catalog
from headway.core.errors import BadValue, check_known
from headway.core.listing import heading
from headway.core.question import WHAT_IF, QuestionField
from headway.models import config
from headway.report.printed import PRINTED
from headway.web import permitted
from headway.web import question as page_question

MOST_STEPS = 400
# Short words of flags, in full.
LABEL_WORDS = {
    "eff": "efficiency of", "bw": "bandwidth", "moe": "MoE", "mtbf": "MTBF", "ttl": "TTL", "dram": "DRAM", "flop": "FLOP", "vpp": "VPP",
    "dtype": "number format", "seq": "sequence", "seqs": "sequences", "params": "parameters", "param": "parameter", "dim": "size",
    "vocab": "vocabulary", "zero": "ZeRO", "cp": "CP", "dp": "DP", "ep": "EP", "tp": "TP", "max": "most", "sync": "synchronisation",
}  # fmt: skip
SIGNIFICANT = 3
DAY = 86400  # s
CONTROLS = ("switch", "choice", "number", "model", "subject", "machine", "sheet")  # kinds of value with one of their own; else text
# What is typed into a field of words, by the flag; docs/web.md needs no list of them.
HINTS = {
    "where": "a condition, such as tp = 8", "sort": "a column, -column for the largest first",
    "find": "spinning disk", "arrivals": "poisson",
    "assume": "margin=0.5", "set": "chip.hbm_bw=10TB/s", "engine": "vllm", "weights": "fp8", "kv": "fp8", "at_sheet": "claude-opus",
    "text": "RB-10, 3, or why ...?",
}  # fmt: skip


@functools.cache
def document() -> tuple[dict[str, Any], ...]:
    """The pages as their file has them."""
    text = (files("headway") / "data" / "web" / "pages.toml").read_text(encoding="utf-8")
    return tuple(tomllib.loads(text)["page"])


def names() -> list[str]:
    """Names of the pages, which are their paths."""
    return [page["name"] for page in document()]


def address(verb: str, words: Sequence[str], flags: Mapping[str, str], without: Sequence[str] = ()) -> str:
    """Path and query of the first view of a verb, with its own flags where these are silent."""
    page, view = next((page, view) for page in document() for view in page.get("view", ()) if view["verb"] == verb)
    usual = {name: "on" if text is True else text for name, text in view.get("flags", {}).items() if name not in without}
    return f"/{page['name']}?{urlencode([('view', view['name']), *(('w', word) for word in words), *(usual | dict(flags)).items()])}"


@functools.cache
def pages() -> dict[str, Any]:
    """All pages with their views, and the names that a field of models or machines offers as one types."""
    where = default_catalog()
    chips = [name.replace("_", "-") for name in where.files("chips")]
    models = [row["name"] for row in config.catalogue_index()] + sorted(where.files("models").keys() - permitted.models())
    return {
        "pages": [
            {"name": page["name"], "title": page["title"], "says": page["says"], "questions": page.get("question", []),
             "views": [view | {"heavy": view["verb"] in permitted.HEAVY, "sliders": _sliders(view)} for view in page.get("view", ())]}
            for page in document()
        ],
        "names": {"model": models, "machine": [*sorted(where.files("systems")), *(f"8x{name}" for name in chips)], "chip": chips,
                  "sheet": sorted(where.files("sheets"))},
    }  # fmt: skip


def _sliders(view: dict[str, Any]) -> dict[str, Any]:
    """Stops of a view's sliders; the values that the view and its presets start from are among them."""
    flags_by_name = page_question.flags_of(page_question.asked_by(view["verb"], view["words"]))
    starts = [place.get("flags", {}) for place in (view, *view.get("preset", ()))]
    return {
        name: steps([text, *(flags[name] for flags in starts if name in flags)], number_field(flags_by_name[name]))
        for name, text in view.get("sliders", {}).items()
    }


def steps(texts: list[str], field: schema.Field) -> list[dict[str, str]]:
    """Stops of a slider, from lists and ranges: the word that the command line takes, short and none twice, and the words for people."""
    members: set[float] = set()
    for text in texts:
        values, _ = schema.axis(text, field, "slider")
        members |= {float(value) for value in (values if isinstance(values, tuple) else (values,))}
    words: dict[str, str] = {}
    per, unit = (DAY, "") if all("/day" in text for text in texts) else (1, field.unit)
    for value in sorted(members)[:MOST_STEPS]:
        rounded = float(f"{value * per:.{SIGNIFICANT}g}")
        text = units.show(rounded, unit, SIGNIFICANT) + ("/day" if per == DAY else "")
        is_bare = field.integer and (rounded < 1000 or rounded % 1000)  # 8.12k is not an integer to the last bit, 8120 is
        words.setdefault(str(round(rounded)) if is_bare else text.replace(" ", ""), text)
    return [{"word": word, "text": text} for word, text in words.items()]


# -- controls -------------------------------------------------------------------------------------------------------------------


@functools.cache
def verb(name: str) -> dict[str, Any]:
    """The controls of a verb, in the groups and the order of its help."""
    check_known("verb of a page", name[:60], permitted.VERBS)
    question = page_question.asked_by(name, ["serve"] if name == "solve" else [])
    groups: dict[str, list[dict[str, Any]]] = {}

    def group_place(flag: QuestionField) -> int:
        """Subjects, flags without a title, the others; then what every verb has, and a model by numbers."""
        if not flag.group:
            return 0 if flag.field.place else 1
        return 5 if flag.into else {WHAT_IF.title: 4, PRINTED.title: 3}.get(flag.group, 2)

    for flag in sorted(filter(permitted.kind_of, page_question.flags_of(question).values()), key=group_place):
        title = flag.group or ("Positional arguments" if flag.field.place else "Options")
        title = title.split(":")[0].split("(")[0].strip()  # without what follows its colon
        groups.setdefault(title[:1].upper() + title[1:], []).append(control(flag))
    titled = [{"title": title, "controls": controls} for title, controls in groups.items()]
    return {"verb": name, "sentence": QUESTIONS[name][1], "heavy": name in permitted.HEAVY, "groups": titled}


def number_field(flag: QuestionField) -> schema.Field:
    """What a number of a flag is; of one that declares none, a plain number."""
    return flag.field if flag.field.is_number or flag.field.choices else schema.Field()


def control(flag: QuestionField) -> dict[str, Any]:
    """One control, from the declaration of its flag."""
    field, name = flag.field, flag.word.removeprefix("--")
    kind = field.kind or ("choice" if field.choices else "number")
    about = help_of(flag).replace("%%", "%")
    default = re.search(r"\(default:? ([^()]*)\)", about)
    example = str(spellings.EXAMPLE.get(field.unit, field.unit)) if field.unit else HINTS.get(flag.name, "")  # a bare number needs none
    return {
        "name": name, "flag": "" if field.place else flag.word, "label": label(name), "help": about,
        "kind": kind if kind in CONTROLS else "text", "choices": [choice for choice in field.choices if choice and kind == "choice"],
        "several": flag.is_list, "required": flag.is_required or field.place == "+",
        "default": default[1] if default else "", "unit": field.unit, "everyday": not field.rare, "hint": example,
    }  # fmt: skip


def label(name: str) -> str:
    """The name of a flag in words.

    >>> label("ttft-p95"), label("chip-price"), label("kv")
    ('TTFT p95', 'Chip price', 'KV')
    >>> label("eff-compute"), label("link-bw"), label("hidden-tp")
    ('Efficiency of compute', 'Link bandwidth', 'Hidden TP')
    """
    text = heading(name.replace("-", "_")).removesuffix(" limit") if not name.startswith(("on", "set", "where")) else name
    words = {"on": "Machine", "set": "Edit a fact", "where": "Rows for which", "tp": "TP", "ep": "EP", "dp": "DP", "pp": "PP", "cp": "CP"}
    text = " ".join(LABEL_WORDS.get(word, word) for word in text.split())
    return words.get(name, text[:1].upper() + text[1:])


def with_stop(slider: list[dict[str, str]], word: str, unit: str) -> tuple[list[dict[str, str]], int]:
    """Stops with one for a word of the user's among them, and its place."""
    value = schema.scalar(word, schema.Field(unit), "slider")
    values = [schema.scalar(stop["word"], schema.Field(unit), "slider") for stop in slider]
    place = bisect.bisect_left(values, value)
    if place < len(values) and values[place] == value:
        return slider, place
    return [*slider[:place], {"word": word, "text": units.show(value, unit, SIGNIFICANT)}, *slider[place:]], place


def nearest_stop(page: str, view: str, flag: str, word: str) -> int:
    """Place of the stop nearest to a word, of a slider that a page declares; BadValue where there is no such slider or number."""
    entry = next((entry for place in document() if place["name"] == page for entry in place.get("view", ()) if entry["name"] == view), {})
    slider = _sliders(entry).get(flag, []) if entry else []
    if not slider:
        raise BadValue("flag", flag, "a flag with a slider")
    field = number_field(page_question.flags_of(page_question.asked_by(entry["verb"], entry["words"]))[flag])
    value = float(schema.scalar(word, field, f"--{flag}"))
    values = [float(schema.scalar(stop["word"], field, f"--{flag}")) for stop in slider]
    return min(range(len(values)), key=lambda place: abs(values[place] - value))

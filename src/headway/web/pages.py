"""Pages and their controls: which questions a page asks (data/web/pages.toml), and the controls that the verbs themselves declare."""

from __future__ import annotations

import bisect
import functools
import re
import tomllib
from importlib.resources import files
from typing import Any

from headway.cli import help as verb_help
from headway.core import schema, units
from headway.core.errors import BadValue, HeadwayError, UnknownName
from headway.core.listing import heading
from headway.web import permitted
from headway.web.question import parser_of

MOST_STEPS = 400
# Short words of flags, in full.
LABEL_WORDS = {
    "eff": "efficiency of", "bw": "bandwidth", "moe": "MoE", "mtbf": "MTBF", "ttl": "TTL", "dram": "DRAM", "flop": "FLOP", "vpp": "VPP",
    "dtype": "number format", "seq": "sequence", "seqs": "sequences", "params": "parameters", "param": "parameter", "dim": "size",
    "vocab": "vocabulary", "zero": "ZeRO", "cp": "CP", "dp": "DP", "ep": "EP", "tp": "TP", "max": "most", "sync": "synchronisation",
}  # fmt: skip
SIGNIFICANT = 3
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


@functools.cache
def pages() -> dict[str, Any]:
    """All pages with their views, and the names that fields offer."""
    return {"pages": [_page(page) for page in document()], "names": _names()}


def _page(page: dict[str, Any]) -> dict[str, Any]:
    views = [view | {"heavy": view["verb"] in permitted.HEAVY, "sliders": _sliders(view)} for view in page.get("view", ())]
    return {"name": page["name"], "title": page["title"], "says": page["says"], "views": views}


def _sliders(view: dict[str, Any]) -> dict[str, Any]:
    """Stops of a view's sliders; the values that the view and its presets start from are among them."""
    actions = parser_of(view["verb"], view["words"])._option_string_actions
    starts = [place.get("flags", {}) for place in (view, *view.get("preset", ()))]
    return {
        name: steps([text, *(flags[name] for flags in starts if name in flags)], getattr(actions["--" + name], "field", schema.Field()))
        for name, text in view.get("sliders", {}).items()
    }


def steps(texts: list[str], field: schema.Field) -> list[dict[str, str]]:
    """Stops of a slider, from lists and ranges: the word that the command line takes, and the words for people."""
    members: list[float] = []
    for text in texts:
        values, _ = schema.axis(text, field, "slider")
        members += [float(value) for value in (values if isinstance(values, tuple) else (values,))]
    return stops(sorted(set(members)), field.unit, field.integer)


def stops(values: list[float], unit: str, integer: bool = False) -> list[dict[str, str]]:
    """Values as stops, each rounded so that its word is short, none twice."""
    words: dict[str, str] = {}
    for value in values[:MOST_STEPS]:
        rounded = float(f"{value:.{SIGNIFICANT}g}")
        text = units.show(rounded, unit, SIGNIFICANT)
        is_bare = integer and (rounded < 1000 or rounded % 1000)  # 8.12k is not an integer to the last bit, 8120 is
        words.setdefault(str(round(rounded)) if is_bare else text.replace(" ", ""), text)
    return [{"word": word, "text": text} for word, text in words.items()]


@functools.cache
def _names() -> dict[str, list[str]]:
    """Names that a field of models or machines offers as one types."""
    from headway.core.catalog import default_catalog
    from headway.models.config import catalogue_index

    where = default_catalog()
    chips = [name.replace("_", "-") for name in where.files("chips")]
    models = [row["name"] for row in catalogue_index()] + sorted(where.files("models").keys() - permitted.models())
    systems = sorted(where.files("systems"))
    sheets = sorted(where.files("sheets"))
    return {"model": models, "machine": [*systems, *(f"8x{name}" for name in chips)], "chip": chips, "sheet": sheets}


# -- controls -------------------------------------------------------------------------------------------------------------------


@functools.cache
def verb(name: str) -> dict[str, Any]:
    """The controls of a verb, in the groups and the order of its help."""
    if name not in permitted.VERBS:
        raise UnknownName("verb of a page", name[:60], permitted.VERBS, "one of " + ", ".join(permitted.VERBS))
    parser = parser_of(name, ["serve"] if name == "solve" else [])
    groups: list[dict[str, Any]] = []
    for group in parser._action_groups:
        controls = [control(action) for action in group._group_actions if _is_shown(action)]
        if controls:
            groups.append({"title": _sentence(group.title or ""), "controls": controls})
    return {"verb": name, "sentence": parser.description, "heavy": name in permitted.HEAVY, "groups": groups}


def _is_shown(action: Any) -> bool:
    return action.dest not in ("help", "help_all", "format", "explain", "plot") and permitted.kind_of(action) is not None


def control(action: Any) -> dict[str, Any]:
    """One control, from the declaration of its flag."""
    field, kind = getattr(action, "field", None), permitted.kind_of(action)
    flag = next((option for option in action.option_strings if option.startswith("--")), "")
    about = (action.help or "").replace("%%", "%")
    default = re.search(r"\(default:? ([^()]*)\)", about)
    return {
        "name": flag[2:] if flag else action.dest, "flag": flag, "label": label(flag[2:] if flag else action.dest), "help": about,
        "kind": _kind(action, kind), "choices": [choice for choice in kind if choice] if isinstance(kind, tuple) else [],
        "several": type(action).__name__ in ("_AppendAction", "_ExtendAction") or action.nargs in ("+", "*"),
        "required": bool(action.required or (not flag and action.nargs not in ("?", "*"))),
        "default": default[1] if default else "", "unit": field.unit if field else "", "everyday": action.dest not in verb_help.ADVANCED,
        "hint": _hint(action, field),
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


def _kind(action: Any, kind: Any) -> str:
    if kind is bool:
        return "switch"
    if isinstance(kind, tuple):
        return "choice"
    if kind is permitted.MACHINE:
        return "machine"
    if kind is permitted.SHEET:
        return "sheet"
    return {permitted.MODEL: "model", permitted.SUBJECT: "subject", permitted.NUMBER: "number"}.get(kind, "text")


def _hint(action: Any, field: schema.Field | None) -> str:
    """An example of what is typed: of a unit, else of the flag; a bare number needs none."""
    if field is not None and field.unit:
        return str(units.EXAMPLE.get(field.unit, field.unit))
    return HINTS.get(action.dest, "")


def _sentence(title: str) -> str:
    """A group's title, with a capital and without its colon."""
    text = title.split(":")[0].split("(")[0].strip()
    return text[:1].upper() + text[1:]


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
    field = getattr(parser_of(entry["verb"], entry["words"])._option_string_actions["--" + flag], "field", schema.Field())
    value = float(schema.scalar(word, field, f"--{flag}"))
    values = [float(schema.scalar(stop["word"], field, f"--{flag}")) for stop in slider]
    return min(range(len(values)), key=lambda place: abs(values[place] - value))


def parses(word: str, unit: str) -> bool:
    """Whether a word is a value of a unit."""
    try:
        units.parse(word, unit, "slider")
    except HeadwayError:
        return False
    return True

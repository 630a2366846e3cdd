"""What a request may ask: an allow-list of verbs, and for each kind of value the texts that are legal.

Nothing here is a path. A flag that reads or writes a file, a folder or the network is of no kind and therefore refused; so is one that
somebody adds to a verb and forgets here. Flags that declare a number (`core/schema.py: Field`) are of the kind NUMBER.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from headway.core.errors import BadValue, HeadwayError, UnknownName

LIGHT = ("serve", "lecture", "show", "list", "capacity", "compare", "law", "collective", "matmul", "rack", "trend", "scale", "cache")
HEAVY = ("plan", "sim", "speed", "price", "train", "bill", "score", "solve", "feistel")
VERBS = (*LIGHT, *HEAVY)
REFUSED_FLAGS = (
    "format",
    "plot",
    "plot_theme",
    "plot_width",
    "picture",
    "explain",
    "catalog",
    "forget",
    "verbose",
)  # no page's
LONGEST = 400  # letters of one value

NUMBER = re.compile(r"[$+-]?\d[\w.,+*/$%: -]*|none|all|never|drain")
COUNT = re.compile(r"\d[\d_.]*(?:[eE]\d+)?[kKMG]?")
WORD = re.compile(r"[\w.:,+@-]+")
TEXT = re.compile(r"[^\x00-\x1f\x7f]+")
EDIT = re.compile(r"(?:chip|system)[.][\w-]+=[$+-]?\d[\w.,+*/$% -]*")
LENGTHS = re.compile(r"(?!trace)(?:[a-z]+:)?\d[\w.,+*-]*")
MACHINE = re.compile(r"[\w.+*=$%(), /-]+")
SHEET = re.compile(r"(?i)(?!.*[.](?:toml|json|ya?ml|csv)\b)\w[\w.@+-]*(?:/\w[\w.@+-]*)?(?:,\w[\w.@+/-]*)*")  # a name, never a file
K8S = re.compile(r"k8s")
MODEL = "model"  # of the catalogue, or by numbers
PAIRS = "named"  # KEY=VALUE, whose values may be names of the catalogue
SUBJECT = "subject"  # a model or a machine

# Kind of each flag that declares no number, by the name of its value.
KINDS: dict[str, Any] = {
    **dict.fromkeys(("model",), MODEL),
    **dict.fromkeys(("names", "name"), SUBJECT),
    **dict.fromkeys(("changes", "values"), PAIRS),
    **dict.fromkeys(("on", "system", "memory_share"), MACHINE),
    **dict.fromkeys(("sheet", "at_sheet", "history", "case"), SHEET),
    **dict.fromkeys(("prompt", "output"), LENGTHS),
    **dict.fromkeys(("requests", "seed", "seeds", "cards", "chips_per_host", "spare"), COUNT),
    **dict.fromkeys(
        ("active", "batch", "batch_per_stage", "cache", "capacity", "confidence", "context", "cost", "deadline", "domain", "dp", "end",
         "ep", "experts", "experts_per_token", "fast", "fee", "head_dim", "heads", "hidden", "hop", "intermediate", "kv_bytes", "kv_heads",
         "kv_share", "layers", "link_bw", "out_bw", "params", "peak", "power", "pp", "rate", "sensitivity", "shared", "storage", "tp",
         "trace_block", "ttl", "turns", "typed_price", "users", "vocab", "warmup"), NUMBER),
    **dict.fromkeys(
        ("arrivals", "attention", "beside", "cipher", "cipher_key", "compute", "embedding", "engine", "engine_version", "kv", "law",
         "loop", "mechanism", "memory", "mesh", "mode", "network", "number_format", "operation", "over", "prefix_cache", "price_metric",
         "rings", "share", "start", "strategy", "think", "tier", "verb", "weights"), WORD),
    **dict.fromkeys(("assume", "current", "find", "product", "so_that", "sought", "tokens", "wanted", "what", "where", "sort"), TEXT),
    "set": EDIT,
    "manifest": K8S,
}  # fmt: skip


class Refused(HeadwayError):
    """A question that a page may not ask."""


def kind_of(action: Any) -> Any:
    """Kind of a flag's values: choices, a pattern, MODEL, PAIRS or SUBJECT; None where a request may not give it."""
    field = getattr(action, "field", None)
    if action.dest in REFUSED_FLAGS:
        return None
    if action.nargs == 0:
        return bool if type(action).__name__ == "_StoreTrueAction" else None
    if field is not None and (field.choices or action.dest not in ("expert_load", "price_metric", "engine")):
        return field.choices or NUMBER
    if isinstance(action.metavar, str) and re.fullmatch(r"[\w|]+\|[\w|]+", action.metavar) and action.metavar == action.metavar.lower():
        return tuple(action.metavar.split("|"))
    return KINDS.get(action.dest)


def check(action: Any, flag: str, value: Any) -> None:
    """Raise Refused where a value is not of its flag's kind."""
    kind = kind_of(action)
    if kind is None:
        raise Refused(f"{flag}: a page may not ask that; use the command line")
    if kind is bool:
        if not isinstance(value, bool):
            raise BadValue(flag, value, "true or false")
        return
    for text in value if isinstance(value, list) else [value]:
        if not isinstance(text, str) or not 0 < len(text) <= LONGEST:
            raise BadValue(flag, text, f"a text of 1 to {LONGEST} letters")
        _check_text(kind, flag, text)


def check_model(text: str) -> None:
    """Raise UnknownName where a text names no model of the catalogue."""
    if not is_model(text):
        raise UnknownName("model", text, models(), "a name of the catalogue")


def _check_text(kind: Any, flag: str, text: str) -> None:
    if isinstance(kind, tuple):
        wrong = [part for part in text.split(",") if part.strip().lower() not in kind]
        if wrong:
            raise UnknownName(f"{flag} value", wrong[0], kind, "one of " + ", ".join(choice for choice in kind if choice))
    elif kind in (MODEL, SUBJECT):
        for name in _names(text):
            if not is_model(name) and (kind == MODEL or not is_machine(name)):
                raise UnknownName("model" if kind == MODEL else "model or machine", name, models(), "a name of the catalogue")
    elif kind == PAIRS:
        check_named(flag, text)
    elif not kind.fullmatch(text):
        raise Refused(f"{flag}: a page may not ask for {text[:60]!r}")


def check_named(flag: str, text: str) -> None:
    """KEY=VALUE: each value a number, or a name of the catalogue with a fact behind it."""
    key, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[\w-]+", key):
        raise BadValue(flag, text, "KEY=VALUE, such as total=1T")
    for part in value.split(","):
        name = re.sub(r"^\d+[*]", "", part.strip())
        if NUMBER.fullmatch(name) and not re.match(r"\d+x[a-z]", name):
            continue
        owner = name.rpartition(".")[0] or name
        if not any(is_model(known) or is_machine(known) for known in (name, owner)):
            raise UnknownName(f"{flag} value", name, models(), "a number, or a model, chip or system of the catalogue")


def _names(text: str) -> list[str]:
    return [part.strip() for part in re.split(r",(?![^()]*\))", text)]


@functools.cache
def models() -> frozenset[str]:
    """Every spelling of a model that ships or lies in the user's own catalogue."""
    from headway.core.catalog import default_catalog
    from headway.models.config import spellings

    return frozenset((*spellings(), *default_catalog().files("models")))


def is_model(text: str) -> bool:
    """Whether a text names a model of the catalogue, or is one by numbers: never a file, never a download."""
    from headway.core.catalog import fold
    from headway.models.config import shipped_file

    bare = re.sub(r":\d+layers?$", "", text.strip())
    return (text.startswith("(") and text.endswith(")")) or fold(bare) in models() or shipped_file(bare) is not None


def is_machine(text: str) -> bool:
    """Whether a text names a machine or a chip of the catalogue."""
    from headway.hardware.system import system

    if not MACHINE.fullmatch(text):
        return False
    try:
        system(text)
    except HeadwayError:
        return False
    return True

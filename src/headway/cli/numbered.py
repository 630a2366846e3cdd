"""Flags of a model as it is read (`--strict`, `--as`, `--key`, `--embedding`), and of a model by numbers in place of its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.core.errors import HeadwayError

# Flags of a model by numbers; their keys, units and legal values are in models/numbers.py.
NUMBERS = {
    "params": "parameters in all: --params 30B --active 3B --layers 48 --kv-bytes 100kB in place of MODEL",
    "active": "parameters that one token uses (default all)",
    "layers": "layers; of a model by name, write NAME:12layers",
    "kv-bytes": "KV cache that a token adds, in 2-byte elements",
    "hidden": "width of the residual stream: --hidden 4096 --layers 32 in place of MODEL is a decoder as Llama",
    "heads": "query heads (default hidden / head-dim)",
    "kv-heads": "KV heads (default 8, or as many as query heads; beside --params as many as the cache holds)",
    "head-dim": "width of a head (default 128)",
    "intermediate": "width of the FFN, or of an expert (default 8/3 of hidden)",
    "vocab": "rows of the embedding (default 128256)",
    "experts": "routed experts",
    "experts-per-token": "experts that a token uses (default 8)",
}
LEADING = ("--params", "--hidden")  # each describes a model by numbers alone
DESTINATIONS = ("model", "name")  # positional arguments that name a model


def model_place(parser: Any) -> int | None:
    """Place of the model among the positional arguments of a verb; None for verbs that take none."""
    positional = [action.dest for action in parser._actions if not action.option_strings]
    return next((positional.index(name) for name in DESTINATIONS if name in positional), None)


def add_model_flags(parser: Any, edits: Any) -> None:
    """Flags on how a model is read, for every verb; flags of a model by numbers, for verbs that name one first."""
    edits.add_argument("--strict", action="store_true", help="a key of config.json that no reader knows is an error, not a note")
    edits.add_argument("--as", dest="mechanism", metavar="KIND", help="read config.json as dense, moe or mla, whatever its model_type")
    edits.add_argument("--key", metavar="KEY=VALUE", action="append", default=[], help="a key of config.json by hand (repeatable)")
    edits.add_argument("--embedding", metavar="FORMAT", help="format of embedding and head (default as stored)")
    if model_place(parser) is None:
        return
    group = parser.add_argument_group("a model by numbers, in place of MODEL")
    for name, text in NUMBERS.items():
        if f"--{name}" not in parser._option_string_actions:
            group.add_argument(f"--{name}", metavar="N", help=text)
            parser._numbers = (*getattr(parser, "_numbers", ()), f"--{name}")


def numbered(parser: Any, argv: Sequence[str]) -> list[str]:
    """The words of a command with the flags of a model by numbers gathered into one word, in the model's place."""
    flags, words, rest = getattr(parser, "_numbers", ()), {}, []
    if any(word.partition("=")[0] in LEADING and word.partition("=")[0] in flags for word in argv):
        flags = tuple(f"--{name}" for name in NUMBERS)  # beside --params or --hidden, a flag that the verb has too is the model's
    queue = list(argv)
    while queue:
        word = queue.pop(0)
        name, equals, value = word.partition("=")
        if name not in flags:
            rest.append(word)
            continue
        if not equals:
            if not queue or queue[0].startswith("--"):
                raise HeadwayError(f"argument {name}: expected one argument")
            value = queue.pop(0)
        words[name[2:]] = value
    if not words:
        return rest
    place = model_place(parser) or 0
    if len(rest) > place and not rest[place].startswith("-"):
        typed_name = rest[place]
        flag = next(iter(words))
        raise HeadwayError(
            f"--{flag} describes a model by numbers: leave out {typed_name!r}, or write {typed_name}:12layers for fewer layers"
        )
    from headway.models.numbers import spelled

    return [*rest[:place], spelled({key.replace("-", "_"): value for key, value in words.items()}), *rest[place:]]

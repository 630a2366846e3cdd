"""`headway feistel vectors|avalanche|differential|coupling`: ciphers and reversible networks as one coupling, demonstrated."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from headway.answers import arguments
from headway.core import schema
from headway.core.errors import BadValue, check_known
from headway.core.listing import Listing, clean, computed, place_of
from headway.core.notes import note
from headway.core.quantity import default
from headway.core.trace import record
from headway.reality import demonstrations
from headway.reality.ciphers.catalogue import CIPHERS, cipher
from headway.reality.question import SUBJECTS, Feistel, FeistelRun
from headway.report import feistel, output

ROUNDS = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 44, 64)
FEW_ROUNDS = (1, 2, 3, 4, 5, 6)
LAYERS = (1, 4, 16, 64)
REDUCED = "simon32"  # the cipher whose differentials are searched: its blocks are short and its rounds alike under rotation


def run(args: Feistel) -> output.Answer:
    """Answer with a row per vector, round or depth."""
    check_known("demonstration", args.what, SUBJECTS)
    values = schema.read(args, FeistelRun)
    axes = {name: values.pop(name, None) for name in ("rounds", "layers")}
    for name, value in values.items():
        if isinstance(value, tuple):
            raise BadValue("--" + name, getattr(args, name), "one value")
    settings = schema.defaults(FeistelRun, values)
    with record():
        rows = _rows(args, axes, settings)
    plain = clean([dataclasses.asdict(row) for row in rows])

    def tree(row: Mapping[str, Any], key: str) -> Any:
        return computed(getattr(rows[place_of(row, plain)], key), key)

    return output.Answer(
        Listing(plain, tree=tree), describe=feistel.WORDS[args.what], describes_none=True,
        pictures=feistel.pictures(args.what), most=200,
    )  # fmt: skip


def _rows(args: Feistel, axes: dict[str, Any], settings: Any) -> list[Any]:
    if args.what == "coupling":
        return list(demonstrations.coupling_rows(_axis(axes["layers"], "layers", LAYERS), int(settings.seed)))
    names = [cipher(name).name for name in arguments.split(args.cipher, "--cipher")] if args.cipher else list(CIPHERS)
    if args.what == "vectors":
        return demonstrations.vector_rows(names)
    rows = []
    if args.what == "differential":
        if args.cipher and names != [REDUCED]:
            raise BadValue("--cipher", args.cipher, f"{REDUCED}: differentials are searched in a cipher of short blocks")
        names = [REDUCED]
    make = demonstrations.avalanche_rows if args.what == "avalanche" else demonstrations.differential_rows
    usual = ROUNDS if args.what == "avalanche" else FEW_ROUNDS
    for name in names if args.cipher or args.what == "differential" else [REDUCED]:
        subject = cipher(name)
        rows += make(subject, _legal(axes["rounds"], usual, subject), demonstrations.key_of(subject, args.cipher_key), settings)
    return rows


def _axis(values: Any, name: str, usual: tuple[int, ...]) -> tuple[Any, ...]:
    """Values of an axis: the user's, or the usual ones."""
    if values is None:
        return tuple(default(value, name, "", "usual value of headway feistel") for value in usual)
    return schema.several(values)


def _legal(values: Any, usual: tuple[int, ...], subject: Any) -> Iterable[int]:
    """Rounds that the cipher has; a note says which of a list it has not; a single illegal value is an error."""
    rounds = _axis(values, "rounds", usual)
    legal = tuple(count for count in rounds if count <= subject.rounds)
    if not legal:
        raise BadValue("--rounds", ", ".join(str(int(count)) for count in rounds), f"at most {subject.rounds} for {subject.title}")
    above = len(rounds) - len(legal)
    if values is not None and above:
        note(f"rounds: dropped {above} of {len(rounds)} values above the {subject.rounds} of {subject.title}")
    return legal

"""`headway.scale(flop=1e25)`: the answer as rows that explain themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway import schema
from headway.errors import UnknownName
from headway.listing import Listing
from headway.output import clean
from headway.scaling.answer import Asked, explained, rows
from headway.scaling.ask import RECORDS, Doubt
from headway.scaling.question import question
from headway.scaling.remarks import remarks


def scale(*, law: str | None = None, beside: str = "all", moe: bool = False, **wanted: Any) -> Listing:
    """Compute split best, how far to over-train for what is served, or what experts are worth: by what is given.

    Keywords are the flags of `headway scale`: numbers (SI), text such as "50M/s", or lists of them, which give a row each.

    >>> scale(flop=5.76e23, beside="none").plain[0]["active"] / 1e9  # doctest: +ELLIPSIS
    72.3...
    """
    given: dict[str, Any] = {}
    doubt: dict[str, Any] = {}
    for name, value in ((name, value) for name, value in wanted.items() if value is not None):
        owner = next((record for record in (*RECORDS, Doubt) if name in schema.fields(record)), None)
        if owner is None:
            raise UnknownName("argument of scale", name, [known for record in (*RECORDS, Doubt) for known in schema.fields(record)])
        q = schema.fields(owner)[name][0]
        if owner is Doubt:
            doubt[name] = schema.scalar(_text(value), q, name)
        else:
            given[name] = schema.axis(_text(value), q, name)[0]
    return listed(*question(given, schema.defaults(Doubt, doubt), law, beside, moe))


def _text(value: Any) -> str:
    """A value from Python as it is typed, so that it is read and checked in one place."""
    several = value.tolist() if hasattr(value, "tolist") else value
    return ",".join(map(_text, several)) if isinstance(several, list | tuple) else str(several)


def listed(asked: Asked, notes: Sequence[str] = ()) -> Listing:
    """The rows of a question, each number with the laws behind it."""
    found = rows(asked)
    plain = [clean(row.plain) for row in found]

    def tree(row: Any, key: str) -> Any:
        place = next(index for index, own in enumerate(plain) if all(row.get(name) == own[name] for name in own))
        return explained(asked, found[place], key)

    return Listing(plain, notes=(*notes, *remarks(asked, plain)), tree=tree)

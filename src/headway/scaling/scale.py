"""`headway.scale(flop=1e25)`: the answer as rows that explain themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway import schema
from headway.errors import UnknownName
from headway.listing import Listing
from headway.output import clean
from headway.scaling.answer import ScalingQuestion, explained, rows
from headway.scaling.ask import RECORDS, Uncertainty
from headway.scaling.question import question
from headway.scaling.remarks import remarks


def scale(*, law: str | None = None, beside: str = "all", moe: bool = False, **flags: Any) -> Listing:
    """Compute split best, how far to over-train for what is served, or what experts are worth: by what is given.

    Keywords are the flags of `headway scale`: numbers (SI), text such as "50M/s", or lists of them, which give a row each.

    >>> scale(flop=5.76e23, beside="none").plain[0]["active"] / 1e9  # doctest: +ELLIPSIS
    72.3...
    """
    flag_values: dict[str, Any] = {}
    doubt: dict[str, Any] = {}
    for name, value in ((name, value) for name, value in flags.items() if value is not None):
        owner = next((record for record in (*RECORDS, Uncertainty) if name in schema.fields(record)), None)
        if owner is None:
            raise UnknownName("argument of scale", name, [known for record in (*RECORDS, Uncertainty) for known in schema.fields(record)])
        q = schema.fields(owner)[name][0]
        if owner is Uncertainty:
            doubt[name] = schema.scalar(_text(value), q, name)
        else:
            flag_values[name] = schema.axis(_text(value), q, name)[0]
    return listing(*question(flag_values, schema.defaults(Uncertainty, doubt), law, beside, moe))


def _text(value: Any) -> str:
    """A value from Python as it is typed, so that it is read and checked in one place."""
    several = value.tolist() if hasattr(value, "tolist") else value
    return ",".join(map(_text, several)) if isinstance(several, list | tuple) else str(several)


def listing(request: ScalingQuestion, notes: Sequence[str] = ()) -> Listing:
    """The rows of a question, each number with the laws behind it."""
    answer_rows = rows(request)
    plain = [clean(row.plain) for row in answer_rows]

    def tree(row: Any, key: str) -> Any:
        place = next(index for index, plain_row in enumerate(plain) if all(row.get(name) == plain_row[name] for name in plain_row))
        return explained(request, answer_rows[place], key)

    return Listing(plain, notes=(*notes, *remarks(request, plain)), tree=tree)

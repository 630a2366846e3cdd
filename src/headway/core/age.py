"""How old a fact may be before an answer says so: one age for each kind, in data/ages.csv."""

from __future__ import annotations

import datetime
import functools
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from headway.core.catalog import lines
from headway.core.errors import BadValue

DAY_S, MONTH_DAYS = 86400, 365.25 / 12
LAST_DAY = 28  # of a month whose day is not stated
EPOCH = "SOURCE_DATE_EPOCH"
DATED = re.compile(r"\d{4}(?:-\d{2}(?!\d)){0,2}")


def today() -> datetime.date:
    """Today, or the day that $SOURCE_DATE_EPOCH sets, by which answers can be had again later."""
    moment = os.environ.get(EPOCH, "")
    if not moment.isdecimal():
        return datetime.date.today()
    try:
        return datetime.datetime.fromtimestamp(int(moment), datetime.UTC).date()
    except (ValueError, OverflowError, OSError):
        raise BadValue(f"${EPOCH}", moment, "the seconds from 1970 to a day, such as 1790000000") from None


@contextmanager
def on_day(day: str) -> Iterator[None]:
    """Within this block, and what it starts, today is this day."""
    before = os.environ.get(EPOCH)
    os.environ[EPOCH] = str(int(datetime.datetime.fromisoformat(f"{day}T12:00+00:00").timestamp()))
    try:
        yield
    finally:
        os.environ.pop(EPOCH)
        if before is not None:
            os.environ[EPOCH] = before


def last_day(text: str) -> datetime.date:
    """The last day that a date such as 2026, 2026-07, 2025-10..2025-12 or 2026-09-28 may mean; the oldest for one without a date."""
    days = DATED.findall(text)
    if not days:
        return datetime.date.min
    year, *rest = (int(part) for part in days[-1].split("-"))
    month, day = (*rest, *(12, LAST_DAY)[len(rest) :])
    try:
        return datetime.date(year, month, day)
    except ValueError:
        raise BadValue("date", text, "a day of the calendar, such as 2026-09-28") from None


@functools.cache
def limits() -> dict[str, int]:
    """Days from which a fact is old, by kind."""
    return {row["kind"]: int(row["days"]) for row in lines("ages.csv")}


def age(kind: str, date: str) -> str:
    """How old a fact of this kind is, where that is worth a mark; "" for a fresh one and for one without a date."""
    since = last_day(date)
    days = (today() - since).days
    if since == datetime.date.min or days <= limits()[kind]:
        return ""
    months = round(days / MONTH_DAYS)
    return f"{months} months old" if months < 24 else f"{months // 12} years old"

"""One test for many items, where a case of its own would cost more than its work: every item is checked, and all offenders are listed."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def for_each(items: Iterable[Any], name: Callable[[Any], str] = str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A test that runs its function for each item, which is its first argument; the others stay fixtures."""
    cases = list(items)

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(check)
        _, *others = signature.parameters.values()

        @functools.wraps(check)
        def test(**fixtures: Any) -> None:
            assert cases, "nothing to check"
            offenders = []
            for item in cases:
                try:
                    check(item, **fixtures)
                except Exception as error:  # whatever goes wrong is the item's offence
                    lines = str(error).splitlines() or [""]
                    offenders.append(f"{name(item)}: {type(error).__name__}: {' | '.join(line.strip() for line in lines[:4])}")
            if offenders:
                raise AssertionError("\n".join([f"{len(offenders)} of {len(cases)}", *offenders]))

        test.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        del test.__wrapped__  # type: ignore[attr-defined]
        return test

    return decorate

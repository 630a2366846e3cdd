"""The rules that check many items in one test list every offender."""

from __future__ import annotations

import pytest

from support.each import for_each


def test_for_each__lists_all_offenders() -> None:
    @for_each(range(5), name=lambda item: f"number {item}")
    def is_even(item: int) -> None:
        assert item % 2 == 0, f"{item} is odd"

    with pytest.raises(AssertionError, match="number 1: AssertionError: 1 is odd") as error:
        is_even()
    assert "number 3" in str(error.value) and "number 2" not in str(error.value)


def test_for_each__of_nothing_fails() -> None:
    @for_each([])
    def never(item: int) -> None:
        raise NotImplementedError

    with pytest.raises(AssertionError, match="nothing to check"):
        never()

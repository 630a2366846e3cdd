"""The whole answers and the tables of figures that README and pages of docs/ print are those of today's program."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.page_answers import BLOCK, FIGURE_BLOCK, PAGES, renewed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_answers__are_what_the_command_prints(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert BLOCK.search(text) or FIGURE_BLOCK.search(text), "a page without an answer need not be listed"
    assert renewed(page) == text, "run `make answers`"
    assert all(len(line) <= 120 for block in BLOCK.finditer(text) for line in block["answer"].splitlines())

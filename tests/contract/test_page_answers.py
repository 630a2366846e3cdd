"""The whole answers that README and docs/serve.md print are those of today's program."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.page_answers import BLOCK, PAGES, renewed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_answers__are_what_the_command_prints(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert BLOCK.search(text), "a page without an answer need not be listed"
    assert renewed(page) == text, "run `make answers`"
    assert all(len(line) <= 120 for block in BLOCK.finditer(text) for line in block["answer"].splitlines())

"""One server and one browser for all tests of the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.web_server import Visit, chromium, web_server


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Address of the server."""
    with web_server() as where:
        yield where


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The browser."""
    with chromium() as window:
        yield window


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Visit]:
    """A page in a window of its own; its console must stay empty, and nothing else may have been asked for."""
    window = Visit(browser, address, viewport={"width": 1200, "height": 900})
    yield window
    window.close()
    assert window.said == []
    assert window.blocked == []

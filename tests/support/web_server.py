"""A `headway web` of its own for a test, and a Chromium that reaches nothing else."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from support.paths import ROOT

READY = "body[data-ready]"
SMALL = "&w=llama-3.1-8b&on=h200&prompt=500&output=50"
SMALLER = {"speed": SMALL, "price": f"{SMALL}&chip-price=2.2,3.3,4.5&tpot=50ms"}  # of views whose own question takes many seconds


def small(page: str, view: str) -> str:
    """Address of a view, of a small question where its own is a large one: for what does not depend on the question."""
    return f"/{page}?view={view}{SMALLER.get(view, '')}"


@contextlib.contextmanager
def web_server(*words: str) -> Iterator[str]:
    """Address of a server that runs while the block does."""
    for module in ("starlette", "uvicorn", "vl_convert"):
        pytest.importorskip(module, reason="the extra web is not installed")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    argv = [sys.executable, "-m", "headway", "web", "--port", "0", *words]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment)
    try:
        line = process.stderr.readline() if process.stderr else ""
        address = re.search(r"http://[\d.]+:\d+", line)
        assert address, line
        yield address[0]
    finally:
        process.terminate()
        process.wait(timeout=20)
        if process.stderr:
            process.stderr.close()


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A browser, or a skip that says what is missing."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        try:
            browser = driver.chromium.launch(executable_path=path)
        except playwright.Error as error:
            pytest.skip(f"no Chromium: apt-get install chromium, or playwright install chromium ({str(error).splitlines()[0][:80]})")
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A page of a browser whose network is blocked beyond the server, with all that its console said."""

    def __init__(self, browser: Any, address: str, **how: Any) -> None:
        self.context = browser.new_context(**how)
        self.page = self.context.new_page()
        self.address, self.said, self.blocked = address, [], []
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self.page.route("**/*", self._route)

    def _route(self, route: Any) -> None:
        if route.request.url.startswith((self.address + "/", "data:", "blob:")):
            route.continue_()
        else:
            self.blocked.append(route.request.url)
            route.abort()

    def open(self, path: str) -> Any:
        """The page at a path, once it stands."""
        self.page.goto(self.address + path)
        self.page.wait_for_selector(READY, timeout=90_000)
        return self.page

    def close(self) -> None:
        """Close it."""
        self.context.close()

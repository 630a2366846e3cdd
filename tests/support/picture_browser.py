"""Boxes of a picture's texts and samples of its lines, as a real browser draws them."""

from __future__ import annotations

import functools
import importlib.util
import shutil
import subprocess
from typing import Any

import pytest

SAME_WIDTHS = ("Helvetica", "Helvetica Neue", "Arial", "Arimo", "Liberation Sans", "Nimbus Sans", "TeX Gyre Heros", "FreeSans")
MEASURE = """
() => {
  const svg = document.querySelector('svg');
  const frame = svg.getBoundingClientRect();
  const box = r => [r.left, r.top, r.right, r.bottom];
  const texts = [...svg.querySelectorAll('text')].filter(t => t.textContent.trim())
    .map(t => ({text: t.textContent, box: box(t.getBoundingClientRect()), size: parseFloat(getComputedStyle(t).fontSize)}));
  const clipOf = shape => {
    const holder = shape.closest('[clip-path]');
    if (!holder) return null;
    const rect = document.querySelector(holder.getAttribute('clip-path').slice(4, -1) + ' rect');
    const m = holder.getScreenCTM(), at = n => parseFloat(rect.getAttribute(n));
    return [m.e + m.a * at('x'), m.f + m.d * at('y'), m.e + m.a * (at('x') + at('width')), m.f + m.d * (at('y') + at('height'))];
  };
  const lines = [];
  for (const shape of svg.querySelectorAll('.mark-line path, .mark-rule line')) {
    if (shape.closest('.role-axis') || !shape.getTotalLength) continue;
    if (shape.tagName === 'path' && !shape.getAttribute('d')) continue;
    const m = shape.getScreenCTM(), clip = clipOf(shape), length = shape.getTotalLength();
    for (let at = 0; at <= length; at += 2) {
      const p = shape.getPointAtLength(at), x = m.a * p.x + m.c * p.y + m.e, y = m.b * p.x + m.d * p.y + m.f;
      if (!clip || (x >= clip[0] && x <= clip[2] && y >= clip[1] && y <= clip[3])) lines.push([x, y]);
    }
  }
  return {frame: box(frame), texts, lines};
}
"""


@functools.cache
def reason() -> str:
    """Why pictures cannot be looked at here; empty where they can."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed: pip install headway[dev]"
    if importlib.util.find_spec("vl_convert") is None:
        return "vl_convert is not installed: pip install headway[plot]"
    if not executable():
        return "no chromium on the path: apt install chromium, or playwright install chromium"
    return "" if as_wide_as_helvetica() else "no font as wide as Helvetica: apt install fonts-liberation"


def as_wide_as_helvetica() -> bool:
    """Whether the browser sets Helvetica, or a font of its widths; machines without fontconfig bring their own."""
    if not shutil.which("fc-match"):
        return True
    family = subprocess.run(["fc-match", "-f", "%{family}", "Helvetica"], capture_output=True, text=True, check=False).stdout
    return family.split(",")[0] in SAME_WIDTHS


def executable() -> str | None:
    """A browser of the machine."""
    return next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)


class PictureBrowser:
    """One page of a browser that draws pictures and measures them."""

    def __init__(self) -> None:
        if reason():
            pytest.skip(reason())
        from playwright.sync_api import sync_playwright

        self.driver = sync_playwright().start()
        self.browser = self.driver.chromium.launch(executable_path=executable())
        self.page = self.browser.new_page(viewport={"width": 1300, "height": 900})

    def close(self) -> None:
        self.browser.close()
        self.driver.stop()

    def measure(self, svg: str) -> dict[str, Any]:
        """Frame, texts with their boxes and sizes, and points of lines outside axes, in px."""
        self.page.set_content(f"<style>body {{ margin: 0 }}</style>{svg}")
        return self.page.evaluate(MEASURE)


def faults(measured: dict[str, Any], width: int, smallest: float = 11.0) -> list[str]:
    """What is wrong with a picture: texts outside the frame, on each other or on lines, too small; a picture too wide."""
    import numpy as np

    left, top, right, bottom = measured["frame"]
    texts = measured["texts"]
    found = [f"{right - left:.0f} px wide"] if right - left > width + 1 else []
    found += [f"small: {text['text']}" for text in texts if text["size"] < smallest]
    for text in texts:
        x, y, x2, y2 = text["box"]
        if x < left - 1 or y < top - 1 or x2 > right + 1 or y2 > bottom + 1:
            found.append(f"outside: {text['text']}")
    for place, first in enumerate(texts):
        for second in texts[place + 1 :]:
            a, b = first["box"], second["box"]
            if min(a[2], b[2]) - max(a[0], b[0]) > 1 and min(a[3], b[3]) - max(a[1], b[1]) > 2:
                found.append(f"on each other: {first['text']} / {second['text']}")
    points = np.asarray(measured["lines"], float).reshape(-1, 2)
    for text in texts:
        x, y, x2, y2 = text["box"]
        across, down = points[:, 0], points[:, 1]
        if ((across > x + 1) & (across < x2 - 1) & (down > y + 2.5) & (down < y2 - 2.5)).any():
            found.append(f"struck through: {text['text']}")
    return found

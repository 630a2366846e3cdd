"""Colours with one meaning in every picture, in a light and a dark set, and as variables of a page's style sheet."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from headway.core.errors import check_known

PAGE = "css"  # theme of a page, whose style sheet has the colours
MEANINGS = ("weights", "kv", "compute", "network", "whole")  # in the order of the page's variables --c1 .. --c5


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """Colours of a picture: `lines` draw data, `labels` are darker (on dark: lighter) tones of the same for small text."""

    paper: str | None  # background; None lets the page's own shine through
    ink: str  # text, operating points, totals
    muted: str  # notes, axis labels
    rest: str  # data beside those that a picture is about
    grid: str  # grid lines, frames, shaded regions
    lines: Mapping[str, str]
    labels: Mapping[str, str]

    def line(self, meaning: str) -> str:
        """Colour of a line or an area; `ink`, `muted` and `rest` are meanings too."""
        return getattr(self, meaning) if meaning in ("ink", "muted", "rest", "grid") else self.lines[meaning]

    def label(self, meaning: str) -> str:
        """Colour of the text beside a line."""
        meaning = "muted" if meaning == "rest" else meaning
        return getattr(self, meaning) if meaning in ("ink", "muted") else self.labels[meaning]


def _set(*colours: str) -> dict[str, str]:
    return dict(zip(MEANINGS, colours, strict=True))


# Contrast of lines at least 3:1 and of text at least 4.5:1 on the paper, and distances under three kinds of colour blindness: a test
# computes them.
THEMES = {
    "light": Theme(
        paper="#ffffff", ink="#1a1a1a", muted="#5a5a5a", rest="#909090", grid="#dddddd",
        lines=_set("#0072B2", "#EE6677", "#332288", "#A6611A", "#555555"),
        labels=_set("#00639B", "#B8334A", "#332288", "#8A4F14", "#4A4A4A"),
    ),
    "dark": Theme(
        paper="#141414", ink="#f0f0f0", muted="#ababab", rest="#757575", grid="#3a3a3a",
        lines=_set("#0072B2", "#E69F00", "#56B4E9", "#CC3311", "#F0E442"),
        labels=_set("#4FA3D9", "#E69F00", "#8CCBF0", "#F07A5C", "#F0E442"),
    ),
    PAGE: Theme(
        paper=None, ink="currentColor", muted="var(--muted)", rest="var(--rest)", grid="var(--grid)",
        lines=_set(*(f"var(--c{number})" for number in range(1, 6))),
        labels=_set(*(f"var(--t{number})" for number in range(1, 6))),
    ),
}  # fmt: skip


def theme(name: str) -> Theme:
    """A theme by name: light, dark, or css for a page that defines the colours."""
    check_known("theme", name, THEMES)
    return THEMES[name]


def variables(name: str) -> dict[str, str]:
    """The variables of a page's style sheet that give the css theme the colours of the light or the dark set."""
    colours = theme(name)
    lines = {f"--c{place}": colours.lines[meaning] for place, meaning in enumerate(MEANINGS, 1)}
    labels = {f"--t{place}": colours.labels[meaning] for place, meaning in enumerate(MEANINGS, 1)}
    return lines | labels | {"--muted": colours.muted, "--rest": colours.rest, "--grid": colours.grid}

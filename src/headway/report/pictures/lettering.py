"""Widths of text before a browser has drawn it, and its breaking into lines."""

from __future__ import annotations

import functools

FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
SIZE = 12  # px of every label
TITLE_SIZE = 16
LEADING = 1.25  # line height over size
SLACK = 1.03  # fonts that stand in for Helvetica are a little wider
# Widths of Helvetica's characters in thousandths of its size, by groups; any other character is as wide as a digit.
_GROUPS = {222: "ijl'|", 278: " fIt/.,:;![]", 333: "r-()`", 389: "*\"", 500: "cksvxyzJ", 584: "+<>=~^", 611: "FTZ", 667: "ABEKPSVXY&",
           722: "CDHNRUw", 778: "GOQ", 833: "mM", 889: "%", 944: "W", 1000: "→←…—"}  # fmt: skip
_WIDTHS = {character: width for width, characters in _GROUPS.items() for character in characters}
BOLD = 1.08  # bold letters over plain ones
SPELLED = {"∝": "~"}  # what the fonts lack: a single one would set its whole line in another font, and wider


@functools.lru_cache(maxsize=4096)  # the words of a picture are measured again and again while a slider moves
def text_width(text: str, size: float = SIZE, bold: bool = False) -> float:
    """Width of a line of text in px."""
    return sum(_WIDTHS.get(character, 556) for character in text) / 1000 * size * SLACK * (BOLD if bold else 1.0)


def wrap(text: str, width: float, size: float = SIZE, bold: bool = False) -> list[str]:
    """Text broken into lines of at most `width` px; a word that is wider stands alone."""
    lines: list[str] = []
    for word in text.translate(str.maketrans(SPELLED)).split():
        if lines and text_width(f"{lines[-1]} {word}", size, bold) <= width:
            lines[-1] = f"{lines[-1]} {word}"
        else:
            lines.append(word)
    return lines


def shorten(text: str, width: float, size: float = SIZE) -> str:
    """Text cut to `width` px, with an ellipsis where something is lost."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + "…", size) > width:
        text = text[:-1]
    return text.rstrip() + "…"

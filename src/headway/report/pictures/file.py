"""Pictures as PNG, SVG and HTML files, and as SVG text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headway.core.errors import BadFile, BadValue, MissingExtra
from headway.core.files import write_whole

SUFFIXES = (".png", ".svg", ".html")
CONTROL = re.compile(r"\\u00(?:[01][0-9a-f]|7f|[89][0-9a-f])")  # as JSON writes them
LESS = "\ue03c"  # stands for < while a page is made; of a private area of Unicode
PNG_SCALE = 1.5  # px of a file over px of the specification: 1,140 wide at the default


def check_path(path: str) -> None:
    """Raise an error if no picture can be written to `path`, before any work is done."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise BadValue("--plot", path, "a file that ends in .png, .svg or .html")
    if not Path(path).absolute().parent.is_dir():
        raise BadFile(path, "its folder does not exist")


def svg(spec: Mapping[str, Any]) -> str:
    """The picture as SVG; empty without the extra `plot`."""
    try:
        import vl_convert
    except ImportError:
        return ""
    return vl_convert.vegalite_to_svg(_drawable(spec))


def _drawable(spec: Mapping[str, Any]) -> str:
    """The specification as JSON, without control characters, on which the renderer ends the process."""
    return CONTROL.sub(" ", json.dumps(spec, allow_nan=False))


def save(spec: Mapping[str, Any], path: str) -> None:
    """Write a specification to `path`; the ending selects the format."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("--plot", "plot") from None
    text, suffix = _drawable(spec), Path(path).suffix.lower()
    try:
        if suffix == ".png":
            scale = PNG_SCALE if "datasets" in spec else 2
            write_whole(path, vl_convert.vegalite_to_png(text, scale=scale))
        elif suffix == ".svg":
            write_whole(path, vl_convert.vegalite_to_svg(text))
        else:
            page = vl_convert.vegalite_to_html(text.replace("<", LESS), bundle=True)
            write_whole(path, page.replace(LESS, "\\u003c"))  # a name with </script> stays a name
    except OSError as error:
        raise BadFile(path, f"cannot be written ({error.strerror or error})") from None

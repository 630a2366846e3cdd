"""Pictures as PNG, SVG and HTML files, and as SVG text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headway.core.errors import BadFile, BadValue, MissingExtra

SUFFIXES = (".png", ".svg", ".html")
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
    return vl_convert.vegalite_to_svg(json.dumps(spec, allow_nan=False))


def save(spec: Mapping[str, Any], path: str) -> None:
    """Write a specification to `path`; the ending selects the format."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("--plot", "plot") from None
    text, target = json.dumps(spec, allow_nan=False), Path(path)
    try:
        if target.suffix.lower() == ".png":
            scale = PNG_SCALE if "datasets" in spec else 2
            target.write_bytes(vl_convert.vegalite_to_png(text, scale=scale))
        elif target.suffix.lower() == ".svg":
            target.write_text(vl_convert.vegalite_to_svg(text), encoding="utf-8")
        else:
            target.write_text(vl_convert.vegalite_to_html(text, bundle=True), encoding="utf-8")
    except OSError as error:
        raise BadFile(path, f"cannot be written ({error.strerror or error})") from None

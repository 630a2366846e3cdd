"""Vega, Vega-Lite and vega-embed as one script, made at the first start by vl-convert and kept in the user's cache."""

from __future__ import annotations

import os
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from headway.core.errors import MissingExtra


def path() -> Path:
    """The script's file; made if it is not there."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("headway web", "web") from None
    converter: Any = vl_convert  # its stubs leave out that the argument is optional
    target = folder() / f"vega-{version('vl-convert-python')}.js"
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=target.parent, suffix=".js", delete=False, encoding="utf-8") as part:
            part.write(converter.javascript_bundle())
        Path(part.name).replace(target)  # whole or not at all, also when two servers start
    return target


def folder() -> Path:
    """Folder of what headway may make again."""
    configured = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(configured) if configured else Path.home() / ".cache") / "headway"
    except RuntimeError:  # no home folder
        return Path(tempfile.gettempdir()) / "headway"

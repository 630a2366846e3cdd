"""Vega, Vega-Lite and vega-embed as one script, made at the first start by vl-convert and kept where only its user can write."""

from __future__ import annotations

import functools
from importlib.metadata import version
from typing import Any

from headway.core import code_store
from headway.core.errors import MissingExtra


@functools.cache
def script() -> bytes:
    """The script; made if it is not there."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("headway web", "web") from None
    folder = code_store.code_folder("scripts")
    path = folder and folder / f"vega-{version('vl-convert-python')}.js"
    script = path and code_store.load(path)
    if not script:
        converter: Any = vl_convert  # its stubs leave out that the argument is optional
        script = converter.javascript_bundle().encode()
        if path:
            code_store.save(path, script)
    return script

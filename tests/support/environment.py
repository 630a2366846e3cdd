"""The environment of every test: none of the user's own settings, and arithmetic that does not depend on the processor."""

from __future__ import annotations

import functools
import os
import platform
import tempfile
from pathlib import Path

# What a user may have set changes answers or their colours.
OWN_SETTINGS = (
    "HEADWAY_CATALOG", "HEADWAY_DEBUG", "FORCE_COLOR", "CLICOLOR_FORCE", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS",
    "LINES",
)  # fmt: skip

TODAY = "1795737600"  # 2026-11-27


def settle() -> None:
    """Set the environment; before numpy is imported, whose linear algebra sums in the order of the processor's own kernels."""
    for name in OWN_SETTINGS:
        os.environ.pop(name, None)
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):  # or each command that a test starts would compile the package anew
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir()) / "headway-tests-bytecode")
    os.environ["XDG_CONFIG_HOME"] = os.devnull  # no catalogue of the user's own
    os.environ["SOURCE_DATE_EPOCH"] = TODAY  # or stored answers would age
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # tests run beside each other
    if platform.machine() == "x86_64":
        os.environ["OPENBLAS_CORETYPE"] = "Haswell"  # the stored answers of fits were computed with these kernels


@functools.cache
def compile_loop() -> None:
    """Compile the loop, without which plans play fewer requests: stored answers would depend on what has run before on a machine."""
    from headway.simulation.compiled import NO_STEP, available, runner

    if available():
        runner(NO_STEP, lambda *_: 1.0, 0.0, "compiled", routed=True)

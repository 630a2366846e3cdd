"""A package's modules that load at first use: nothing runs before something of them is looked up, and errors stay what they were."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = "from headway.core.lazy import at_first_use\n__getattr__ = at_first_use(__name__)\n"


def run(folder: Path, code: str) -> str:
    """What a fresh interpreter prints that finds the package `trees` in a folder."""
    (folder / "trees").mkdir()
    (folder / "trees" / "__init__.py").write_text(PACKAGE)
    (folder / "trees" / "oak.py").write_text("print('oak runs')\nHEIGHT = 20\n")
    (folder / "trees" / "broken.py").write_text("raise ValueError('broken runs')\n")
    settings = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=settings, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("from trees import oak; print('imported'); print(oak.HEIGHT)", "imported\noak runs\n20\n"),
        ("from trees import oak; from trees.oak import HEIGHT; print(oak.HEIGHT, HEIGHT)", "oak runs\n20 20\n"),
        ("from trees import oak as one; from trees import oak as two; print(one is two)", "True\n"),
        ("import trees.oak; print(trees.oak.HEIGHT)", "oak runs\n20\n"),
        ("from trees import broken; print('imported')\ntry: broken.x\nexcept ValueError as error: print(error)", "imported\nbroken runs\n"),
        ("try: from trees import elm\nexcept ImportError as error: print(error.name)", "trees\n"),
        ("import trees; print(hasattr(trees, 'elm'), hasattr(trees, '__path__'))", "False True\n"),
    ],
)
def test_module__runs_when_something_of_it_is_looked_up(tmp_path: Path, code: str, printed: str) -> None:
    assert run(tmp_path, code) == printed

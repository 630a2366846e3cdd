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
    (folder / "trees" / "slow.py").write_text("import time\nprint('slow runs')\ntime.sleep(0.2)\nHEIGHT = 20\n")
    (folder / "trees" / "broken.py").write_text("raise ValueError('broken runs')\n")
    settings = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=settings, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("from trees import oak; print('imported'); print(oak.HEIGHT)", "imported\noak runs\n20\n"),
        ("from trees import oak; from trees.oak import HEIGHT; print(oak.HEIGHT, HEIGHT)", "oak runs\n20 20\n"),
        ("from trees import oak; oak.HEIGHT = 7; import trees.oak as real; print(real.HEIGHT); del oak.HEIGHT; print(dir(real)[:1])",
         "oak runs\n7\n['__builtins__']\n"),
        ("import trees.oak; print(trees.oak.HEIGHT)", "oak runs\n20\n"),
        ("from trees import broken; print('imported')\ntry: broken.x\nexcept ValueError as error: print(error)", "imported\nbroken runs\n"),
        ("try: from trees import elm\nexcept ImportError as error: print(error.name)", "trees\n"),
        ("import trees; print(hasattr(trees, 'elm'), hasattr(trees, '__path__'))", "False True\n"),
    ],
)
def test_module__runs_when_something_of_it_is_looked_up(tmp_path: Path, code: str, printed: str) -> None:
    assert run(tmp_path, code) == printed


THREADS = """
import sys, threading
from trees import slow
sys.setswitchinterval(1e-6)
start, heights = threading.Barrier(16), []
def look():
    start.wait()
    heights.append(slow.HEIGHT)
threads = [threading.Thread(target=look) for _ in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(heights == [20] * 16)
"""


def test_module__runs_once_for_threads_that_come_together(tmp_path: Path) -> None:
    assert run(tmp_path, THREADS) == "slow runs\nTrue\n"

"""The command and the page where others can write what they would load: nothing of theirs runs, an answer is made all the same."""

from __future__ import annotations

import csv
import io
import os
import pickle
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headway.core import code_store
from headway.simulation.compiled import folder
from support.paths import ROOT

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes of POSIX")
SIM = "sim llama-3.1-8b --on h200 --prompt 50 --output 5 --rate 2 --requests 20 --sensitivity 0 --loop compiled -o csv"
NOBODY = 65534
ENTRY = ["-P", "-c", "from headway.cli.entry import entry; entry()"]


class Planted:
    """A pickle that writes a file where it is loaded."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def other_user() -> dict[str, Any]:
    """How a process runs as nobody; as this user where that may not be, or where nobody cannot read the sources."""
    how = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if not os.geteuid() else {}
    try:
        words = [sys.executable, *ENTRY[:2], "import headway.cli.main"]
        return how if not subprocess.run(words, env=surroundings(), check=False, capture_output=True, **how).returncode else {}
    except PermissionError:
        return {}


def surroundings(**more: str) -> dict[str, str]:
    usual = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "NUMBA_", "HOME", "TMP", "TEMP", "PYTHON"))}
    return usual | {"PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"} | more


def plant(place: Path, mark: Path) -> None:
    """Pickles under the names that are loaded, and were, in a folder of anybody's."""
    own = folder() or Path("compiled-0")
    files = {"run_one-0.code", "run_one-1.py311.nbi", "run_one-1.py311.1.nbc", *(path.name for path in own.glob("*.code"))}
    code = pickle.dumps(Planted(mark))
    for name in ("", "headway", own.name, f"headway-{own.name}", f"headway/{own.name}"):
        (place / name).mkdir(parents=True, exist_ok=True)
        for file in files:
            code_store.save(place / name / file, code)
    for found in (place, *place.rglob("*")):
        found.chmod(0o777 if found.is_dir() else 0o666)


@pytest.fixture(scope="module")
def answer() -> str:
    """What the command answers in usual surroundings."""
    process = subprocess.run([sys.executable, *ENTRY, *SIM.replace("compiled -o", "plain -o").split()],
                             capture_output=True, text=True, check=True, env=surroundings(HOME=str(Path.home())))  # fmt: skip
    return process.stdout


def numbers(text: str) -> dict[str, str]:
    (row,) = csv.DictReader(io.StringIO(text))
    return {key: row[key] for key in ("completed", "mean_ttft_s", "p99_ttft_s", "mean_tpot_s", "duration_s")}


@pytest.mark.slow
@pytest.mark.parametrize("place", ["planted", "nothing can be written"])
def test_sim__compiled_where_others_write_or_nothing_can_be_written(tmp_path: Path, answer: str, place: str) -> None:
    pytest.importorskip("numba")
    base = tmp_path / "shared"
    base.mkdir()
    mark = base / "it-ran"
    plant(base, mark)
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.geteuid() and not parent.stat().st_mode & 0o005 and parent != Path(parent.anchor):
            parent.chmod(parent.stat().st_mode | 0o055)
    before = sorted(path.relative_to(base) for path in base.rglob("*"))
    hostile = {"XDG_CACHE_HOME": str(base), "NUMBA_CACHE_DIR": str(base / "headway"), "TMPDIR": str(base), "HOME": str(base)}
    nowhere = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME"), "/proc/nowhere")
    process = subprocess.run([sys.executable, *ENTRY, *SIM.split()], capture_output=True, text=True, check=False, cwd=base,
                             env=surroundings(**(hostile if place == "planted" else nowhere)), **other_user())  # fmt: skip
    assert (process.returncode, process.stderr) == (0, "")
    assert numbers(process.stdout) == numbers(answer)
    assert not mark.exists()
    assert sorted(path.relative_to(base) for path in base.rglob("*")) == before, "something was left"


def test_page__loads_no_code_from_where_it_is_started_and_leaves_no_folder(tmp_path: Path) -> None:
    for module in ("starlette", "uvicorn", "vl_convert", "httpx"):
        pytest.importorskip(module)
    import httpx

    for name in ("numpy", "json", "headway", "struct"):
        (tmp_path / f"{name}.py").write_text("import pathlib; pathlib.Path(__file__).with_name('it-ran').touch()", encoding="utf-8")
    (tmp_path / "headway").mkdir()
    (tmp_path / "headway" / "scripts").mkdir()
    from importlib.metadata import version

    script = f"vega-{version('vl-convert-python')}.js"
    for place in (tmp_path / "headway" / script, tmp_path / "headway" / "scripts" / script):
        place.write_text("planted()", encoding="utf-8")
    for place in (tmp_path, tmp_path / "headway", tmp_path / "headway" / "scripts"):
        place.chmod(0o777)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    words = [sys.executable, *ENTRY, "web", "--port", "0"]
    process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True,
                               env=surroundings(XDG_CACHE_HOME=str(tmp_path), HOME=str(tmp_path), TMPDIR=str(temporary)))  # fmt: skip
    try:
        assert process.stderr
        address = re.search(r"http://[\d.:]+", process.stderr.readline())
        assert address
        question = {"verb": "serve", "words": ["llama-3.1-8b"], "flags": {"on": "h100-sxm", "batch": "1"}, "parts": ["answer"]}
        assert httpx.post(f"{address[0]}/api/ask", json=question, timeout=60).status_code == 200
        assert "planted()" not in httpx.get(f"{address[0]}/static/vega.js", timeout=60).text[:100]
        assert len(list(temporary.iterdir())) == 1
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=20)
        if process.stderr:
            process.stderr.close()
    assert not (tmp_path / "it-ran").exists()
    assert list(temporary.iterdir()) == []

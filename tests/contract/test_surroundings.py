"""What surrounds a command: closed streams, full disks, cut-off caches, names from files that would steer a terminal, a page or a sheet."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headway.core.errors import HeadwayError, printable
from headway.core.files import write_whole
from headway.report.pictures.file import save
from headway.simulation.compiled import folder
from support.command import Cli

ENTRY = [sys.executable, "-c", "from headway.cli.entry import entry; entry()"]
CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 2,
    "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 1000, "torch_dtype": "bfloat16", "max_position_embeddings": 4096,
}  # fmt: skip


def spec(name: str) -> dict[str, Any]:
    axis = {"x": {"field": "a", "type": "quantitative"}, "y": {"field": "b", "type": "nominal"}}
    schema = "https://vega.github.io/schema/vega-lite/v5.json"
    return {"$schema": schema, "mark": "point", "encoding": axis, "data": {"values": [{"a": 1, "b": name}]}}


def test_closed_output__is_one_line() -> None:
    process = subprocess.run(["/bin/sh", "-c", '"$@" >&-', "sh", *ENTRY, "list", "models"], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr.count("\n")) == (2, 1) and "closed" in process.stderr
    process = subprocess.run(["/bin/sh", "-c", '"$@" 2>&-', "sh", *ENTRY, "list", "models"], capture_output=True, text=True, check=False)
    assert process.returncode == 0 and process.stdout


def test_write_whole__a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "answer.txt"
    write_whole(target, "old")

    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(OSError, match="space"):
        write_whole(target, "new")
    assert target.read_text(encoding="utf-8") == "old" and [path.name for path in tmp_path.iterdir()] == ["answer.txt"]


def test_write_whole__links_and_modes_stay(tmp_path: Path) -> None:
    (tmp_path / "there.txt").write_text("old", encoding="utf-8")
    (tmp_path / "there.txt").chmod(0o640)
    (tmp_path / "link.txt").symlink_to("there.txt")
    write_whole(tmp_path / "link.txt", b"new")
    assert (tmp_path / "link.txt").is_symlink() and (tmp_path / "there.txt").read_bytes() == b"new"
    assert (tmp_path / "there.txt").stat().st_mode & 0o777 == 0o640


def test_page__a_name_with_markup_stays_a_name(tmp_path: Path) -> None:
    save(spec("</script><script>alert(1)</script>"), str(tmp_path / "page.html"))
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>alert(1)" not in text and "\\u003cscript>alert(1)" in text


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_picture__control_characters_do_not_end_the_process(tmp_path: Path, ending: str) -> None:
    """The renderer panics on them, which no handler of Python sees: so the process itself is watched."""
    drawing, path = spec(chr(27) + "[31m red" + chr(0x9B)), str(tmp_path / f"p.{ending}")
    code = f"from headway.report.pictures.file import save; save({drawing!r}, {path!r})"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (0, "") and (tmp_path / f"p.{ending}").stat().st_size > 100


def test_terminal__escapes_of_files_are_written_out(cli: Cli, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("id,model,hardware,mode,isl,osl\na\x1b[31m,llama-3.1-8b,h100,serving_concurrency,10,10\n", encoding="utf-8")
    config = tmp_path / "a\x1b[2J.json"
    config.write_text(json.dumps(CONFIG), encoding="utf-8")
    for words in (
        ["predict", rows],
        ["predict", rows, "-o", "csv"],
        ["predict", rows, "-o", "md"],
        ["serve", config, "--on", "h200", "--context", "1k"],
    ):
        assert "\x1b" not in cli(*words).out
        assert "\\x1b[" in cli(*words).out
    assert printable("wide, \u4e2d\nline") == "wide, \u4e2d\nline"


def test_csv__formulas_are_text(cli: Cli, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("id,model,hardware,mode,isl,osl\n=cmd|x,llama-3.1-8b,h100,serving_concurrency,10,10\n", encoding="utf-8")
    table = list(csv.reader(io.StringIO(cli("predict", rows, "-o", "csv").out)))
    assert table[1][0] == "'=cmd|x"


def test_predict__nothing_predicted_is_a_failure(cli: Cli, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("id,model,hardware,mode,isl,osl\na,nobodys-model,h100,serve,10,10\n", encoding="utf-8")
    answer = cli("predict", rows)
    assert answer.status == 2 and "serving_concurrency" in answer.err and answer.err == cli("predict", rows, "-o", "csv").err


def test_machine_code__that_was_cut_off_is_compiled_again(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    command = "sim llama-3.1-8b --on h200 --prompt 50 --output 5 --rate 2 --requests 20 --loop compiled -o csv"
    words = [*ENTRY, *command.split()]
    surroundings, own = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}, folder()
    if own is not None:  # what earlier runs compiled need not be compiled again to be cut off
        shutil.copytree(own, tmp_path / "headway" / own.name)
    first = subprocess.run(words, capture_output=True, text=True, check=True, env=surroundings)
    kept = list(tmp_path.rglob("*.code"))
    assert kept
    for path in kept:
        path.write_bytes(path.read_bytes()[:20])
    second = subprocess.run(words, capture_output=True, text=True, check=False, env=surroundings)
    assert second.returncode == 0, second.stderr
    (before,), (after,) = (list(csv.DictReader(io.StringIO(process.stdout))) for process in (first, second))
    for key in ("completed", "mean_ttft_s", "p99_ttft_s", "mean_tpot_s", "duration_s"):
        assert after[key] == before[key], key


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("price llama-3.1-8b --on h200 --prompt 2k --output 200 --batch 4 --cached-price 1", "--cached-price"),
        ("sim llama-3.1-8b --on h200 --prompt 500 --output 50 --rate 2 --requests 20 --kv-tokens 100", "more than a replica's KV cache"),
        ("sim llama-3.1-8b --on h200 --prompt 500 --output 50 --rate 2 --requests 20 --block 1000000", "more than a replica's KV cache"),
    ],
)
def test_refusals__name_what_was_typed_and_why(cli: Cli, words: str, says: str) -> None:
    answer = cli(words)
    assert says in answer.out + answer.err


def test_files__what_is_there_twice_is_an_error(cli: Cli, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("timestamp,contexttokens,contexttokens,generatedtokens\n2024-01-01 00:00:00,10,20,5\n", encoding="utf-8")
    assert "two columns 'contexttokens'" in cli("sim", "llama-3.1-8b", "--on", "h200", "--trace", trace).err
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG)[:-1] + ', "hidden_size": 512}', encoding="utf-8")
    assert "'hidden_size' is there twice" in cli("serve", config, "--on", "h200", "--context", "1k").err
    config.write_text(json.dumps(CONFIG | {"hidden_size": "1024"}), encoding="utf-8")
    assert "without quotes" in cli("serve", config, "--on", "h200", "--context", "1k").err


def test_explain__a_limit_that_is_not_there_is_no_number(cli: Cli) -> None:
    text = cli("serve llama-3.1-8b --on h200 --prompt 4k --output 100 --batch 4 --explain ttft_floor_s --depth all").out
    assert "no limit" in text and not re.search(r"e\+[5-9]\d|= inf token", text)


def test_laws__are_the_same_without_docstrings() -> None:
    words = [*ENTRY, "list", "laws", "-o", "json"]
    plain = subprocess.run(words, capture_output=True, check=True).stdout
    assert subprocess.run(words, capture_output=True, check=True, env={**os.environ, "PYTHONOPTIMIZE": "2"}).stdout == plain


def test_batch__true_or_text_from_python_is_a_headway_error() -> None:
    import headway as hw

    for batch in ("abc", True):
        with pytest.raises(HeadwayError):
            hw.serve("llama-3.1-8b", "h200", batch=batch, context=4096)


def test_interrupt__while_modules_load_is_one_line() -> None:
    code = (
        "import importlib.abc, sys\n"
        "class Interrupted(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'headway.cli.main':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from headway.cli.entry import entry\n"
        "entry()\n"
    )
    process = subprocess.run([sys.executable, "-c", code, "list", "models"], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (130, "headway: interrupted, with nothing to show\n")

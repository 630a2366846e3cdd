"""The guard of files that users name: what is no plain file, too large, no text or no document is one clear line, and nothing hangs."""

from __future__ import annotations

import contextlib
import gzip
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from headway.core import user_file
from headway.core.errors import BadFile
from headway.simulation.traffic.read import read_trace
from support.command import Answer

# Every verb that reads a file, with the file's name as users give it and the ending that it needs.
COMMANDS = {
    "predict": ("predict {file}", ".csv"),
    "predict training": ("predict {file} --training", ".csv"),
    "score": ("score {file}", ".csv"),
    "score vllm": ("score --vllm {file} --on h100 --model llama-3.1-8b", ".json"),
    "score aiperf": ("score --aiperf {file} --on h100 --model llama-3.1-8b", ".json"),
    "score guidellm": ("score --guidellm {file} --on h100 --model llama-3.1-8b", ".json"),
    "score trtllm-bench": ("score --trtllm-bench {file} --on h100", ".json"),
    "score llama-bench": ("score --llama-bench {file}", ".json"),
    "score inferencex": ("score --inferencex {file}", ".json"),
    "score requests": ("score --requests {file} --on h100 --model llama-3.1-8b", ".csv"),
    "fit": ("fit --from {file}", ".csv"),
    "fit training": ("fit --training {file}", ".csv"),
    "price score": ("price --score {file} --truth {file}", ".csv"),
    "price sheet json": ("price --sheet {file}", ".json"),
    "price sheet toml": ("price --sheet {file}", ".toml"),
    "price sheet csv": ("price --sheet {file}", ".csv"),
    "bill": ("bill --requests {file} --sheet claude-opus-4.6", ".csv"),
    "cache": ("cache --workload {file} --ttl 5min", ".jsonl"),
    "sim": ("sim llama-3.1-8b --on h100 --trace {file}", ".csv"),
    "sim plan": ("sim --plan {file}", ".json"),
    "plan trace": ("plan llama-3.1-8b --on h100 --trace {file} --ttft 1s", ".csv"),
    "lengths": ("sim llama-3.1-8b --on h100 --rate 1 --prompt trace:{file} --output 10", ".csv"),
    "serve config": ("serve {file} --on h100 --batch 1 --context 1k", ".json"),
    "expert load": ("serve gpt-oss-20b --on h100 --batch 1 --context 1k --expert-load {file}", ".json"),
}  # fmt: skip


def refused(name: str, path: Path) -> str:
    """The one line of a command that refuses a file."""
    words = [word.format(file=path) for word in COMMANDS[name][0].split()]
    answer = Answer.of(words)
    assert (answer.status, answer.out) == (2, ""), (name, answer)
    assert answer.err.startswith("headway: ") and answer.err.count("\n") == 1 and len(answer.err) < 700, (name, answer.err)
    return answer.err


def special(folder: Path, what: str, end: str) -> Path:
    """A file of a kind that no command reads."""
    path = folder / f"x{end}"
    if what == "named pipe":
        os.mkfifo(path)
    elif what == "socket":
        with contextlib.chdir(folder), socket.socket(socket.AF_UNIX) as end_point:  # names of sockets are short
            end_point.bind(path.name)
    elif what == "loop":
        path.symlink_to(path)
    elif what == "folder":
        path.mkdir()
    elif what == "device":
        path.symlink_to("/dev/zero")
    return path


@pytest.mark.parametrize("what", ["named pipe", "socket", "loop", "device", "absent"])
def test_every_command__refuses_what_is_no_plain_file(what: str, tmp_path: Path) -> None:
    for name, (_, end) in COMMANDS.items():
        folder = tmp_path / name.replace(" ", "-")
        folder.mkdir()
        assert "cannot be read" in refused(name, special(folder, what, end)) or name in ("serve config", "fit"), (name, what)


CONTENT = {
    "nothing": (b"", "empty"), "blanks": (b"\n \r\n\n", "empty"), "NUL": (b"a,b\n1,\x002\n", ""), "latin-1": (b"a,b\ncaf\xe9,1\n", ""),
    "deep JSON": (b"[" * 100_000, ""), "cut JSON": (b'{"a": [1, 2', ""), "deep object": (b'{"a":' * 100_000, ""),
    "long number": (b'{"a": ' + b"9" * 100_000 + b"}", ""), "binary": (bytes(range(256)) * 9, ""), "one line": (b"x" * 3_000_000, ""),
    "twin": (b'{"a": 1, "a": 2}', ""), "gzip": (gzip.compress(b"once"), ""),
}  # fmt: skip


@pytest.mark.parametrize("what", CONTENT)
def test_every_command__says_what_is_wrong_with_a_file_in_one_line(what: str, tmp_path: Path) -> None:
    data, says = CONTENT[what]
    for name, (_, end) in COMMANDS.items():
        path = tmp_path / f"x{end}"
        path.write_bytes(data)
        assert says in refused(name, path), name


def test_text_of__size_of_its_kind(tmp_path: Path) -> None:
    path = tmp_path / "big.toml"
    with path.open("wb") as file:
        file.truncate(user_file.CATALOGUE.most_bytes + 1)
    with pytest.raises(BadFile, match=r"above 976\.6 KiB"):
        user_file.text_of(path, user_file.CATALOGUE)


@pytest.mark.parametrize(("coding", "ends"), [("utf-8", "\n"), ("utf-8-sig", "\r\n"), ("utf-16", "\n"), ("utf-8", "\r\n")])
def test_text_of__marks_and_line_ends_of_other_systems(coding: str, ends: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(f"a,b{ends}1,é{ends}".encode(coding))
    assert user_file.text_of(path, user_file.TABLE).splitlines() == ["a,b", "1,é"]


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no /dev/fd")
def test_shell_pipe__is_read_to_its_end_or_to_the_limit() -> None:
    code = "import sys; from headway.core import user_file as u; print(len(u.text_of(sys.argv[1], u.CATALOGUE)))"
    for source, wants in (("printf abc", "3"), ("cat /dev/zero", "goes on above 976.6 KiB")):
        words = ["bash", "-c", f'"$0" -c "$1" <({source})', sys.executable, code]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert wants in done.stdout + done.stderr


def test_trace__gzip_that_unpacks_without_end_and_lines_without_end_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_file, "UNPACKED_MOST", 2**20)
    monkeypatch.setattr(user_file, "MOST_LINE", 2**18)
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"arrival_s,prompt,output\n" + b"\n" * 2**22))
    with pytest.raises(BadFile, match="unpacks to above"):
        read_trace(path)
    path.write_bytes(b"arrival_s,prompt,output\n1,2,3\n" + b"9" * 2**22)
    with pytest.raises(BadFile, match="line 3 is longer than 256 KiB"):
        read_trace(path)

"""One HTML file of an answer: what is sent reads as well as what is seen."""

from __future__ import annotations

import re
import shlex
from html import escape
from typing import Any

import pytest

from headway.cli.command import command
from headway.core.listing import cell
from headway.web import single_file
from headway.web.question import question
from headway.web.reply import reply
from headway.web.single_file import document

pytest.importorskip("vl_convert", reason="the extra plot is not installed")
HEADINGS = {"binds": "What binds", "helps": "What would help, the most first", "launch": "Launch", "notes": "What was assumed"}
PARTS = ["answer", "table", "pictures", "notes", "html"]
ASKED = (
    {"verb": "serve", "words": ["llama-3.1-8b"], "flags": {"on": "h100-sxm", "batch": "1..300+1", "prompt": "1k", "output": "100"}},
    {"verb": "plan", "words": ["llama-3.1-8b"], "flags": {"on": "8xh100-sxm", "prompt": "1k", "output": "200", "launch": "vllm"}},
    {"verb": "train", "words": ["llama-3.1-8b"], "flags": {"on": "64xh100-sxm", "seq": "8k", "global-batch": "1M"}},
    {"verb": "law", "words": ["hardware_ratio"], "flags": {}},
)


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_file, "script", lambda: b"vegaEmbed = () => 0")  # what draws is tested in a browser


def file_of(asked: dict[str, Any]) -> tuple[dict[str, Any], Any, str]:
    query = question(asked | {"parts": PARTS})
    result = command(shlex.join(query.argv()))
    answer = reply(query, result)
    return answer, result, document(answer)


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked["verb"])
def test_file__has_every_title_caption_heading_row_and_note(asked: dict[str, Any]) -> None:
    answer, result, text = file_of(asked)
    for picture in answer["pictures"]:
        for words in (picture["title"], picture["subtitle"], picture["caption"], picture["alt"]):
            assert escape(words) in text
    rows = result._described.words.people or result._answer.rows
    assert text.count("<tr>") - 1 == len(rows) == len(answer["table"]["rows"])
    last, keys = list(rows)[-1], [column["key"] for column in answer["table"]["columns"]]
    assert "".join(f"<td>{escape(cell(key, last))}</td>" for key in keys) in text
    headings = re.findall("<h2>(.*?)</h2>", text)
    assert {part: heading in headings for part, heading in HEADINGS.items()} == {part: bool(answer[part]) for part in HEADINGS}
    assert all(escape(note) in text for note in answer["notes"]) and headings[-1] == "The command"


def test_file__loads_nothing_from_elsewhere() -> None:
    _, _, text = file_of(ASKED[0])
    assert "default-src 'none'" in text and not re.search(r"""(src|href)=["'](?!data:)""", text)

"""The atlas of a tiny sweep: its page opens without a server, filters, and has the numbers of the Parquet file and of each plan."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headway as hw
from headway.core.listing import cell
from support.paths import ROOT
from support.tools import tool
from support.web_server import chromium

parquet = pytest.importorskip("pyarrow.parquet", reason="the extra table is not installed")
MODELS = ["llama-3.2-3b", "llama-3.1-405b"]
SWEEP = f"""
[[questions]]
verb = "plan"
no_check = true
disaggregate = "never"
prompt = "1k"
output = 100
rate = "2/s"
tpot = "100ms"
[questions.grid]
on = ["rtx-4090", "h100-sxm"]
model = {MODELS}
"""


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the page and the Parquet file."""
    folder = tmp_path_factory.mktemp("atlas")
    (folder / "tiny.toml").write_text(SWEEP)
    hw.sweep(folder / "tiny.toml", into=folder / "sweep", processes=1)
    said = tool("atlas").write(str(folder / "tiny.toml"), folder / "sweep", folder)
    assert said.startswith("4 plans; ")
    return folder


@pytest.fixture(scope="module")
def rows(atlas: Path) -> list[dict[str, Any]]:
    return parquet.read_table(atlas / "atlas.parquet").to_pylist()


@pytest.fixture
def page(atlas: Path) -> Iterator[Any]:
    with chromium() as browser:
        context, said = browser.new_context(offline=True, viewport={"width": 1280, "height": 900}), []
        window = context.new_page()
        window.on("console", lambda message: said.append(message.text))
        window.on("pageerror", lambda error: said.append(str(error)))
        window.goto((atlas / "index.html").as_uri())
        yield window
        assert said == []


def test_atlas__a_cell_is_what_its_command_answers(rows: list[dict[str, Any]]) -> None:
    assert [(row["on"], row["model"]) for row in rows] == [(on, model) for on in ("rtx-4090", "h100-sxm") for model in MODELS]
    row = rows[2]
    load = {"prompt": "1k", "output": 100, "rate": "2/s", "tpot": "100ms", "no_check": True, "disaggregate": "never"}
    answer = next(iter(hw.plan(model=row["model"], on=row["on"], **load)))
    for key in ("ttft_s", "tpot_s", "usd_per_mtok_out", "usd_per_month", "system"):
        assert row[key] == answer[key]
    for flag in ("--on h100-sxm", "--tpot 100ms", "--rate 2/s", "--no-check", "--disaggregate never"):
        assert flag in row["command"]
    assert "--tpot-p95 100ms" in row["check"] and "--no-check" not in row["check"]


def test_atlas__page_shows_the_rows_filters_and_sorts_offline(page: Any, rows: list[dict[str, Any]]) -> None:
    lines = page.locator("tr[data-cell]")
    assert lines.count() == 4 and page.locator("circle").count() == sum(row["why"] is None for row in rows)
    for row in rows:
        line = page.locator(f'tr[data-cell="chat {row["model"]} {row["on"]}"]')
        if row["why"]:
            assert line.locator(".why").inner_text() == row["why"]
        else:
            for key in ("ttft_s", "tpot_s", "usd_per_mtok_out", "usd_per_month"):
                assert line.locator(f'[data-key="{key}"]').inner_text().startswith(cell(key, row))
    page.locator("#model").select_option("llama-3.2-3b")
    assert lines.count() == 2
    page.locator('[data-sort="usd_per_month"]').click()
    first = [row for row in rows if row["model"] == "llama-3.2-3b"]
    assert lines.first.get_attribute("data-cell") == f"chat llama-3.2-3b {min(first, key=lambda row: row['usd_per_month'])['on']}"
    page.locator("#budget").fill(str(min(row["usd_per_month"] for row in first)))
    assert lines.count() == 1
    page.locator("#plot").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    on = str(lines.first.get_attribute("data-cell")).split()[-1]
    assert page.locator(".facts code").first.inner_text() == next(row["command"] for row in first if row["on"] == on)


def test_atlas__what_does_not_fit_says_why(rows: list[dict[str, Any]]) -> None:
    assert [bool(row["why"]) for row in rows if row["model"] == "llama-3.2-3b"] == [False, False]
    assert "usable" in next(row["why"] for row in rows if row["model"] == "llama-3.1-405b" and row["on"] == "rtx-4090")


def test_atlas__file_asks_forty_models_on_fifteen_machines_under_three_loads() -> None:
    blocks = tomllib.loads((ROOT / "docs" / "atlas" / "atlas.toml").read_text(encoding="utf-8"))["questions"]
    assert len(blocks) == len(tool("atlas").LOADS) and all(block["grid"] == blocks[0]["grid"] for block in blocks)
    assert {name: len(set(axis)) for name, axis in blocks[0]["grid"].items()} == {"on": 15, "model": 40}

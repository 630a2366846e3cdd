"""Own runs on the page: files that are dropped, what they change, and the pages whose answers then go by them."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headway as hw
from headway.core.errors import HeadwayError, UnknownName
from headway.web import worker
from headway.web.question import question
from headway.web.reply import OWN_PROFILE
from support.paths import ROOT
from support.web_server import Visit

INPUTS = ROOT / "tests" / "contract" / "golden" / "inputs"
ON = {"on": "8xh100-sxm", "tp": "8", "weights": "fp8"}
SERVE: dict[str, Any] = {
    "verb": "serve",
    "words": ["llama-3.1-70b"],
    "flags": {**ON, "engine": "vllm", "prompt": "2k", "output": "500", "batch": "32"},
}
BY_THEM = {**SERVE, "flags": {**SERVE["flags"], "calibration": OWN_PROFILE}}


def dropped(name: str, tool: str = "table") -> dict[str, str]:
    return {"tool": tool, "name": name, "text": (INPUTS / name).read_text(encoding="utf-8")}


def profile(text: str) -> dict[str, str]:
    return {"tool": "calibration", "name": f"{OWN_PROFILE}.toml", "text": text}


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Asks a worker of its own."""
    monkeypatch.chdir(tmp_path)
    worker.OWN_CATALOGUE.mkdir()
    monkeypatch.setenv("HEADWAY_CATALOG", str(worker.OWN_CATALOGUE.absolute()))
    hw.core.catalog.default_catalog.cache_clear()
    mine = worker.Worker(io.BytesIO(), has_folder=True)
    yield lambda query: mine.answer({"kind": "ask", "query": query})
    hw.core.catalog.default_catalog.cache_clear()
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []


def test_runs_of_several_files_are_those_of_the_command(asked: Any) -> None:
    files = [dropped("one_user.json"), dropped("my_runs.csv")]
    page = asked({"verb": "calibrate", "flags": ON, "upload": files, "parts": ["answer", "file", "json"]})
    command = hw.calibrate([str(INPUTS / file["name"]) for file in files], **{name: value for name, value in ON.items()})
    assert page["answer"] == command.answer
    assert json.loads(page["json"])["rows"] == json.loads(command.to_json())["rows"]
    assert page["file"] == hw.command(shlex.join(["calibrate", *(str(INPUTS / file["name"]) for file in files), "--on", "8xh100-sxm",
                                                  "--tp", "8", "--weights", "fp8", "-o", "toml"]))._answer.document  # fmt: skip


def test_a_plan_and_a_layout_go_by_runs_that_came_with_the_question(asked: Any) -> None:
    page = asked({"verb": "calibrate", "flags": ON, "upload": dropped("one_user.json"), "parts": ["answer", "file"]})
    assert [use["at"].partition("?")[0] for use in page["uses"]] == ["/plan", "/plan"]
    assert all("calibration=runs" in use["at"] and "w=llama-3.1-70b" in use["at"] for use in page["uses"])
    parts = {"parts": ["json", "notes"]}
    before, after = asked(SERVE | parts), asked({**BY_THEM, "upload": profile(page["file"])} | parts)
    tpot = [json.loads(answer["json"])["rows"][0]["tpot_s"] for answer in (before, after)]
    assert tpot[1] > 1.05 * tpot[0]  # the run is slower than predicted
    assert any("calibrated on 1 run" in note for note in after["notes"])
    first, second = after["command"].splitlines()  # as two commands the same profile is made and gone by
    words = shlex.split(first)
    assert words[:3] == ["headway", "calibrate", "one_user.json"] and words[-2:] == ["--save", OWN_PROFILE]
    made = hw.command(shlex.join(["calibrate", str(INPUTS / "one_user.json"), *words[3:-2], "-o", "toml"]))._answer.document
    assert made == page["file"] and second.endswith(f"--calibration {OWN_PROFILE}")
    assert len(before["command"].splitlines()) == 1
    with pytest.raises(UnknownName, match="no calibration named 'runs'"):
        asked(BY_THEM | {"flags": {**BY_THEM["flags"], "batch": "31"}})  # it is kept nowhere


def test_a_table_is_predicted_by_own_runs(asked: Any) -> None:
    text = asked({"verb": "calibrate", "upload": dropped("my_runs.csv"), "parts": ["file"]})["file"]
    ask = {"verb": "predict", "parts": ["json"]}
    plain = json.loads(asked({**ask, "upload": dropped("my_runs.csv")})["json"])["rows"]
    by_them = json.loads(asked({**ask, "flags": {"calibration": "runs"}, "upload": [dropped("my_runs.csv"), profile(text)]})["json"])[
        "rows"
    ]
    assert all(after["tpot_ms"] > before["tpot_ms"] for before, after in zip(plain, by_them, strict=True))


COLUMNS = "id,model,config,hardware,n_chips,tp,engine,weight_precision,mode,isl,osl,batch_or_concurrency,tpot_ms"


@pytest.mark.parametrize("named", ["/etc/passwd,", "catalogue,", "nobody/model,", "llama-3.1-8b,/etc/passwd", "llama-3.1-8b,catalogue"])
def test_a_dropped_table_names_no_file_and_no_download(asked: Any, named: str) -> None:
    rest = "h100-sxm,8,8,vllm,fp8,serving_concurrency,2000,500,1,9.3"
    table = f"{COLUMNS}\na,{named},{rest}\nb,llama-3.1-70b,,{rest}\n"
    answer = asked({"verb": "predict", "upload": {"tool": "table", "name": "rows.csv", "text": table}, "parts": ["json"]})
    first, second = json.loads(answer["json"])["rows"]
    assert first["tpot_ms"] is None and "no model named" in first["why"]
    assert second["tpot_ms"] > 0


@pytest.mark.parametrize("wrong", [
    {"verb": "calibrate"}, {"verb": "calibrate", "upload": []}, {"verb": "calibrate", "upload": [dropped("one_user.json")] * 2},
    {"verb": "calibrate", "upload": [{**dropped("one_user.json"), "name": f"{place}.json"} for place in "abcd"]},
    {"verb": "predict", "upload": [dropped("my_runs.csv"), dropped("few.csv")]},
    {**SERVE, "upload": dropped("one_user.json")}, {**BY_THEM, "upload": [profile("x"), {**profile("x"), "name": "other.toml"}]},
    {"verb": "rack", "words": ["gb200-nvl72"], "upload": profile("x")},
    *({**BY_THEM, "upload": {**profile("x"), "name": name}} for name in ("../runs.toml", "runs.json", "a/runs.toml", "", ".toml", 7)),
    {**BY_THEM, "upload": {**profile("x"), "text": "x" * 4_000_001}}, {**BY_THEM, "upload": {**profile("x"), "text": None}},
    {**BY_THEM, "upload": {**profile("x"), "tool": ["calibration"]}}, {**BY_THEM, "upload": {**profile("x"), "path": "/etc"}},
])  # fmt: skip
def test_files_of_another_kind_or_number_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(HeadwayError):
        question(wrong)


@pytest.mark.parametrize("text", ["", "format = 1", "format = 99", "\x00", 'format = 1\n[[deployments]]\nmodel = "/etc/passwd"\n'])
def test_a_file_that_is_no_profile_is_one_line(asked: Any, text: str) -> None:
    with pytest.raises(HeadwayError) as caught:
        asked({**BY_THEM, "upload": profile(text)})
    assert "\n" not in worker.one_line(caught.value)


@pytest.mark.slow  # a browser
def test_one_click_carries_runs_into_a_plan(visit: Visit) -> None:
    page = visit.open("/runs")
    page.locator(".drop", has_text="Stays on this machine").wait_for()
    for label, value in {"Machine": "8xh100-sxm", "TP": "8", "Weights": "fp8"}.items():
        page.get_by_label(label, exact=True).fill(value)
        page.keyboard.press("Tab")
    page.get_by_label("Benchmark files").set_input_files([str(INPUTS / "one_user.json"), str(INPUTS / "my_runs.csv")])
    page.locator("#answer", has_text="4 runs of 2 deployments").wait_for(timeout=90_000)
    assert page.locator(".files li").count() == 2
    page.locator(".picture svg").first.wait_for()
    page.get_by_role("link", name="Try their layout").click()
    page.locator(".own-runs", has_text="Goes by your runs: 4 runs of 2 deployments").wait_for()
    page.locator("#answer", has_text="llama-3.1-70b on 8xh100-sxm").wait_for(timeout=60_000)
    by_them = page.locator("#answer").text_content()
    page.reload()  # the tab keeps them
    page.locator("#answer", has_text=by_them).wait_for(timeout=60_000)
    page.get_by_role("button", name="Leave them out").click()
    page.locator(".own-runs", has_text="Without your runs").wait_for()
    page.locator("[aria-busy=false] #answer:not(:empty)").wait_for()
    page.get_by_role("link", name="Own runs").click()
    page.get_by_label("Benchmark files").set_input_files(str(INPUTS / "one_user.json"))
    page.get_by_role("button", name="Leave out one_user.json").click()
    assert page.locator("#answer").text_content().startswith("Drop one to three results")


@pytest.mark.slow  # a browser
def test_file_and_fields_go_along_to_the_other_view_of_results(visit: Visit) -> None:
    page = visit.open("/runs?view=score")
    page.get_by_label("Machine", exact=True).fill("16xh100-sxm")
    page.get_by_label("Weights", exact=True).fill("fp8")
    page.keyboard.press("Tab")
    field = page.locator("input[type=file]")
    field.set_input_files(str(INPUTS / "one_user.json"))
    names = "(field) => [...field.files].map((file) => file.name)"
    page.locator(".files li", has_text="one_user.json").wait_for()
    assert field.evaluate(names) == ["one_user.json"]
    page.get_by_role("link", name="Before and after").click()
    page.locator("h1", has_text="Own runs").wait_for()
    page.locator(".drop", has_text="Benchmark files").locator(".files li", has_text="one_user.json").wait_for()
    shown = [page.get_by_label(label, exact=True).input_value() for label in ("Machine", "TP", "Weights")]
    assert (shown, field.evaluate(names)) == (["16xh100-sxm", "8", "fp8"], ["one_user.json"])
    page.get_by_role("link", name="Runs not made yet").click()
    page.locator(".drop", has_text="Table of runs").wait_for()
    assert page.locator(".files li").count() == 0

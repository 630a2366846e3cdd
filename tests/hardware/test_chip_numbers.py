"""A chip by numbers and as a file: it is the chip that its facts describe, and a wrong fact is one line."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core import catalog as facts
from headway.core.catalog import Catalog, open_catalog
from headway.core.errors import HeadwayError
from headway.hardware.chip import EXAMPLES, Chip, chip, chip_toml, empty_toml
from headway.hardware.system import system
from headway.performance.achieved import family
from support.command import Cli

FACTS = "peak_bf16=1P peak_fp8=2P hbm_bw=8TB/s hbm=192GB scale_up_bw=900GB/s scale_up_domain=64 price=$3/h"
H100 = "(peak_bf16=989.4TFLOPS peak_fp8=1978.9T hbm=80GB hbm_bw=3350GB/s scale_up_bw=450GB/s scale_up_domain=8 like=h100-sxm)"


def test_chip__facts_in_units_are_si() -> None:
    found = system(f"64x({FACTS})")
    made = found.chip
    assert (made.peak_bf16, made.peak_fp8, made.hbm_bw, made.hbm, made.scale_up_bw) == (1e15, 2e15, 8e12, 192e9, 900e9)
    assert made.price == pytest.approx(3 / 3600) and (found.chips, found.domains, found.topology) == (64, 1, "switch")
    assert made.hbm.kind == "input" and found.name == "64xhypothetical"


def test_chip__bare_numbers_are_si_and_a_bare_price_is_by_the_hour() -> None:
    bare = system("(peak_bf16=1e15 hbm=192e9 hbm_bw=8e12 price=3)").chip
    assert (bare.peak_bf16, bare.hbm, bare.hbm_bw) == (1e15, 192e9, 8e12) and bare.price == pytest.approx(3 / 3600)


def test_chip__without_a_domain_all_chips_share_one() -> None:
    assert system("32x(peak_bf16=1P hbm=96GB hbm_bw=4TB/s scale_up_bw=1TB/s)").scale_up_domain == 32


def test_chip__like_takes_the_rest_and_the_fitted_costs() -> None:
    found = system("(like=h100-sxm hbm_bw=6TB/s)").chip
    assert (found.hbm_bw, found.hbm, found.peak_bf16) == (6e12, chip("h100").hbm, chip("h100").peak_bf16)
    assert family(found) == family(chip("h100")) != family(system(f"({FACTS})").chip)


def test_chip__described_by_its_own_numbers_answers_as_the_chip(cli: Cli) -> None:
    def step(on: str) -> float:
        return cli("serve", "llama-3.1-8b", "--on", on, "--tp", "8", "--batch", "64", "--context", "8k", "-o", "json").rows[0]["step_s"]

    assert step(f"8x{H100}") == step("8xh100-sxm")


def test_chip__first_sentence_says_which_costs_it_borrows(cli: Cli) -> None:
    def first(on: str) -> str:
        return cli("serve", "llama-3.1-8b", "--batch", "8", "--context", "8k", "--on", on).out.split("\n")[0]

    assert "borrows kernel, link and engine costs fitted to A100, H100, H200 and B200" in first(f"({FACTS})")
    assert "fitted to hopper chips such as h100-sxm" in first(H100)
    assert "borrows" not in first("h100")
    assert any("borrows" in note for note in cli("serve", "llama-3.1-8b", "--on", f"({FACTS})", "-o", "json").json["notes"])


def test_chip__sets_and_lists_work_on_it(cli: Cli) -> None:
    rows = cli("serve", "llama-3.1-8b", "--on", f"({FACTS}),h100", "--set", "chip.hbm_bw=4TB/s,8TB/s", "-o", "json").rows
    assert [row["system"] for row in rows] == ["hypothetical"] * 2 + ["h100-sxm"] * 2


@pytest.mark.parametrize(
    "on",
    [
        "64x(peak_bf16=1P", "()", "64x()", "(hbm=3GB)", "0x(hbm=3GB)", "-1x(hbm=3GB)", "1.5x(hbm=3GB)",
        "(hbm=3GB/s peak_bf16=1P hbm_bw=3)", "(foo=3)",
        "(like=h1000)", "(like=h100 topology=star)", "x(like=h100)", "8x(like=h100 name=h100)", "((like=h100))",
        "3x8x(like=h100)", "(like=h100)x3",
        "(hbm)", "(hbm=)", "(hbm=nan peak_bf16=1P hbm_bw=1)", "(hbm=3GB hbm=4GB)", "(like=h100 name=../x)", "(peak_bf16=0 hbm=1 hbm_bw=1)",
    ],
)  # fmt: skip
def test_chip__wrong_grammar_is_one_line(cli: Cli, on: str) -> None:
    status, out, err = cli("serve", "llama-3.1-8b", "--on", on)
    assert (status, out, err.count("\n")) == (2, "", 1) and len(err) < 500


@given(st.text(alphabet="()x=, 18ahbm_wpkTGB/s$.", max_size=40))
def test_chip__any_text_in_brackets_is_a_system_or_one_line(text: str) -> None:
    try:
        found = system(f"4x({text})")
    except HeadwayError as error:
        assert "\n" not in str(error)
        return
    assert found.chip.hbm > 0 and found.chip.hbm_bw > 0


def same(first: Chip, second: Chip) -> bool:
    ignored = {"name", "hypothetical", "like", "costs", "notes"}
    names = [field.name for field in dataclasses.fields(Chip) if field.name not in ignored]
    return all(getattr(first, name) == getattr(second, name) for name in names) and all(
        (getattr(first, name).source, getattr(first, name).date, getattr(first, name).kind)
        == (getattr(second, name).source, getattr(second, name).date, getattr(second, name).kind)
        for name in facts.declared(Chip)
        if getattr(first, name) is not None
    )


def test_file__every_chip_reads_back(tmp_path: Path) -> None:
    names = sorted(Catalog().files("chips"))
    (tmp_path / "chips").mkdir()
    for name in names:
        found = chip(name)
        copy = f"copy_of_{found.name}"
        (tmp_path / "chips" / f"{copy}.toml").write_text(chip_toml(found, found.name), encoding="utf-8")
    where = open_catalog([tmp_path])
    different = [name for name in names if not same(chip(name), chip(f"copy_of_{chip(name).name}", where))]
    assert different == []
    assert family(chip("copy_of_h100_sxm", where)) == family(chip("h100_sxm"))


def test_file__shown_copy_answers_as_its_chip(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "chips").mkdir()
    (tmp_path / "chips" / "mine.toml").write_text(cli("show", "chip", "h100-sxm", "-o", "toml").out, encoding="utf-8")
    copy, real = (
        cli("serve", "llama-3.1-8b", "--on", on, "--catalog", str(tmp_path), "-o", "json").rows[0]["step_s"] for on in ("mine", "h100-sxm")
    )
    assert copy == real


def test_new__file_to_fill_in_reads_and_lists_every_fact(cli: Cli, tmp_path: Path) -> None:
    status, out, _ = cli("new", "chip", "zeta-1", "--catalog", str(tmp_path))
    path = tmp_path / "chips" / "zeta_1.toml"
    assert status == 0 and str(path) in out
    text = path.read_text(encoding="utf-8")
    assert [key for key in facts.declared(Chip) if f"# {key} = " not in text] == []
    assert chip("zeta-1", open_catalog([tmp_path])).hbm is None
    filled = text.replace("# peak_bf16", "peak_bf16").replace("# hbm_bw", "hbm_bw").replace("# hbm ", "hbm ")
    path.write_text(filled, encoding="utf-8")
    assert chip("zeta-1", open_catalog([tmp_path])).hbm == 192e9
    assert cli("new", "chip", "zeta-1", "--catalog", str(tmp_path))[0] == 2 and path.read_text(encoding="utf-8") == filled


def test_new__every_example_is_a_legal_fact(tmp_path: Path) -> None:
    (tmp_path / "chips").mkdir()
    text = empty_toml("zeta")
    for key in EXAMPLES:
        text = text.replace(f"# {key} = ", f"{key} = ")
    tomllib.loads(text)
    (tmp_path / "chips" / "zeta.toml").write_text(text, encoding="utf-8")
    found = chip("zeta", open_catalog([tmp_path]))
    assert [key for key in facts.declared(Chip) if getattr(found, key) is None] == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("chip", "h100"), "name"),
        (("chip", "../x"), "name"),
        (("rack", "x"), "chip"),
        (("chip", "x", "--attention", "dense"), "--attention"),
    ],
)
def test_new__wrong_request_is_one_line(cli: Cli, tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    status, out, err = cli("new", *words, "--catalog", str(tmp_path))
    assert (status, out, err.count("\n")) == (2, "", 1) and says in err


def test_show__toml_is_of_chips_alone(cli: Cli) -> None:
    assert cli("show", "model", "llama-3.1-8b", "-o", "toml")[0] == cli("list", "chips", "-o", "toml")[0] == 2

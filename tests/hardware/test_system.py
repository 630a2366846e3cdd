"""Systems by every kind of name, their arithmetic, wrong names, and edits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.catalog import PACKAGED, Catalog
from headway.core.errors import BadValue, HeadwayError, MissingFact, UnknownName
from headway.core.quantity import Sourced
from headway.hardware.chip import chip
from headway.hardware.edit import edit, editable
from headway.hardware.system import Link, system
from support.each import for_each
from support.work import calls

SYSTEM_IDS = sorted(path.stem for path in (PACKAGED / "systems").glob("*.toml"))
CHIP_IDS = sorted(path.stem for path in (PACKAGED / "chips").glob("*.toml"))

# typed name: system name, chip, chips, chips per scale-up domain, domains, shape
NAMES = {
    "h100": ("h100-sxm", "h100_sxm", 1, 1, 1, ()),
    "h200": ("h200-sxm", "h200_sxm", 1, 1, 1, ()),
    "b200": ("b200-sxm", "b200_sxm", 1, 1, 1, ()),
    "mi300x": ("mi300x", "mi300x", 1, 1, 1, ()),
    "7900xtx": ("rx-7900-xtx", "rx_7900_xtx", 1, 1, 1, ()),
    "GB200_NVL72": ("gb200-nvl72", "gb200", 72, 72, 1, ()),
    "dgx h200": ("hgx-h200", "h200_sxm", 8, 8, 1, ()),
    "1xgb200-nvl72": ("gb200-nvl72", "gb200", 72, 72, 1, ()),
    "8xh100-sxm": ("8xh100-sxm", "h100_sxm", 8, 8, 1, ()),
    "8 x H100": ("8xh100-sxm", "h100_sxm", 8, 8, 1, ()),
    "4xh100": ("4xh100-sxm", "h100_sxm", 4, 4, 1, ()),
    "12xh100": ("12xh100-sxm", "h100_sxm", 12, 8, 2, ()),
    "8xb200": ("8xb200-sxm", "b200_sxm", 8, 8, 1, ()),
    "16384xh100-sxm": ("16384xh100-sxm", "h100_sxm", 16384, 8, 2048, ()),
    "4xgb200-nvl72": ("4xgb200-nvl72", "gb200", 288, 72, 4, ()),
    "144xgb200": ("144xgb200", "gb200", 144, 72, 2, ()),
    "2xdgx-h100": ("2xdgx-h100", "h100_sxm", 16, 8, 2, ()),
    "tpu-v5p-4x4x8": ("tpu-v5p-4x4x8", "tpu_v5p", 128, 128, 1, (4, 4, 8)),
    "TPU v5e 4x8": ("tpu-v5e-4x8", "tpu_v5e", 32, 32, 1, (4, 8)),
    "2xtpu-v5p-4x4x8": ("2xtpu-v5p-4x4x8", "tpu_v5p", 256, 128, 2, (4, 4, 8)),
    "tpu-v4-pod": ("tpu-v4-pod", "tpu_v4", 4096, 4096, 1, (16, 16, 16)),
}


@pytest.mark.parametrize("typed", NAMES)
def test_system__names_and_sizes(typed: str) -> None:
    found = system(typed)
    name, chip_name, *rest = NAMES[typed]
    assert (found.name, found.chip.name) == (name, chip_name)
    assert [found.chips, found.scale_up_domain, found.domains, found.shape] == rest
    assert system(found.name) == found or "1x" in typed
    for number in (found.chips, found.scale_up_domain, found.domains, *found.shape):
        assert isinstance(number, Sourced)


@for_each(SYSTEM_IDS + CHIP_IDS)
def test_system__every_catalogue_name(name: str) -> None:
    found = system(name)
    assert found.chips % found.scale_up_domain == 0
    assert found.name == name.replace("_", "-")


def test_system__every_alias() -> None:
    catalog = Catalog()
    for name in {**catalog.aliases("chips"), **catalog.aliases("systems")}:
        assert system(name).chips >= 1


def test_system__typed_count_is_an_input_and_rack_size_a_fact() -> None:
    assert system("8xh100").chips.kind == "input"
    assert system("gb200-nvl72").chips.kind == "datasheet"
    assert system("gb200-nvl72").hbm_total == 13.4e12
    assert system("gb200-nvl72").power == 120e3
    assert system("gb200-nvl72").cables == 5184
    assert system("tpu-v5e-pod").bisection == 1.6e12  # Google states it


def test_system__joined_racks_add_totals_and_keep_domain_facts() -> None:
    one, four = system("gb200-nvl72"), system("4xgb200-nvl72")
    for key in ("power", "weight", "switches", "hbm_total", "hosts"):
        assert getattr(four, key) == 4 * getattr(one, key)
        assert getattr(four, key).kind == "derived"
    assert four.bisection == one.bisection
    assert four.scale_up == one.scale_up
    assert four.scale_out == Link(kind="scale-out", bw=50e9, chips=288)


def test_scale_up__links_of_the_chip() -> None:
    found = system("8xh100")
    assert found.scale_up == Link(kind="switch", bw=450e9, chips=8)
    assert found.scale_up_bw is found.chip.scale_up_bw


WRONG = {
    "8xh10": (UnknownName, "h100"),
    "gb20-nvl72": (UnknownName, "gb200-nvl72"),
    "h10": (UnknownName, "h100"),
    "": (UnknownName, "system"),
    "8x": (UnknownName, "8x"),
    "../../etc/passwd": (UnknownName, "etc"),
    "x" * 100_000: (UnknownName, "xxx"),
    "0xh100": (BadValue, "whole number"),
    "-8xh100": (BadValue, "-8"),
    "8.5xh100": (BadValue, "8.5"),
    "10000001xh100": (BadValue, "10000000"),
    "1e400xh100": (BadValue, "1e400"),
    "9" * 150 + "xh100": (BadValue, "whole"),
    "2000000xgb200-nvl72": (BadValue, "144000000"),
    "tpu-v5p-4x4": (BadValue, "3 sides"),
    "tpu-v5e-4x4x4": (BadValue, "2 sides"),
    "tpu-v5p-0x4x4": (BadValue, "'0'"),
    "tpu-v5p-400x400x400": (BadValue, "8960"),
    "h100-4x4": (BadValue, "8xh100"),
    "2xmatx-one": (MissingFact, "scale_up_domain"),
}


@pytest.mark.parametrize("name", WRONG, ids=lambda name: name[:30])
def test_system__wrong_name_is_one_line(name: str) -> None:
    error, says = WRONG[name]
    with pytest.raises(error, match=says) as caught:
        system(name)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


@settings(max_examples=150)
@given(st.text(max_size=30) | st.from_regex(r"-?\d{1,9}x(h100|gb200-nvl72|tpu-v5p)(-\d{1,3}x\d{1,3}(x\d{1,3})?)?", fullmatch=True))
def test_system__any_text_is_a_system_or_one_line(text: str) -> None:
    try:
        found = system(text)
    except HeadwayError as error:
        assert "\n" not in str(error)
    else:
        assert 1 <= found.scale_up_domain <= found.chips <= 10_000_000


def test_system__takes_little_work_to_load() -> None:
    system("gb200-nvl72")
    assert calls(lambda: system("8xh100-sxm")) < 15_000  # bench/bench_read.py measures the time


# Edits


def test_edit__is_a_user_input_and_leaves_the_rest() -> None:
    base = system("8xh100-sxm")
    edited = edit(base, "chip.hbm_bw", "10TB/s")
    assert (edited.chip.hbm_bw, edited.chip.hbm_bw.kind, edited.chip.hbm_bw.unit) == (10e12, "input", "byte/s")
    assert edit(edited, "chip.hbm_bw", float(base.chip.hbm_bw)) == base
    assert base.chip == chip("h100")


def test_edit__dependent_facts_change_together() -> None:
    base = system("gb200-nvl72")
    for key in ("chip.scale_up_bw", "system.scale_up_bw"):
        edited = edit(base, key, "3.6TB/s")
        assert edited.scale_up_bw == edited.chip.scale_up_bw == 3.6e12
        assert edited.bisection is None
    assert edit(base, "chip.hbm", "400GB").hbm_total is None
    assert edit(base, "system.chips", "36").scale_up_domain == 36
    assert edit(base, "system.chips", 144).power is None
    assert edit(system("16xh100"), "chip.scale_up_domain", 16).domains == 1
    assert edit(base, "system.scale_up_domain", 8).domains == 9


def test_edit__price_is_per_time() -> None:
    assert edit(system("h100"), "chip.price", "$2/h").chip.price == pytest.approx(2 / 3600)
    assert edit(system("h100"), "chip.price", "2").chip.price == pytest.approx(2 / 3600)  # read as USD/h
    assert edit(system("h100"), "chip.price", 2 / 3600).chip.price == pytest.approx(2 / 3600)  # a number is SI
    with pytest.raises(BadValue):
        edit(system("h100"), "chip.price", "$2")


@pytest.mark.parametrize("value", ["10GB", "-1", "0", "nan", "inf", "", "ten", -1.0, 0, float("nan"), float("inf"), True, "1e400"])
def test_edit__wrong_value_names_the_key(value) -> None:
    with pytest.raises(BadValue, match=r"chip\.hbm_bw"):
        edit(system("h100"), "chip.hbm_bw", value)


def test_edit__wrong_key_or_size_is_refused() -> None:
    with pytest.raises(UnknownName, match=r"chip\.hbm_bw"):
        edit(system("h100"), "chip.hbm_bww", "1TB/s")
    with pytest.raises(UnknownName):
        edit(system("h100"), "hbm_bw", "1TB/s")
    with pytest.raises(UnknownName):
        edit(system("h100"), "chip.name", "x")
    with pytest.raises(BadValue, match="72 chips"):
        edit(system("gb200-nvl72"), "system.scale_up_domain", 100)
    with pytest.raises(BadValue, match="whole"):
        edit(system("gb200-nvl72"), "system.scale_up_domain", "8.5")


@pytest.mark.parametrize("key", sorted(editable()))
def test_edit__every_key_can_be_set(key: str) -> None:
    part, _, name = key.partition(".")
    edited = edit(system("100xgb200-nvl72"), key, 2000)
    assert getattr(edited.chip if part == "chip" else edited, name) == 2000

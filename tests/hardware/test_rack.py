"""Scale-up domains against published counts, limits and hand-computed numbers."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from headway.cli.main import main
from headway.core.catalog import PACKAGED, open_catalog
from headway.core.errors import BadFile, BadValue
from headway.core.formula import anonymous, replay
from headway.core.trace import Traced, record
from headway.hardware.rack import RackDomain, RackRequest, catalogue_needs, need, rack, racks
from headway.hardware.rack_facts import RackFacts, rack_facts
from headway.hardware.system import system
from headway.laws.rack import mesh_links, star_links
from headway.laws.serving.pipeline import racks_slowdown, scale_up_ratio
from support.command import Cli

NVL = {int(row.chips): row for row in racks("gb200-nvl72", [72, 144, 576])}
LAYERS = 58  # expert layers of DeepSeek-V3


# -- wires ----------------------------------------------------------------------------------------------------------------------


def test_star_cables__nvl72_published() -> None:
    row, published = NVL[72], system("gb200-nvl72")
    assert row.star_cables == published.cables == 72 * 72 == 5184
    assert row.star_switches == published.switches == 18
    assert row.star_connectors_per_chip == 1  # one Paladin HD connector of 72 pairs for each GPU
    assert row.domain_bisection == published.bisection
    assert row.levels == "one" and row.racks == 1 and row.one_rack == "yes" and row.cooling == "liquid"


def test_clos_switches__nvl576_published_fat_tree() -> None:
    row = NVL[576]  # SemiAnalysis 2024: 18 planes of a two-level fat tree, 288 + 144 switches
    assert row.clos_switches == 288 + 144
    assert row.clos_cables == 2 * 576 * 72 and row.levels == "two"


@pytest.mark.parametrize(("name", "switches"), [("vr-nvl72", 36), ("rubin-ultra-nvl576", 72)])
def test_star_switches__later_racks_published(name: str, switches: int) -> None:
    assert racks(name)[0].star_switches == switches


def test_cables__star_linear_and_mesh_quadratic_in_chips() -> None:
    for before, after in ((72, 144), (144, 576)):
        times = after / before
        assert NVL[after].star_cables == NVL[before].star_cables * times
        assert NVL[after].clos_cables == NVL[before].clos_cables * times
        assert NVL[after].mesh_cables == pytest.approx(NVL[before].mesh_cables * times**2, rel=0.02)
        assert NVL[after].star_connectors_per_chip == NVL[before].star_connectors_per_chip
    assert NVL[144].star_growth == 2 and NVL[576].star_growth == 8
    assert [mesh_links(n, 1) for n in (2, 3, 4, 8)] == [1, 3, 6, 28]
    assert star_links(2 * 72, 18) == 2 * star_links(72, 18)


def test_growth__domains_as_the_lecture_counts() -> None:
    hopper, blackwell, ultra = (racks(name)[0] for name in ("dgx-h100", "gb200-nvl72", "rubin-ultra-nvl576"))
    assert blackwell.chips / hopper.chips == 9
    assert (blackwell.dies, ultra.dies) == (144, 576) and ultra.dies / blackwell.dies == 4
    assert ultra.chips / blackwell.chips == 2
    assert ultra.dies / blackwell.chips == 8


def test_mesh__eight_mi300x_published() -> None:
    row, published = racks("mi300x-node")[0], system("mi300x-node")
    assert row.mesh_links_per_chip == 7 == rack_facts("mi300x").links_per_chip
    assert row.domain_bisection == published.bisection == 1024e9
    wider = dataclasses.replace(published, bisection=None)
    assert racks(wider)[0].domain_bisection == pytest.approx(1024e9)


@pytest.mark.parametrize("name", ["tpu-v3-pod", "tpu-v5e-pod", "tpu-v5p-pod", "tpu-v6e-pod", "tpu-v7-pod"])
def test_domain_bisection__tpu_pods_published(name: str) -> None:
    one = system(name)
    assert racks(dataclasses.replace(one, bisection=None))[0].domain_bisection == pytest.approx(float(one.bisection))


def test_torus_links__three_per_chip_of_a_tpu_v4_pod() -> None:
    row = racks("tpu-v4-pod")[0]
    assert row.torus_links == 3 * 4096 and row.racks == 64
    inside = 64 * 3 * 4 * 4 * 3  # links within each of 64 cubes of 4x4x4: 3 of 4 along each line
    assert row.torus_links - inside == 48 * 64 == 3072  # 48 optical switches, a pair of faces each: 6,144 ends of fibres


# -- body -----------------------------------------------------------------------------------------------------------------------


def test_domain_power_and_weight__scale_from_the_known_rack() -> None:
    assert (NVL[72].domain_power, NVL[72].domain_weight) == (pytest.approx(120e3), pytest.approx(1360))
    assert (NVL[576].domain_power, NVL[576].domain_weight) == (pytest.approx(960e3), pytest.approx(8 * 1360))
    assert NVL[72].watts_per_rack_unit == pytest.approx(120e3 / 48)
    assert NVL[576].air_racks == 32 and NVL[576].cabinet_racks == 8
    assert NVL[576].one_rack == "no: weight, space"


def test_cooling__air_for_hopper_box_and_liquid_for_blackwell_rack() -> None:
    assert [racks(name)[0].cooling for name in ("dgx-h100", "gb200-nvl72", "tpu-v7-pod")] == ["air", "liquid", "beyond liquid"]


def test_rack__unpublished_fact_stays_null() -> None:
    row = racks("helios-72")[0]
    assert row.domain_power is None and row.cooling is None and row.star_cables is None
    assert row.domain_weight == pytest.approx(3175)
    assert racks("tpu-8t-pod")[0].racks is None


# -- network --------------------------------------------------------------------------------------------------------------------


def test_racks_slowdown__all_to_all_as_the_lecture_says() -> None:
    assert [racks_slowdown(8, n) for n in (2, 3, 4, 8)] == [4, pytest.approx(16 / 3), 6, 7]
    assert [scale_up_ratio(*pair) for pair in ((450, 50), (900, 50), (900, 100))] == [9, 18, 9]  # H100, GB200, GB300
    assert NVL[72].racks_slowdown is None
    assert NVL[144].racks_slowdown == 9 and NVL[576].racks_slowdown == pytest.approx(18 * 7 / 8)
    for chips in (144, 576):
        measured = float(NVL[chips].alltoall_racks_s) / float(NVL[chips].alltoall_s)
        assert measured == pytest.approx(float(NVL[chips].racks_slowdown) * chips / (chips - 1))  # a chip keeps its own part


def test_alltoall_s__moe_11_to_the_microsecond() -> None:
    row = racks("gb200-nvl72", [64], batch=2400)[0]
    scales = 2400 / 64 * 8 * 7168 / 128 * 4  # a four-byte scale for each 128 elements of the dispatch
    kept = 6.4512e6 * 63 / 64 + scales * 63 / 64
    assert float(row.alltoall_bytes) == pytest.approx(kept)
    assert float(row.alltoall_s) == pytest.approx(7.2e-6, rel=0.02)
    assert float(row.alltoall_s) * LAYERS == pytest.approx(0.42e-3, rel=0.02)
    assert float(row.alltoall_s) * LAYERS < float(row.latency_floor_s)


def test_alltoall_s__torus_limited_by_its_bisection() -> None:
    row = racks("tpu-v5p-4x4x8")[0]
    cut = 2 * 16 * 100e9  # two links of each of the 16 rings along the side of eight
    assert row.domain_bisection == cut
    assert float(row.alltoall_s) == pytest.approx(float(row.alltoall_bytes) / (4 * cut / 128))


def test_alltoall_s__null_for_a_dense_model_and_one_chip() -> None:
    assert racks("gb200-nvl72", model="llama-3.1-70b")[0].alltoall_s is None
    assert racks("gb200-nvl72", [1])[0].alltoall_s is None


# -- memory ---------------------------------------------------------------------------------------------------------------------


def test_models_fit__by_hand_with_latency_floor() -> None:
    hopper, blackwell = racks("dgx-h100")[0], NVL[72]
    assert not hopper.fits and hopper.latency_floor_s is None  # 671 GB in 640
    assert blackwell.fits and blackwell.latency_floor_s == pytest.approx(1.165e-3, rel=0.01)
    assert blackwell.drain_s == pytest.approx(186 / 8000)
    names = {one.model for one in hopper.fitting}
    assert "deepseek-v3" not in names and {"llama-3.1-70b", "gpt-oss-120b"} <= names
    assert "llama-3.1-405b" not in names  # 810 GB in bf16
    assert len(hopper.fitting) == hopper.models_fit < blackwell.models_fit


def test_models_fit__falls_with_context_and_grows_with_chips() -> None:
    counts = [racks("dgx-h100", context=context)[0].models_fit for context in (1000, 1_000_000, 100_000_000)]
    assert counts == sorted(counts, reverse=True) and counts[0] > counts[-1]
    found = racks("dgx-h100", [1, 8, 64])
    assert [row.models_fit for row in found] == sorted(row.models_fit for row in found)
    floors = [one.latency_floor_s for row in racks("gb200-nvl72", [72, 144]) for one in row.fitting if one.model == "deepseek-v3"]
    assert floors[0] == pytest.approx(2 * floors[1])


# -- every number explains itself -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gb200-nvl72", "mi300x-node", "tpu-v5p-pod"])
def test_rack__every_number_has_an_origin(name: str) -> None:
    from headway.core.quantity import user_input
    from headway.models.config import model

    one, context = system(name), user_input(8192, "context", "token")
    chosen = model("deepseek-v3")
    with record():
        ask = RackRequest(
            chips=user_input(144, "chips"),
            model=chosen,
            need=need(chosen, context),
            batch=user_input(2400, "batch", "token"),
            context=context,
        )
        row = rack(one, rack_facts(one.chip.name), ask, catalogue_needs(context)[:3])
    for field in dataclasses.fields(RackDomain):
        value = getattr(row, field.name)
        if not isinstance(value, str | None):
            assert anonymous(value) == [], field.name
        if isinstance(value, Traced):
            assert float(replay(value)) == pytest.approx(float(value), rel=1e-12), field.name


def test_rack__every_column_has_a_sentence_and_a_tree(cli: Cli) -> None:
    found = cli.json("rack", "gb200-nvl72", "--chips", "144")
    assert all(column["doc"] for column in found["columns"].values())
    keys = [key for key, value in found["rows"][0].items() if isinstance(value, int | float) and not isinstance(value, bool)]
    assert len(keys) > 40
    explained = cli.json("rack", "gb200-nvl72", "--chips", "144", "--explain", ",".join(keys))["explain"]
    for key in keys:
        assert explained[key]["value"] == pytest.approx(found["rows"][0][key]), key


# -- the command ----------------------------------------------------------------------------------------------------------------


def test_rack__first_line_is_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rack", "gb200-nvl72", "--chips", "72,144,576"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert "72 chips: deepseek-v3 fits" in first and "5184 cables" in first and "576 chips: deepseek-v3 fits" in first


def test_rack__lists_ranges_where_and_set(cli: Cli) -> None:
    rows = cli.json("rack", "gb200-nvl72", "--chips", "72..576*2", "--where", "chips > 72", "--sort", "-chips")["rows"]
    assert [row["chips"] for row in rows] == [576, 288, 144]
    faster = cli.json("rack", "gb200-nvl72", "--set", "chip.hbm_bw=8TB/s,16TB/s")["rows"]
    assert faster[0]["latency_floor_s"] == pytest.approx(2 * faster[1]["latency_floor_s"])
    ports = cli.json("rack", "gb200-nvl72", "--chips", "576", "--ports-per-switch", "72,144")["rows"]
    assert [row["clos_switches"] for row in ports] == [432, 216]


def test_rack__illegal_list_member_is_dropped_with_a_note(cli: Cli) -> None:
    found = cli.json("rack", "gb200-nvl72", "--chips", "0,72")
    assert [row["chips"] for row in found["rows"]] == [72] and any("dropped 1 of 2" in note for note in found["notes"])


@pytest.mark.parametrize(
    "argv",
    [
        [], ["gb200-nvl73x"], ["gb200-nvl72", "--chips", "0"], ["gb200-nvl72", "--chips", "1.5"], ["gb200-nvl72", "--chips", "-72"],
        ["gb200-nvl72", "--chips", "nan"], ["gb200-nvl72", "--chips", ""], ["gb200-nvl72", "--chips", "1..2000"],
        ["gb200-nvl72", "--batch", "0"], ["gb200-nvl72", "--context", "8 apples"], ["gb200-nvl72", "--model", ""],
        ["gb200-nvl72", "--model", "deepseek-v33x"], ["gb200-nvl72", "--ports-per-switch", "0"], ["gb200-nvl72", "--footprint", "2kg"],
        ["gb200-nvl72", "--explain", "cooling"], ["gb200-nvl72", "--explain", "nothing"], ["gb200-nvl72", "--by-year"],
        ["--by-year", "--chips", "72"], ["--by-year", "--context", "1k,2k"], ["--by-year", "--set", "chip.hbm=80GB"],
    ],
)  # fmt: skip
def test_rack__wrong_input_is_one_line(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rack", *argv]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("headway: ")


@pytest.mark.parametrize("wrong", [{"chips": [0]}, {"chips": [1.5]}, {"chips": [True]}, {"batch": 0}, {"context": -1}])
def test_rack__library_refuses_bad_values(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadValue):
        racks("gb200-nvl72", **wrong)


def test_rack_facts__user_folder_comes_first(tmp_path: Path) -> None:
    folder = tmp_path / "rack"
    folder.mkdir()
    (folder / "gb200.toml").write_text('[facts]\nlinks_per_chip = "36"\n', encoding="utf-8")
    own = rack_facts("gb200", open_catalog([tmp_path]))
    assert own.links_per_chip == 36 and own.air_limit == rack_facts("gb200").air_limit
    (folder / "gb200.toml").write_text('[facts]\nlinks_per_chop = "36"\n', encoding="utf-8")
    with pytest.raises(BadFile, match="links_per_chip"):
        rack_facts("gb200", open_catalog([tmp_path]))


def test_rack_facts__have_a_source_and_a_date() -> None:
    for path in sorted((PACKAGED / "rack").glob("*.toml")):
        found = rack_facts(path.stem)
        for field in dataclasses.fields(RackFacts):
            value = getattr(found, field.name)
            assert value is None or (len(value.source) > 10 and value.date and " " in value.source), (path.name, field.name)


# -- by year --------------------------------------------------------------------------------------------------------------------


def test_by_year__tpu_pods_precede_blackwell_racks(cli: Cli) -> None:
    rows = cli.json("rack", "--by-year")["rows"]
    assert [row["year"] for row in rows] == sorted(row["year"] for row in rows)
    sizes = {row["system"]: row["scale_up_domain"] for row in rows}
    published = {"tpu-v3-pod": 1024, "tpu-v4-pod": 4096, "tpu-v5p-pod": 8960, "tpu-v7-pod": 9216, "dgx-h100": 8, "gb200-nvl72": 72}
    assert sizes | published == sizes
    by_name = {row["system"]: row for row in rows}
    assert by_name["tpu-v3-pod"]["year"] < by_name["gb200-nvl72"]["year"]
    assert by_name["tpu-v3-pod"]["latency_floor_s"] < by_name["gb200-nvl72"]["latency_floor_s"] / 1.5
    assert by_name["dgx-h100"]["fits"] is False and by_name["dgx-h100"]["latency_floor_s"] is None


def test_by_year__explains_its_columns(cli: Cli) -> None:
    found = cli.json("rack", "--by-year", "--where", "system = gb200-nvl72", "--explain", "latency_floor_s,params_fit,largest_floor_s")
    row, trees = found["rows"][0], found["explain"]
    assert trees["latency_floor_s"]["value"] == pytest.approx(row["latency_floor_s"])
    assert row["params_fit"] == pytest.approx(72 * 186e9, rel=0.001)
    assert all(column["doc"] for column in found["columns"].values())

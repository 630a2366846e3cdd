"""The catalogue against published figures, and its promises: every line has its origin, one name one chip, blank stays blank."""

from __future__ import annotations

import math
import subprocess
import sys
import tomllib

import pytest

from headway.core import catalog as facts
from headway.core.catalog import PACKAGED, Catalog, fold, open_catalog
from headway.core.errors import BadFile, MissingFact, UnknownName
from headway.core.quantity import Sourced
from headway.hardware import chip_price as cost
from headway.hardware.chip import Chip, chip, price_quote
from headway.hardware.describe import about_chip, about_system, list_chips, list_sources, list_systems
from headway.hardware.system import System, system
from support.each import for_each

CHIP_IDS = sorted(path.stem for path in (PACKAGED / "chips").glob("*.toml"))
COSTED = sorted(path.stem for path in (PACKAGED / "costs").glob("*.toml"))
LINES = sorted((PACKAGED / "chips").glob("*.toml")) + sorted((PACKAGED / "systems").glob("*.toml"))
FACT_KINDS = {"datasheet", "measured", "reported", "derived", "estimate"}

# From the vendors' own pages: name, field, value in SI.
PUBLISHED = [
    ("h100", "peak_bf16", 989.4e12),  # 1,979 TFLOPS with sparsity
    ("h100", "peak_fp8", 1978.9e12),
    ("h100", "hbm", 80e9),
    ("h100", "hbm_bw", 3.35e12),
    ("h100", "tdp", 700),
    ("h100", "scale_up_bw", 450e9),  # NVLink 900 GB/s both ways
    ("h200", "hbm", 141e9),
    ("h200", "hbm_bw", 4.8e12),
    ("a100", "peak_bf16", 312e12),
    ("a100", "hbm_bw", 2.039e12),
    ("b200", "scale_up_bw", 900e9),  # NVLink 5 is 1.8 TB/s both ways
    ("gb200", "hbm_bw", 8e12),
    ("mi300x", "peak_bf16", 1307.4e12),
    ("mi300x", "hbm", 192e9),
    ("mi300x", "hbm_bw", 5.3e12),
    ("tpu v5p", "peak_bf16", 459e12),
    ("tpu v5p", "scale_up_domain", 8960),
    ("ironwood", "peak_fp8", 4614e12),
    ("gaudi 3", "hbm", 128e9),
    ("RTX 4090", "hbm_bw", 1.008e12),
    ("A30", "peak_bf16", 165e12),  # 330 TFLOPS with sparsity
    ("A800", "scale_up_bw", 200e9),  # NVLink 400 GB/s both ways
    ("RTX A5000", "peak_bf16", 111.1e12),  # 222.2 TFLOPS with sparsity
    ("RTX PRO 5000", "peak_fp4", 1032e12),  # 2,064 AI TOPS with sparsity
    ("MI210", "peak_bf16", 181e12),
]


@pytest.mark.parametrize(("name", "field", "value"), PUBLISHED)
def test_chip__fact_equals_the_published_value(name: str, field: str, value: float) -> None:
    fact = getattr(chip(name), field)
    assert fact == pytest.approx(value, rel=1e-12)
    assert fact.name == f"{chip(name).name}.{field}"


def test_catalogue__counts_of_chips_systems_and_costs() -> None:
    assert len(CHIP_IDS) == 132
    assert len(list_systems()) == 25
    assert sum(len(cost.costs(name)) for name in COSTED) == 114  # and the life of a building


@for_each(LINES, name=lambda path: path.stem)
def test_facts__have_value_unit_source_date_and_kind(path) -> None:
    document = tomllib.loads(path.read_text())
    for key, line in document["facts"].items():
        assert set(line) == {"value", "unit", "source", "date", "kind"}, key
        assert line["kind"] in FACT_KINDS, key
        assert all(source in document["sources"] for source in line["source"].split(", ")), key
        assert line["date"] == "undated" or line["date"].startswith("20"), key
        resolved = facts.origin(line, key, document["sources"], path)[1]
        assert "unverified" not in resolved or line["kind"] == "estimate", key
    assert all("; " not in source for source in document["sources"].values())  # the separator of joined sources


@for_each(CHIP_IDS)
def test_chip__every_number_is_sourced_positive_and_in_si(name: str) -> None:
    found = chip(name)
    assert found.name == name
    assert found.vendor
    for key, q in facts.declared(Chip).items():
        value = getattr(found, key)
        if value is not None:
            assert isinstance(value, Sourced), key
            assert float(getattr(found, key)) > 0, key
            assert (value.unit, value.name) == (q.unit, f"{name}.{key}")
            assert value.source, key


@for_each(list_chips(), name=lambda found: found.name)
def test_chip__magnitudes_within_plausible_ranges(found: Chip) -> None:
    """A factor of a thousand lost on the way would leave these ranges."""
    assert found.hbm is None or 1e8 < found.hbm < 1e13
    assert found.hbm_bw is None or 5e10 < found.hbm_bw < 1e17
    assert found.peak_bf16 is None or 1e12 < found.peak_bf16 < 1e16
    assert found.sram is None or 1e6 < found.sram < 1e11
    assert found.scale_up_bw is None or 1e10 < found.scale_up_bw < 1e13
    assert found.tdp is None or 30 < found.tdp < 5e4
    assert found.peak_fp8 is None or found.peak_bf16 is None or found.peak_fp8 >= found.peak_bf16


def test_fold__one_spelling_rule_for_names() -> None:
    assert {chip(name).name for name in ("H100", "h100", "H100_SXM", "h100-sxm", "h100 sxm", "NVIDIA H100 80GB HBM3", "p5")} == {"h100_sxm"}
    assert fold("TPU_v5p ") == "tpu-v5p"


def test_aliases__each_names_exactly_one_entry() -> None:
    catalog = Catalog()
    for kind in ("chips", "systems"):
        files, aliases = catalog.files(kind), catalog.aliases(kind)
        assert set(aliases.values()) <= set(files)
        assert not set(aliases) & set(files)
        assert all(catalog.find(kind, alias) == files[name] for alias, name in aliases.items())
        written = (PACKAGED / "aliases" / f"{kind}.txt").read_text().splitlines()
        spelled = [fold(other) for line in written if not line.startswith("#") for other in line.partition(":")[2].split(",")]
        assert sorted(spelled) == sorted(aliases), "an alias is listed twice"


def test_facts__two_files_about_one_chip_agree() -> None:
    """What two files both state about one chip agrees."""
    for found in list_chips():
        for row in found.costs:
            if row.metric == "tdp_chip" and found.tdp is not None:
                assert row.value == found.tdp
    for rack in list_systems():
        assert rack.chip == chip(rack.chip.name)
        assert rack.scale_up_bw == rack.chip.scale_up_bw
        if rack.hbm_total is not None and rack.chip.hbm is not None:
            assert rack.hbm_total == pytest.approx(rack.chips * rack.chip.hbm, rel=0.05)  # vendors round, or count in GiB


def test_chip__unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match="h100"):
        chip("h10")
    with pytest.raises(UnknownName):
        chip("../chips/h100_sxm")


def test_need__blank_fact_is_an_error_with_its_name() -> None:
    assert chip("matx_one").hbm_bw is None
    with pytest.raises(MissingFact, match=r"matx_one: hbm_bw .*--set chip.hbm_bw=3.35TB/s"):
        chip("matx_one").need("hbm_bw")
    with pytest.raises(UnknownName, match="hbm_bw"):
        chip("h100").need("hbmbw")
    assert chip("h100").need("hbm_bw") == 3.35e12


def test_peak__by_number_format() -> None:
    h100 = chip("h100")
    assert h100.peak("fp16") is h100.peak("bf16") is h100.peak_bf16
    assert h100.peak("fp4") is None
    assert chip("b200").peak("nvfp4") == 9e15
    with pytest.raises(UnknownName, match="int8"):
        h100.peak("int7")


def test_chip_price__per_second_and_by_metric() -> None:
    rental = price_quote(chip("h100"), "rental_3yr")
    assert rental is not None and rental.metric == "rental_3yr"
    assert rental.value * 3600 == pytest.approx(1.30)
    assert rental.value.unit == "USD/s"
    assert price_quote(chip("a100"), "rental_3yr") is None  # a price by the hour, none for three years
    assert price_quote(chip("gb300"), "rental_on_demand") is None  # and the other way round
    hourly = price_quote(chip("h100"))
    assert hourly is not None and hourly.metric == "rental_on_demand"
    assert hourly.value.date == "2026-10-24"
    assert [round(price * 3600, 2) for price in (hourly.value, hourly.low, hourly.high)] == [3.55, 2.11, 6.16]
    with pytest.raises(UnknownName, match="rental_3yr"):
        price_quote(chip("h100"), "rental_3y")


def test_price_metrics__every_rate_per_second_is_offered() -> None:
    rows = [row for name in COSTED for row in cost.costs(name)]
    assert {row.metric for row in rows if row.value.unit == "USD/s"} == set(cost.METRICS)
    assert all(row.low <= row.value <= row.high for row in rows)
    assert all(isinstance(row.value, Sourced) and row.value.source and row.value.date for row in rows)
    assumed = cost.assumptions()
    assert assumed["tco_default_electricity"] * 3.6e6 == pytest.approx(0.07)  # USD/kWh
    assert assumed["tco_default_life"] == pytest.approx(5 * 365.25 * 86400)


# A user's own catalogue


def _folder(tmp_path, files: dict[str, str]):
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return open_catalog([tmp_path])


def test_catalog__user_adds_and_replaces_chips_and_systems(tmp_path) -> None:
    files = {
        "chips/my_chip.toml": '[facts]\nhbm_bw = "10 TB/s"\nhbm = { value = 256, unit = "GiB" }\nscale_up_domain = "16"\nprice = "$3/h"\n',
        "chips/l4.toml": '[facts]\nhbm_bw = "1 TB/s"\n',
        "systems/my_rack.toml": 'chip = "My Chip"\ntopology = "switch"\n[facts]\nchips = "32"\nscale_up_domain = "16"\n',
        "aliases/chips.txt": "# mine\nmy_chip: Mine\n",
    }
    catalog = _folder(tmp_path, files)
    mine = chip("mine", catalog)
    assert (mine.hbm_bw, mine.hbm, mine.hbm_bw.kind) == (10e12, 256 * 2**30, "input")
    price = price_quote(mine)
    assert price is not None and price.value == pytest.approx(3 / 3600)
    assert chip("l4", catalog).hbm_bw == 1e12
    assert chip("h100", catalog) == chip("h100")
    rack = system("my-rack", catalog)
    assert (rack.chips, rack.domains, rack.chip.name) == (32, 2, "my_chip")
    assert system("24xmine", catalog).domains == 2


def test_catalog__user_folders_are_found(tmp_path, monkeypatch) -> None:
    (tmp_path / "headway" / "chips").mkdir(parents=True)
    (tmp_path / "headway" / "chips" / "mine.toml").write_text('[facts]\nhbm = "1 TB"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert chip("mine", open_catalog()).hbm == 1e12
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("HEADWAY_CATALOG", str(tmp_path / "headway"))
    assert chip("mine", open_catalog()).hbm == 1e12
    with pytest.raises(BadFile, match="is not a folder"):
        open_catalog([tmp_path / "nowhere"])


MALFORMED = [
    ("[facts]\nhbm = = 3\n", "line 2"),
    ('[facts]\nhbmm = "3 GB"\n', "hbmm.*hbm"),
    ('[facts]\nhbm = "3 GB/s"\n', "hbm"),
    ('[facts]\nhbm = { value = 3, unit = "TFLOP/s" }\n', "hbm.*unit"),
    ('[facts]\nhbm = { value = -3, unit = "GB" }\n', "above 0"),
    ('[facts]\nhbm = { value = nan, unit = "GB" }\n', "wants a number"),
    ('[facts]\nhbm = { value = "many", unit = "GB" }\n', "wants a number"),
    ('[facts]\nhbm = { value = true, unit = "GB" }\n', "wants a number"),
    ("[facts]\nhbm = { value = 3, unit = 4 }\n", "unit"),
    ('[facts]\nhbm = { value = 3, unit = "GB", kind = "rumour" }\n', "kind"),
    ('[facts]\nhbm = { value = 3, unit = "GB", source = 3 }\n', "source"),
    ("[facts]\nhbm = true\n", "hbm"),
    ("[facts]\nhbm = -3\n", "hbm"),
    ("[facts]\nscale_up_domain = { value = 2.5, unit = '' }\n", "whole"),
    ("facts = 3\n", "facts"),
    ("sources = 3\n", "sources"),
    ("[fatcs]\n", "fatcs.*facts"),
    ('topology = "star"\n', "star.*switch"),
    ("vendor = 3\n", "vendor"),
    ('name = "other"\n', "other"),
    ("\x00", "NUL"),
    ("a = " + "[" * 5000, "TOML"),
    ("#" * 1_100_000, "above"),
]


@pytest.mark.parametrize(("text", "says"), MALFORMED, ids=lambda value: value[:20].encode("unicode_escape").decode())
def test_chip__malformed_file_is_one_line_with_the_place(tmp_path, text: str, says: str) -> None:
    catalog = _folder(tmp_path, {"chips/bad.toml": text})
    with pytest.raises(BadFile, match=says) as caught:
        chip("bad", catalog)
    assert "bad.toml" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("files", "name", "says"),
    [
        ({"systems/bad.toml": '[facts]\nchips = "3"\n'}, "bad", "no chip named"),
        ({"systems/bad.toml": 'chip = "h10"\n[facts]\nchips = "3"\n'}, "bad", "h100"),
        ({"systems/bad.toml": 'chip = "h100"\n'}, "bad", "facts.chips"),
        ({"systems/bad.toml": 'chip = "tpu-v4"\nshape = "2x3"\n[facts]\nchips = "8"\n'}, "bad", "shape"),
        ({"systems/bad.toml": 'chip = "h100"\ntopology = "x"\n[facts]\nchips = "8"\n'}, "bad", "topology"),
        ({"aliases/chips.txt": "no colon\n"}, "h1", "line 1"),
        ({"costs/h100_sxm.toml": "rows = 3\n"}, "h100", "rows"),
        ({"costs/h100_sxm.toml": 'rows = [{ metric = "rental_3yr", value = 0, unit = "USD/h" }]\n'}, "h100", "above 0"),
        ({"costs/h100_sxm.toml": 'rows = [{ metric = "rental_3yr", value = 1, unit = "EUR/h" }]\n'}, "h100", "USD/h"),
    ],
)
def test_system__malformed_file_is_refused(tmp_path, files: dict[str, str], name: str, says: str) -> None:
    with pytest.raises(BadFile, match=says):
        system(name, _folder(tmp_path, files))


# What show and list print


def test_show_chip__every_fact_with_origin_under_its_set_key() -> None:
    entries = {entry.key: entry for entry in about_chip(chip("h200"))}
    assert facts.declared(Chip).keys() - entries.keys() == {"cores"}  # which are a TPU's
    cores = {name: entry.value for name in ("v3", "v4", "v5e", "v5p", "v6e", "v7") for entry in about_chip(chip(f"tpu-{name}"))
             if entry.key == "cores"}  # fmt: skip
    assert cores == {"v3": 2, "v4": 2, "v5e": 1, "v5p": 2, "v6e": 1, "v7": 2}  # pages of Google's documentation
    bandwidth = entries["hbm_bw"]
    assert (bandwidth.value, bandwidth.unit, bandwidth.kind) == (4.8e12, "byte/s", "datasheet")
    assert bandwidth.source and bandwidth.date and bandwidth.doc
    assert entries["peak_fp4"].value is None
    assert entries["price"].value * 3600 == pytest.approx(4.95)
    assert entries["rental_on_demand_low"].value < entries["rental_on_demand"].value
    whole = {entry.key for entry in about_system(system("4xgb200-nvl72"))}
    assert set(facts.declared(System)) <= whole
    assert "chip.hbm_bw" in whole
    for found in list_chips():
        assert all(entry.source for entry in about_chip(found) if isinstance(entry.value, Sourced))
        assert all(entry.doc for entry in about_chip(found))


def test_lists__chips_systems_and_sources() -> None:
    assert [found.name for found in list_chips()].count("h100_sxm") == 1
    assert "gb200-nvl72" in [found.name for found in list_systems()]
    sources = list_sources()
    assert sources[0].facts > sources[-1].facts >= 1
    assert any("NVIDIA" in row.source for row in sources)
    stated = {fact.name for found in (*list_chips(), *list_systems()) for key in facts.declared(type(found))
              if isinstance(fact := getattr(found, key), Sourced)}  # fmt: skip
    assert sum(row.facts for row in sources) >= len(stated)


def test_lists__need_no_numpy() -> None:
    code = (
        "import sys; from headway.hardware.describe import list_chips, list_systems, list_sources;"
        "list_chips(); list_systems(); list_sources();"
        "sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_facts__are_finite() -> None:
    for record in (*list_chips(), *list_systems()):
        for key in facts.declared(type(record)):
            value = getattr(record, key)
            assert value is None or math.isfinite(value), (record.name, key)

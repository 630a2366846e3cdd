"""Price sheets from every format, what is refused and what is flagged, names, histories."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headway.cli.main import main
from headway.core.errors import BadFile, HeadwayError, UnknownName
from headway.economics.sheets import genai
from headway.economics.sheets.catalogue import AmbiguousSheet, find, newest, read, read_sheets, sheet, sheets, version
from headway.economics.sheets.history import history
from headway.economics.sheets.schema import sheets_of
from headway.economics.sheets.sheet import PriceSheet

MTOK = 1e-6
WHOLE = """
currency = "USD"
provider = "maker"
model = "model-1"
as_of = 2026-11-02
source = "price page"
context_limit = "1M"
min_prefix = 1024
cache_block = 128
rates = { input = 5, output = 25, cache_read = "0.1x", cache_write = { 1h = 10, 5min = "1.25x" }, storage_per_mtok_h = 4.5 }
tiers = [{ above_tokens = "200k", input = 10, output = 37.5 }]
modes.fast = { ratio = 6, speed_ratio = 2.5, sla_tok_s = 80 }
modes.batch = { rates = { input = 2.5, output = 12.5 }, source = "batch page" }
time_of_day = [{ utc = "16:30-00:30", ratio = 0.5 }]
"""


def written(tmp_path: Path, text: str, name: str = "prices.toml") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def one(path: Path) -> PriceSheet:
    found = read_sheets(path).sheets
    assert len(found) == 1
    return found[0]


def rates(made: PriceSheet) -> Any:
    return made.rates


def close(value: Any, usd_per_mtok: float) -> bool:
    return value == pytest.approx(usd_per_mtok * MTOK, rel=1e-12)


# -- the project's own schema ---------------------------------------------------------------------------------------------------


def test_price_sheet__every_part_of_the_schema(tmp_path: Path) -> None:
    made = one(written(tmp_path, WHOLE))
    assert (made.provider, made.model, made.as_of, made.source) == ("maker", "model-1", "2026-11-02", "price page")
    assert (made.context_limit, made.min_prefix, made.cache_block) == (1e6, 1024, 128)
    assert made.flags == ("batch: states no context tiers as the usual rates do: taken to cost the same at every length",)
    assert close(made.rates.input, 5) and close(made.rates.output, 25) and close(made.rates.cache_read, 0.5)
    assert [write.ttl_s for write in made.rates.cache_writes] == [300, 3600]
    assert close(made.rates.cache_writes[0].rate, 6.25) and close(made.rates.cache_writes[1].rate, 10)
    assert made.rates.storage == pytest.approx(4.5e-6 / 3600)
    [tier] = made.tiers
    assert tier.above == 200_000 and close(tier.rates.output, 37.5)
    assert close(tier.rates.cache_read, 1.0), "a cache rate keeps its multiple of the input rate"
    assert close(tier.rates.cache_writes[1].rate, 20)
    fast, batch = made.modes
    assert (fast.name, fast.speed_ratio, fast.tokens_per_s) == ("fast", 2.5, 80)
    assert close(fast.rates.output, 150) and close(fast.tiers[0].rates.input, 60)
    assert close(batch.rates.cache_read, 0.25) and batch.tiers == (), "a mode that states rates has the tiers that it states"
    of_batch: Any = batch.rates.input
    assert of_batch.source == "batch page", "a mode may have a source of its own"
    [hours] = made.hours
    assert (hours.start_s, hours.end_s) == (59400, 1800), "wraps over midnight"
    assert close(hours.rates.input, 2.5) and close(hours.tiers[0].rates.output, 18.75)


def test_price_sheet__rates_carry_date_and_source() -> None:
    made = sheet("claude-opus-4.6@2026-02")
    leaf: Any = made.rates.cache_writes[0].rate
    assert (leaf.date, leaf.kind, leaf.unit) == ("2026-02", "datasheet", "USD/token")
    assert "genai-prices" in leaf.source


def test_price_sheet__json_equals_csv(tmp_path: Path) -> None:
    told = {"currency": "USD", "model": "m", "as_of": "2026-11", "input": 3, "output": 15, "cache_read": 0.3,
            "cache_write": {"5min": 3.75}, "tiers": [{"above_tokens": 200_000, "input": 6, "output": 22.5, "cache_read": 0.6}],
            "modes": {"batch": {"ratio": 0.5}}, "time_of_day": [{"utc": "01:00-04:00", "rates": {"input": 6, "output": 30}}]}  # fmt: skip
    table = """model,as_of,currency,input,output,cache_read,cache_write_5min,above_tokens,mode,utc,ratio
m,2026-11,USD,3,15,0.3,3.75,,,,
m,2026-11,,6,22.5,0.6,,200k,,,
m,2026-11,,,,,,,batch,,0.5
m,2026-11,,6,30,,,,,01:00-04:00,
"""
    own, tabled = one(written(tmp_path, json.dumps(told), "p.json")), one(written(tmp_path, table, "p.csv"))
    assert own.rates == tabled.rates and own.tiers == tabled.tiers and own.modes == tabled.modes and own.hours == tabled.hours
    listed = read_sheets(written(tmp_path, json.dumps([told, told | {"as_of": "2026-10"}]), "q.json")).sheets
    assert [made.as_of for made in listed] == ["2026-11", "2026-10"]


def test_price_sheet__other_currency_needs_usd_per_unit(tmp_path: Path) -> None:
    text = 'currency = "CNY"\nusd_per_unit = 0.14\nas_of = "2026"\ninput = 2\noutput = 8\n'
    assert close(one(written(tmp_path, text)).rates.output, 1.12)
    with pytest.raises(BadFile, match=r"CNY.*usd_per_unit"):
        read_sheets(written(tmp_path, text.replace("usd_per_unit = 0.14\n", "")))


START = 'currency = "USD"\nas_of = "2026-11"\n'
FLAT = START + "input = 3\noutput = 15\n"
WRONG = {
    "no currency": (FLAT.replace('currency = "USD"', ""), "currency: missing"),
    "no date": (FLAT.replace('as_of = "2026-11"', ""), "as_of: missing"),
    "no such date": (FLAT.replace("2026-11", "2026-13"), "as_of: got '2026-13'"),
    "no output": (START + "input = 3\n", "output: missing"),
    "negative": (FLAT.replace("15", "-15"), "output: got -15"),
    "text": (FLAT.replace("15", '"dear"'), "output: got 'dear'"),
    "true": (FLAT.replace("15", "true"), "output: got 'True'"),
    "nan": (FLAT.replace("15", "nan"), "output: got 'nan'"),
    "infinite": (FLAT.replace("15", "inf"), "output: got 'inf'"),
    "huge": (FLAT.replace("15", "1e9"), "at most 100000"),
    "unknown key": (FLAT + "outptu = 3\n", "outptu: no such entry; did you mean output"),
    "unknown rate": (START + "rates = { input = 3, output = 15, cached = 1 }\n", "rates.cached: no such entry"),
    "unknown mode": (FLAT + "modes.fats = { ratio = 2 }\n", "modes.fats: no such entry; did you mean fast"),
    "tiers out of order": (FLAT + "tiers = [{above_tokens = 200, multiplier = 2}, {above_tokens = 100, multiplier = 3}]\n", "rising order"),
    "tier without a threshold": (FLAT + "tiers = [{multiplier = 2}]\n", "above_tokens: missing"),
    "tier without rates": (FLAT + "tiers = [{above_tokens = 200}]\n", "multiplier: missing"),
    "ratio beside rates": (FLAT + "modes.fast = { ratio = 2, rates = { input = 6 } }\n", "one of the two"),
    "part of a token": (FLAT + "context_limit = 10.5\n", "context_limit: got 10.5"),
    "no hours": (FLAT + 'time_of_day = [{ utc = "25:00-01:00", ratio = 2 }]\n', "utc: got '25:00-01:00'"),
    "an empty window": (FLAT + 'time_of_day = [{ utc = "01:00-01:00", ratio = 2 }]\n', "utc: got"),
    "hours that overlap": (FLAT + 'time_of_day = [{utc = "22:00-02:00", ratio = 2}, {utc = "01:00-03:00", ratio = 3}]\n', "overlaps"),
    "a write for no time": (FLAT + "cache_write = { long = 3 }\n", "cache_write.long: is no time to live"),
    "one time twice": (FLAT + 'cache_write = { 60min = 3, 1h = 3 }\n', "one time to live twice"),
    "two rules": (FLAT + 'rule = "marginal"\n', "wants cliff"),
    "rates twice": (FLAT + "rates = { input = 3, output = 15 }\n", "one of the two"),
    "cut short": (FLAT + "rates = { inp", "is not valid TOML, or cut short"),
    "empty": ("  \n", "is empty"),
    "no sheets": (START + "sheets = []\n", "holds none"),
    "a sheet beside sheets": ("sheets = [{ input = 1 }]\ncolour = 1\n", "colour: no such entry"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_price_sheet__wrong_toml_is_one_line(tmp_path: Path, what: str) -> None:
    text, told = WRONG[what]
    with pytest.raises(HeadwayError) as found:
        read_sheets(written(tmp_path, text))
    assert told in str(found.value)
    assert "\n" not in str(found.value)
    assert "prices.toml" in str(found.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"currency": "USD", "as_of": "2026", "input": NaN, "output": 1}', "holds NaN"),
        ('{"currency": "USD", "as_of": "2026", "inp', "cut short"),
        ('{"input": 1, "input": 2}', "is there twice"),
        ("[1]", "wants a list of tables"),
        ("7", "is no JSON object"),
    ],
)
def test_price_sheet__wrong_json(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(BadFile, match=told):
        read_sheets(written(tmp_path, text, "p.json"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("model,input,outptu\nm,1,2\n", "outptu: no such entry"),
        ("model,as_of,currency,input,output\nm,2026,USD,1\n", "line 2: wants 5 cells"),
        ("model,as_of,currency,input,output\nm,2026,USD,1,2\nm,2026,USD,1,2\n", "line 3: repeats m 2026"),
        ("model,as_of,currency,input,output,mode\nm,2026,USD,1,2,batch\n", "before the line with the usual rates"),
        ("model,as_of,currency,input,output\n", "holds no price sheet"),
        ("model,as_of,currency,input,output\nm,2026,USD,1,\n", "line 2: output: missing"),
    ],
)
def test_price_sheet__wrong_csv(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(BadFile, match=told):
        read_sheets(written(tmp_path, text, "p.csv"))


def test_price_sheet__unreadable_files(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.toml", tmp_path, written(tmp_path, "x", "p.xlsx")):
        with pytest.raises(BadFile):
            read_sheets(path)
    binary = tmp_path / "p.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadFile, match="UTF-8"):
        read_sheets(binary)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("cache_read = 4", "cached input ($4/Mtok) costs more than input ($3/Mtok)"),
        ("cache_read = 2\ncache_write = 1", "writing to the cache ($1/Mtok) costs less than reading from it ($2/Mtok)"),
        ("tiers = [{ above_tokens = 100, multiplier = 0.5 }]", "above 100 tokens: costs less than the tier below"),
        ("context_limit = 100\ntiers = [{ above_tokens = 100, multiplier = 2 }]", "no prompt is so long"),
    ],
)
def test_price_sheet__odd_sheets_are_flagged(tmp_path: Path, more: str, told: str) -> None:
    assert any(told in flag for flag in one(written(tmp_path, FLAT + more)).flags)


def test_price_sheet__odd_rates_are_flagged(tmp_path: Path) -> None:
    def flags(given: float, output: float) -> str:
        return "; ".join(one(written(tmp_path, f"{START}input = {given}\noutput = {output}\n")).flags)

    assert "output ($2/Mtok) costs less than input" in flags(3, 2)
    assert "costs nothing" in flags(0, 0)
    assert "USD per token, not per million" in flags(3e-6, 15e-6)


# -- what others publish --------------------------------------------------------------------------------------------------------

LITELLM = {
    "sample_spec": {"input_cost_per_token": 0.0, "litellm_provider": "one of these"},
    "opal-2": {
        "litellm_provider": "opal", "mode": "chat", "source": "https://opal.example/prices", "max_input_tokens": 1_000_000,
        "input_cost_per_token": 5e-6, "output_cost_per_token": 2.5e-5, "cache_read_input_token_cost": 5e-7,
        "cache_creation_input_token_cost": 6.25e-6, "cache_creation_input_token_cost_above_1hr": 1e-5,
        "input_cost_per_token_above_200k_tokens": 1e-5, "output_cost_per_token_above_200k_tokens": 3.75e-5,
        "cache_creation_input_token_cost_above_1hr_above_200k_tokens": 2e-5,
        "input_cost_per_token_batches": 2.5e-6, "output_cost_per_token_batches": 1.25e-5,
        "input_cost_per_token_priority": 1e-5, "output_cost_per_token_priority": 5e-5,
        "input_cost_per_token_above_200k_tokens_priority": 2e-5, "output_cost_per_image": 1.0, "supports_vision": True,
    },
    "dash/ladder": {
        "litellm_provider": "dash", "mode": "chat",
        "tiered_pricing": [
            {"range": [0, 32000.0], "input_cost_per_token": 1e-6, "output_cost_per_token": 5e-6},
            {"range": [32000.0, 128000.0], "input_cost_per_token": 1.8e-6, "output_cost_per_token": 9e-6},
        ],
    },
    "xai/step": {
        "litellm_provider": "xai", "mode": "chat", "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6,
        "input_cost_per_token_above_200k_tokens": 2e-6, "output_cost_per_token_above_200k_tokens": 4e-6,
    },
    "east-4": {
        "litellm_provider": "east", "mode": "chat", "input_cost_per_token": 1.32e-6, "output_cost_per_token": 3.96e-6,
        "cache_read_input_token_cost": 4.4e-8, "cache_creation_input_token_cost": 0.0,
        "off_peak_pricing": {
            "input_cost_per_token": 6.6e-7, "output_cost_per_token": 1.98e-6, "cache_read_input_token_cost": 2.2e-8,
            "windows": [
                {"hours_utc": ["04:00-06:00", "10:00-00:00"], "weekdays": [1, 2, 3, 4, 5]},
                {"hours_utc": "00:00-00:00", "weekdays": [6, 7]},
            ],
        },
    },
    "picture": {"litellm_provider": "opal", "mode": "image_generation", "input_cost_per_token": 1e-6},
    "free of tokens": {"litellm_provider": "opal", "mode": "chat"},
    "broken": {"litellm_provider": "opal", "mode": "chat", "input_cost_per_token": -1e-6, "output_cost_per_token": 2e-6},
}  # fmt: skip


def test_price_sheet__litellm_format(tmp_path: Path) -> None:
    found = read_sheets(written(tmp_path, json.dumps(LITELLM), "prices.json"))
    opal, ladder, step, east = found.sheets
    assert (opal.provider, opal.model, opal.as_of, opal.context_limit) == ("opal", "opal-2", "undated", 1e6)
    assert close(opal.rates.cache_read, 0.5)
    assert [(write.ttl_s, round(write.rate / MTOK, 9)) for write in opal.rates.cache_writes] == [(300, 6.25), (3600, 10)]
    [tier] = opal.tiers
    assert tier.above == 200_000 and close(tier.rates.output, 37.5) and close(tier.rates.cache_read, 0.5)
    assert {mode.name for mode in opal.modes} == {"batch", "priority"}
    priority = next(mode for mode in opal.modes if mode.name == "priority")
    assert close(priority.tiers[0].rates.input, 20) and close(priority.tiers[0].rates.output, 50)
    assert (ladder.model, ladder.tiers[0].above) == ("ladder", 32_000) and close(ladder.tiers[0].rates.output, 9)
    assert [round(write.rate / MTOK, 9) for write in tier.rates.cache_writes] == [12.5, 20], "that of 5 minutes keeps its multiple"
    assert east.rates.cache_writes == (), "a write at 0 is no fee"
    assert [(one.start_s, one.end_s) for one in east.hours] == [(14400, 21600), (36000, 0)]
    assert close(east.hours[1].rates.output, 1.98) and "other days" in east.flags[0]
    assert step.tiers[0].above == 199_999, "a vendor whose threshold belongs to the dearer side"
    assert "1 that do not chat, 1 without prices of tokens" in found.notes[0]
    assert "broken" in found.notes[1]


MODELS_DEV = {
    "opal": {
        "id": "opal", "models": {
            "opal-2": {
                "id": "opal-2", "last_updated": "2026-06-30", "limit": {"context": 1_050_000, "output": 128_000},
                "cost": {"input": 5, "output": 30, "cache_read": 0.5, "cache_write": 6.25, "input_audio": 9,
                         "tiers": [{"input": 10, "output": 45, "tier": {"type": "context", "size": 272_000}}],
                         "context_over_200k": {"input": 10, "output": 45}},
                "experimental": {"modes": {"fast": {"cost": {"input": 10, "output": 60}}}},
            },
            "older": {"id": "older", "cost": {"input": 2, "output": 12, "context_over_200k": {"input": 4, "output": 18}}},
            "free": {"id": "free", "limit": {"context": 1000}},
        },
    }
}  # fmt: skip


def test_price_sheet__models_dev_format(tmp_path: Path) -> None:
    found = read_sheets(written(tmp_path, json.dumps(MODELS_DEV), "api.json"))
    opal, older = found.sheets
    assert (opal.as_of, opal.context_limit) == ("2026-06-30", 1_050_000)
    assert [tier.above for tier in opal.tiers] == [272_000], "the list of tiers says it already"
    assert opal.rates.cache_writes[0].ttl_s is None
    assert close(opal.modes[0].rates.output, 60)
    assert (older.as_of, older.tiers[0].above) == ("undated", 200_000)
    assert "1 without prices of tokens" in found.notes[0]


def prices(**given: Any) -> Any:
    return SimpleNamespace(**given)


def tiered(base: str, start: int, price: str) -> Any:
    return SimpleNamespace(base=base, tiers=[SimpleNamespace(start=start, price=price)])


def from_day(year: int, month: int, number: int) -> Any:
    return SimpleNamespace(start_date=datetime.date(year, month, number))


def hours(start: int, end: int) -> Any:
    zone = datetime.timezone(datetime.timedelta(hours=8))
    return SimpleNamespace(start_time=datetime.time(start, tzinfo=zone), end_time=datetime.time(end, 30, tzinfo=zone))


def row(constraint: Any, given: Any) -> Any:
    return SimpleNamespace(constraint=constraint, prices=given)


def variants(*given: Any) -> list[Any]:
    return [SimpleNamespace(when=when, prices=rates) for when, rates in given]


def providers() -> Iterator[Any]:
    step = prices(input_mtok=tiered("5", 200_000, "10"), output_mtok=tiered("25", 200_000, "37.5"), cache_read_mtok="0.5",
                  cache_write_mtok=tiered("6.25", 200_000, "12.5"), cache_write_1h_mtok="10", web_searches_kcount="10")  # fmt: skip
    flat = prices(input_mtok="5", output_mtok="25", cache_read_mtok="0.5", cache_write_mtok="6.25", cache_write_1h_mtok="10")
    modes = variants(
        ({"processing": "batch"}, prices(input_mtok="2.5", output_mtok="12.5")),
        ({"service_tier": "default"}, prices()),
        ({"service_tier": "priority"}, prices(input_mtok="10", output_mtok="50")),
        ({"service_tier": "fast"}, prices(input_mtok="10", output_mtok="50")),
        ({"route": "eu"}, prices(input_mtok="6")),
    )
    dated = [row(None, step), row(from_day(2026, 3, 13), flat)]
    for variant in modes:  # the flat price, and its modes, since 2026-03-13; a cheaper batch is announced for later
        variant.constraint = from_day(2026, 3, 13)
    modes.insert(
        0, SimpleNamespace(when={"processing": "batch"}, prices=prices(input_mtok="1", output_mtok="5"), constraint=from_day(2999, 1, 1))
    )
    opal = SimpleNamespace(id="opal-2", context_window=1_000_000, prices=dated, price_variants=modes)
    usual, peak = prices(input_mtok="0.66", output_mtok="1.98"), prices(input_mtok="1.32", output_mtok="3.96")
    east = SimpleNamespace(id="east-4", context_window=None, price_variants=None, prices=[row(None, usual), row(hours(9, 11), peak)])
    stepped = prices(input_mtok=tiered("1", 199_999, "2"), output_mtok=tiered("2", 199_999, "4"), cache_write_mtok="1.25")
    grok = SimpleNamespace(id="grok", context_window=None, price_variants=None, prices=stepped)
    voice = SimpleNamespace(id="voice", context_window=None, price_variants=None, prices=prices(audio_hours="1"))
    yield SimpleNamespace(id="opal", models=[opal, voice])
    yield SimpleNamespace(id="east", models=[east])
    yield SimpleNamespace(id="x-ai", models=[grok])


def test_genai_prices__rates_tiers_and_dates() -> None:
    found = genai.sheets_of(providers(), "genai-prices 0")
    first, second, east, grok = found.sheets
    assert (first.as_of, first.flags, first.modes) == ("undated", ("until 2026-03-13",), ())
    [tier] = first.tiers
    assert close(tier.rates.output, 37.5) and close(tier.rates.cache_read, 0.5)
    assert [round(write.rate / MTOK, 9) for write in tier.rates.cache_writes] == [12.5, 10]
    assert (second.as_of, second.tiers, [write.ttl_s for write in second.rates.cache_writes]) == ("2026-03-13", (), [300, 3600])
    assert [mode.name for mode in second.modes] == ["batch", "fast"], "priority and fast are one"
    assert close(second.modes[0].rates.cache_read, 0.5), "what a variant does not restate stays"
    [window] = east.hours
    assert (window.start_s, window.end_s) == (3600, 3600 * 3 + 1800), "in UTC"
    assert grok.tiers[0].above == 199_999
    assert grok.rates.cache_writes[0].ttl_s is None, "without one of an hour the write's time is not stated"
    assert "1 models without prices of tokens" in found.notes[0]


PUBLISHED = [
    {"id": "alpha", "models": [
        {"id": "large", "context_window": 400000,
         "prices": {"input_mtok": {"base": 2, "tiers": [{"start": 200000, "price": 4}]}, "output_mtok": 12}},
    ]},
    {"id": "beta", "models": [{"id": "chat", "prices": [
        {"constraint": {"start_date": "2025-09-05"}, "prices": {"input_mtok": 0.28, "cache_read_mtok": 0.028, "output_mtok": 0.42}},
        {"constraint": {"start_time": "16:30:00Z", "end_time": "00:30:00Z"}, "prices": {"input_mtok": 0.14, "output_mtok": 0.21}},
    ]}]},
]  # fmt: skip


def test_genai_prices__the_published_file_is_read_without_the_package(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_text(json.dumps(PUBLISHED), encoding="utf-8")
    large, chat = (find(name, read_sheets(path).sheets) for name in ("large", "chat"))
    assert (float(large.rates.input), float(large.rates.output)) == pytest.approx((2e-6, 12e-6))
    assert close(chat.rates.cache_read, 0.028) and "2025-09-05" in str(chat.as_of)
    path.write_text(json.dumps([{"id": "alpha", "models": [{"id": "x", "prices": {"input_mtok": "two"}}]}]), encoding="utf-8")
    with pytest.raises(BadFile, match=r"genai-prices|two"):
        read_sheets(path)


def test_genai_prices__optional_dependency(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "genai_prices.data", None)
    with pytest.raises(HeadwayError, match=r"headway\[prices\]"):
        genai.read_genai.__wrapped__()  # whatever was read before


# -- what ships, names, histories -----------------------------------------------------------------------------------------------


def test_sheets__shipped_ones_are_sourced_and_dated() -> None:
    every = sheets()
    assert len(newest(every)) >= 45
    assert len({made.model for made in every}) >= 30
    for made in every:
        assert made.source and made.as_of != "undated", made.model
        assert 0 < made.rates.input <= made.rates.output, made.model


@pytest.mark.parametrize(
    ("name", "input_rate", "output_rate"),
    [
        ("claude-opus-4.6", 5, 25),
        ("gemini-3.1-pro", 2, 12),
        ("gpt-5.4", 2.5, 15),
        ("deepseek-v4-pro", 0.66, 1.98),
        ("Claude_Haiku 5.5", 0.1, 0.5),
    ],
)
def test_sheets__published_rates(name: str, input_rate: float, output_rate: float) -> None:
    made = sheet(name)
    assert close(made.rates.input, input_rate) and close(made.rates.output, output_rate)


def test_sheets__published_context_tiers_and_modes() -> None:
    old, gemini, haiku = sheet("claude-opus-4.6@2026-03-12"), sheet("gemini-3.1-pro"), sheet("claude-haiku-5.5")
    assert old.as_of == "2026-02" and close(old.tiers[0].rates.output, 37.5) and close(old.modes[0].tiers[0].rates.output, 225)
    assert sheet("claude-opus-4.6@2026-03-13").tiers == ()
    assert (gemini.tiers[0].above, round(gemini.tiers[0].rates.input / gemini.rates.input, 9)) == (200_000, 2)
    assert gemini.tiers[0].rates.output / gemini.rates.output == pytest.approx(1.5)
    assert haiku.tiers[0].rates.output / haiku.rates.output == pytest.approx(5)
    assert [tier.above for tier in sheet("qwen3-coder-plus").tiers] == [32_000, 128_000, 256_000]
    assert sheet("gpt-5.6").model == "gpt-5.6-sol"
    assert sheet("claude-opus").model == "claude-opus-5.5", "the newest of the family"


def test_sheet__unknown_and_ambiguous_names() -> None:
    with pytest.raises(UnknownName, match="did you mean claude-opus"):
        sheet("cluade-opus")
    with pytest.raises(AmbiguousSheet, match="groq/gpt-oss-120b"):
        sheet("gpt-oss-120b")
    with pytest.raises(UnknownName, match="the first is of 2026-02"):
        sheet("claude-opus-4.6@2025")
    assert sheet("groq/gpt-oss-120b").provider == "groq"
    assert sheet("deepseek-v3").provider == "deepseek", "its maker, of several that sell it"


def test_sheet__model_in_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps(LITELLM), "prices.json")
    assert [made.model for made in read(f"{path}:opal-2").sheets] == ["opal-2"]
    assert len(read(str(path)).sheets) == 4


def test_sheet__newest_date_not_in_the_future() -> None:
    def of(date: str) -> PriceSheet:
        return sheets_of({"currency": "USD", "as_of": date, "model": "m", "input": 1, "output": 2}, "p")[0]

    assert find("m", [of("2020"), of("2999-01"), of("2021")]).as_of == "2021"
    assert find("m", [of("2999")]).as_of == "2999"
    assert version(of("2020")) == ()


def test_price_history__changes_and_multiples() -> None:
    rows = {(made.model, made.as_of): made for made in history([made for made in sheets() if made.provider == "anthropic"])}
    first, flat = rows["claude-opus-4.6", "2026-02"], rows["claude-opus-4.6", "2026-03-13"]
    assert (first.changed, first.step_output_multiple, first.fast_multiple) == ("", pytest.approx(1.5), pytest.approx(6))
    assert first.output_multiple == pytest.approx(5) and first.cached_multiple == pytest.approx(0.1)
    assert (first.write_multiple, first.write_long_multiple) == (pytest.approx(1.25), pytest.approx(2))
    assert flat.changed == "no step at 200k any more; batch comes at 0.5x" and flat.step_above is None
    assert "fast 6x to 2x" in rows["claude-opus-4.8", "2026-06"].changed
    assert "input $5 to $4" in rows["claude-opus-5.5", "2026-10"].changed
    assert "cached 0.1x to 0.05x of input" in rows["claude-opus-5.5", "2026-10"].changed
    deepseek = {made.model: made for made in history([made for made in sheets() if made.provider == "deepseek"])}
    assert deepseek["deepseek-v4-pro"].hours_multiple == pytest.approx(2)
    assert deepseek["deepseek-v3"].changed == "", "read later, but no follower of v3.2"


def test_list__sheets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "sheets", "-o", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {"name", "as_of", "input_rate", "source"} <= rows[0].keys()
    assert len(rows) == len(sheets())


def test_price_history__printed_plotted_and_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["price", "--history", "anthropic", "--plot", str(tmp_path / "prices.svg")]) == 0
    text = capsys.readouterr().out
    assert text.startswith("11 price sheets of 8 models, 2026-02 to 2026-11-26; output 5x of input")
    assert "fast modes 2x to 6x of standard" in text
    assert (tmp_path / "prices.svg").stat().st_size > 10_000
    assert main(["price", "--history", "anthropic", "-o", "json", "--explain", "cached_multiple"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert all(column["doc"] for column in told["columns"].values())
    assert told["rows"][0]["step_above"] == 200_000
    assert main(["price", "--history", "antropic"]) == 2
    assert "did you mean anthropic" in capsys.readouterr().err


def test_price_history__hours_multiple(tmp_path: Path) -> None:
    made = one(written(tmp_path, FLAT + 'time_of_day = [{ utc = "16:30-00:30", ratio = 0.5 }]\n'))
    assert history([made])[0].hours_multiple == pytest.approx(0.5)

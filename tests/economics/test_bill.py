"""Bills: computed by hand, a published day, the cliff rule, hours that wrap, caches by block ids and by conversation, properties."""

from __future__ import annotations

import contextlib
import io
import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.cli.main import main
from headway.core.formula import anonymous, leaves, replay
from headway.core.quantity import Sourced
from headway.core.trace import record
from headway.core.units import show
from headway.economics.bill import (
    ANY,
    AUTOMATIC,
    FIRST,
    LAST,
    OFF,
    PRICED,
    RECORDED,
    BillCalculator,
    BilledOption,
    BillingOption,
    BlockPrefixes,
    ConversationPrefixes,
    compare,
    modes_of,
    requests_of,
    requests_of_totals,
    ttls_of,
    ways_of,
)
from headway.economics.questions import Bill
from headway.economics.sheets.catalogue import sheet
from headway.economics.sheets.schema import sheets_of
from headway.economics.sheets.sheet import PriceSheet
from headway.laws.economics.cost import break_even_reads, whole_reads
from headway.simulation.hit_rates import idle_after, idle_before, leading, reuse
from headway.simulation.traffic.requests import Traffic
from support.command import Cli

MTOK = 1e-6


def own(**more: Any) -> PriceSheet:
    about = {"currency": "USD", "as_of": "2026-11", "model": "m", "provider": "p"}
    given = {"input": 4, "output": 20, "cache_read": 0.4, "cache_write": {"5min": 5, "1h": 8}}
    return sheets_of({**about, **(more if "rates" in more else given | more)}, "own.toml")[0]


def way(made: PriceSheet, ttl: float | None = None, mode: str = "standard", layout: str = ANY) -> BillingOption:
    caching = OFF if ttl is None else PRICED if made.rates.cache_writes else AUTOMATIC
    return BillingOption(sheet=made, mode=mode, ttl_s=ttl, caching=caching, layout=layout)


def billed(traffic: Traffic, chosen: BillingOption, shared: int = 0, start_s: float = 0.0) -> BilledOption:
    return BillCalculator(requests=requests_of(traffic, "test", shared), start_s=start_s).bill(chosen)


def parts(bill: BilledOption) -> tuple[float, ...]:
    return tuple(float(part) for part in (bill.usd_input, bill.usd_cached, bill.usd_written, bill.usd_output))


# -- by hand --------------------------------------------------------------------------------------------------------------------


def test_bill__shared_prefix_by_hand() -> None:
    """Three requests of 1,000 + 200 tokens and 100 of answer, a minute and ten minutes apart: one write, one read, one write again."""
    traffic = Traffic.of([0, 60, 660], 1200, 100)
    bill = billed(traffic, way(own(), 300.0, layout=FIRST), shared=1000)
    assert (bill.cached_tokens, bill.written_tokens, bill.prompt_tokens, bill.output_tokens) == (1000, 2000, 3600, 300)
    assert parts(bill) == pytest.approx((600 * 4 * MTOK, 1000 * 0.4 * MTOK, 2000 * 5 * MTOK, 300 * 20 * MTOK))
    assert bill.usd == pytest.approx(sum(parts(bill)))
    assert bill.usd_storage is None
    long = billed(traffic, way(own(), 3600.0, layout=FIRST), shared=1000)
    assert (long.cached_tokens, long.written_tokens) == (2000, 1000)
    assert parts(long)[2] == pytest.approx(1000 * 8 * MTOK)
    plain = billed(traffic, way(own()), shared=1000)
    assert parts(plain) == pytest.approx((3600 * 4 * MTOK, 0, 0, 300 * 20 * MTOK))


def test_cache_ttl__restarts_at_each_hit() -> None:
    traffic = Traffic.of([0, 250, 500, 750], 1000, 1)
    assert billed(traffic, way(own(), 300.0, layout=FIRST), shared=1000).cached_tokens == 3000
    assert billed(traffic, way(own(), 249.0, layout=FIRST), shared=1000).cached_tokens == 0
    assert billed(traffic, way(own(), 250.0, layout=FIRST), shared=1000).cached_tokens == 3000, "kept to the last second"


def test_bill__conversation_by_hand() -> None:
    """Prompts 1,000, then 1,500, then 2,200 of one talk: each turn reads the last prompt and writes what is new."""
    talk = Traffic.of([0, 100, 200], [1000, 1500, 2200], 100, conversation=[0, 0, 0])
    bill = billed(talk, way(own(), 300.0, layout=FIRST))
    assert (bill.cached_tokens, bill.written_tokens) == (1000 + 1500, 1000 + 500 + 700)
    two = Traffic.of([0, 1, 100, 101], [1000, 1000, 1500, 1500], 100, conversation=[0, 1, 0, 1])
    assert billed(two, way(own(), 300.0, layout=FIRST), shared=400).cached_tokens == 0 + 400 + 1000 + 1000
    last = billed(two, way(own(), 300.0, layout=LAST), shared=400)
    assert last.cached_tokens == 600 + 600, "what is shared last is never at the beginning of another prompt"
    assert last.written_tokens == 600 + 600 + 500 + 500 and last.usd_input == pytest.approx(4 * 400 * 4 * MTOK)


def test_bill__blocks_by_hand() -> None:
    """Two blocks of 512 are found; the third prompt's last block is part full."""
    traffic = Traffic.of(
        [0, 10, 400], [1200, 1100, 1100], 50, blocks=[1, 2, 3, 1, 2, 4, 1, 2, 4], block_start=[0, 3, 6, 9], block_tokens=512
    )
    bill = billed(traffic, way(own(), 300.0, layout=RECORDED))
    assert (bill.cached_tokens, bill.written_tokens) == (1024, 1200 + 76 + 1100)
    assert billed(traffic, way(own(), 3600.0, layout=RECORDED)).cached_tokens == 1024 + 1100


def test_bill__published_day_of_deepseek() -> None:
    """342 B hits at $0.14, 266 B misses at $0.55, 168 B out at $2.19: $562,100, which DeepSeek states as $562,027."""
    day = requests_of_totals(608e9, 342e9, 168e9, "day 6")
    bill = BillCalculator(requests=day).bill(way(sheet("deepseek-r1@2025-02-28"), 300.0, layout=RECORDED))
    assert bill.usd == pytest.approx(562_100, abs=0.5)
    assert bill.usd == pytest.approx(562_027, rel=2e-4)
    assert parts(bill) == pytest.approx((146_300, 47_880, 0, 367_920))


def test_min_prefix__shorter_is_not_cached() -> None:
    traffic = Traffic.of([0, 1], 1500, 1)
    assert billed(traffic, way(own(min_prefix=1024), 300.0, layout=FIRST), shared=1024).cached_tokens == 1024
    short = billed(traffic, way(own(min_prefix=1025), 300.0, layout=FIRST), shared=1024)
    assert (short.cached_tokens, short.written_tokens) == (0, 0)


@pytest.mark.parametrize("name", ["claude-opus-4.6", "claude-opus-4.8", "claude-opus-5", "claude-sonnet-4.5", "gpt-6-astra"])
def test_min_prefix__of_the_catalogue_is_kept(name: str, cli: Cli) -> None:
    """A shared prefix one token below the provider's shortest is never billed as cached; at the shortest it is, and a note says why."""
    least = int(sheet(name).min_prefix or 0)
    published = {"claude-opus-4.6": 4096, "claude-opus-4.8": 1024, "claude-opus-5": 512, "claude-sonnet-4.5": 1024, "gpt-6-astra": 1024}
    assert least == published[name]
    for shared, caches in ((least - 1, False), (least, True)):
        words = f"bill --sheet {name} --requests 50 --prompt {least + 2000} --shared {shared} --output 10 --rate 2/min --cache 5min,1h"
        answer = cli.json(words)
        assert any(row["cached_tokens"] > 0 for row in answer["rows"]) == caches, (name, shared)
        assert any("caches no prefix below" in note for note in answer["notes"]) == (not caches)


def test_min_prefix__a_sheet_without_one_says_so(cli: Cli) -> None:
    words = "bill --sheet claude-fable-5.2 --requests 50 --prompt 3k --shared {} --output 10 --rate 2/min"
    for shared, noted in (("2k", True), ("0", False)):
        assert any(note.startswith("assumed: a prefix of any length") for note in cli.json(words.format(shared))["notes"]) == noted


def test_sentence__tokens_per_request(cli: Cli) -> None:
    """Conversations grow: what was typed as 60k is 10 times as much a request, and the first sentence says so."""
    for words in ("--prompt 3k --output 100", "--prompt 60k --turns 20,30s --output 500"):
        answer = cli.json(f"bill --sheet gemini-3.1-pro --requests 400 --rate 2/min --seed 1 {words}")
        row = answer["rows"][0]
        mean = show(row["prompt_tokens"] / 400, "token")
        assert f"{mean} tokens in" in answer["answer"] and len(answer["answer"].split()) <= 30


def test_usd_storage__paid_for_the_hours_held() -> None:
    """1,000 tokens used at 0 s and 100 s, kept for 300 s after each use: 400 s in all."""
    made = own(rates={"input": 2, "output": 12, "cache_read": 0.2, "cache_write": {"5min": 2}, "storage_per_mtok_h": 4.5})
    bill = billed(Traffic.of([0, 100], 1000, 1), way(made, 300.0, layout=FIRST), shared=1000)
    assert bill.usd_storage == pytest.approx(1000 * 400 / 3600 * 4.5 * MTOK)
    blocks = Traffic.of([0, 100], 1000, 1, blocks=[7, 7], block_start=[0, 1, 2], block_tokens=1000)
    assert billed(blocks, way(made, 300.0, layout=RECORDED)).usd_storage == pytest.approx(bill.usd_storage)


# -- tiers, hours, modes --------------------------------------------------------------------------------------------------------


def test_context_tier__whole_request_at_the_higher_rate_above() -> None:
    gemini = sheet("gemini-3.1-pro")
    at = billed(Traffic.of([0], 200_000, 1000), way(gemini))
    above = billed(Traffic.of([0], 200_001, 1000), way(gemini))
    assert at.usd == pytest.approx(200_000 * 2e-6 + 1000 * 12e-6)
    assert above.usd == pytest.approx(200_001 * 4e-6 + 1000 * 18e-6), "the whole request, not what is beyond"


def test_context_tier__every_step_of_a_ladder() -> None:
    made = sheet("qwen3-coder-plus")
    traffic = Traffic.of([0, 1, 2, 3], [300_000, 32_000, 32_001, 128_001], 10)
    expected = 300_000 * 6 + 10 * 60 + 32_000 * 1 + 10 * 5 + 32_001 * 1.8 + 10 * 9 + 128_001 * 3 + 10 * 15
    assert billed(traffic, way(made)).usd == pytest.approx(expected * MTOK)


def test_context_tier__cached_tokens_count() -> None:
    made = own(tiers=[{"above_tokens": 1000, "multiplier": 2}])
    bill = billed(Traffic.of([0, 1], 1100, 1), way(made, 300.0, layout=FIRST), shared=1100)
    assert parts(bill) == pytest.approx((0, 1100 * 0.8 * MTOK, 1100 * 10 * MTOK, 2 * 40 * MTOK))


def test_time_of_day__wraps_over_midnight() -> None:
    """Off-peak from 16:30 to 00:30 at half: requests at 16:29:59, 16:30, 00:29:59 and 00:30 of the next day."""
    made = own(time_of_day=[{"utc": "16:30-00:30", "ratio": 0.5}])
    start = 16.5 * 3600 - 1
    traffic = Traffic.of([0, 1, 8 * 3600, 8 * 3600 + 1], 1000, 100)
    bill = billed(traffic, way(made), start_s=start)
    assert bill.usd == pytest.approx((2 + 2 * 0.5) * (1000 * 4 + 100 * 20) * MTOK)
    tomorrow = billed(Traffic.of([0, 86400], 1000, 100), way(made), start_s=start + 1)
    assert tomorrow.usd == pytest.approx(2 * 0.5 * 6000 * MTOK)


def test_time_of_day__several_windows() -> None:
    """Two windows of DeepSeek's kind in one day: 7 of 24 requests at twice the price."""
    made = own(time_of_day=[{"utc": "01:00-04:00", "ratio": 2}, {"utc": "06:00-10:00", "ratio": 2}])
    bill = billed(Traffic.of(np.arange(24) * 3600.0, 1000, 100), way(made))
    assert bill.usd == pytest.approx((17 + 7 * 2) * 6000 * MTOK)


def test_mode__not_changed_by_time_of_day() -> None:
    made = own(
        modes={"batch": {"ratio": 0.5}}, tiers=[{"above_tokens": 2000, "multiplier": 2}], time_of_day=[{"utc": "00:00-12:00", "ratio": 3}]
    )
    bill = billed(Traffic.of([0, 0], [1000, 3000], 100), way(made, mode="batch"))
    assert bill.usd == pytest.approx((1000 * 2 + 100 * 10 + 3000 * 4 + 100 * 20) * MTOK)


def test_price_sheet__modes_ttls_and_ways_for_sale() -> None:
    assert modes_of(sheet("claude-opus")) == ("standard", "batch", "fast")
    assert ttls_of(sheet("claude-opus").rates) == (300, 3600)
    assert ttls_of(sheet("deepseek-v3").rates) == (300,) and ttls_of(sheet("together/deepseek-v3").rates) == ()
    sold = list(ways_of(sheet("gpt-5.6-sol"), ("standard",), (), (FIRST,)))
    assert [(one.ttl_s, one.caching) for one in sold] == [(None, OFF), (300, PRICED), (43200, PRICED)]
    assert [one.ttl_s for one in ways_of(sheet("gpt-5.6-sol"), ("standard",), (3600.0, None), (FIRST,))] == [None]


def test_bill__beyond_the_context_limit_is_never_cheapest() -> None:
    traffic = Traffic.of([0, 1], [1000, 70_000], 100)
    biller = BillCalculator(requests=requests_of(traffic, "test"))
    found = compare([biller.bill(way(sheet(name))) for name in ("claude-opus-4.6", "deepseek-v3")])
    assert [one.bill.way.sheet.model for one in found] == ["claude-opus-4.6", "deepseek-v3"]
    assert (found[0].over_cheapest, found[1].bill.too_long) == (1, 1)


# -- break-even -----------------------------------------------------------------------------------------------------------------


def test_break_even_reads__claim_ap_17() -> None:
    """Claim AP-17: 0.28 of a read for 5 minutes, so one; 1.11 for an hour, so two."""
    assert break_even_reads(1.25, 0.1) == pytest.approx(0.2778, abs=1e-4) and whole_reads(break_even_reads(1.25, 0.1)) == 1
    assert break_even_reads(2.0, 0.1) == pytest.approx(1.1111, abs=1e-4) and whole_reads(break_even_reads(2.0, 0.1)) == 2


@pytest.mark.parametrize(("ttl", "pays_from"), [(300.0, 1), (3600.0, 2)])
def test_break_even_reads__bills_cross_there(ttl: float, pays_from: int) -> None:
    made = sheet("claude-opus-4.6")
    for reads in range(5):
        traffic = Traffic.of(np.arange(reads + 1) * 10.0, 5000, 10)
        cached, plain = (billed(traffic, way(made, one, layout=FIRST), shared=5000) for one in (ttl, None))
        assert (cached.usd < plain.usd) == (reads >= pays_from), reads
        assert reads == 0 or cached.reads_per_write == reads


# -- caches of blocks, against the replay ---------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(0, 8), min_size=0, max_size=5, unique=True), min_size=1, max_size=12), st.integers(0, 99))
@settings(max_examples=60)
def test_idle_before__equals_ages_of_a_replayed_cache(prompts: list[list[int]], seed: int) -> None:
    times = np.sort(np.random.default_rng(seed).uniform(0, 100, len(prompts)))
    blocks, starts = np.array([one for prompt in prompts for one in prompt], np.int64), np.cumsum([0, *map(len, prompts)])
    request = np.repeat(np.arange(len(prompts)), np.diff(starts))
    before = idle_before(blocks, request, times)
    age = reuse(blocks, starts, times, compile=False).age
    for ttl in (0.0, 5.0, 30.0, np.inf):
        expected = [int(np.sum((age[a:b] <= ttl) & np.isfinite(age[a:b]))) for a, b in pairwise(starts)]
        assert leading((before <= ttl) & np.isfinite(before), starts).tolist() == expected
    assert np.sum(np.isfinite(idle_after(blocks, request, times))) == np.sum(np.isfinite(before))


def test_bill__conversation_equals_its_blocks() -> None:
    """The same talk told by ids of 100-token blocks and by its turns."""
    talk = Traffic.of([0, 100, 200], [1000, 1500, 2200], 100, conversation=[0, 0, 0])
    ids = [np.arange(count) for count in (10, 15, 22)]
    blocks = Traffic.of([0, 100, 200], [1000, 1500, 2200], 100, blocks=np.concatenate(ids), block_start=[0, 10, 25, 47], block_tokens=100)
    one, other = billed(talk, way(own(), 300.0, layout=FIRST)), billed(blocks, way(own(), 300.0, layout=RECORDED))
    assert parts(one) == pytest.approx(parts(other))
    assert BlockPrefixes(blocks).token_seconds(300.0, RECORDED) == pytest.approx(ConversationPrefixes(talk, 0).token_seconds(300.0, FIRST))


# -- properties -----------------------------------------------------------------------------------------------------------------

LENGTHS = st.lists(
    st.tuples(st.floats(0, 4000), st.integers(1, 400_000), st.integers(1, 5000), st.integers(-1, 3)), min_size=1, max_size=15
)


def drawn(rows: list[tuple[float, int, int, int]]) -> Traffic:
    rows = sorted(rows)
    arrival, prompt, output, talk = zip(*rows, strict=True)
    return Traffic.of(arrival, prompt, output, conversation=talk)


@given(LENGTHS, st.integers(0, 100_000), st.sampled_from(["claude-opus-4.6@2026-02", "claude-haiku-5.5", "gpt-5.6-sol"]))
@settings(max_examples=60)
def test_bill__cache_costs_at_most_writing_everything(rows: list[tuple[float, int, int, int]], shared: int, name: str) -> None:
    traffic, made = drawn(rows), sheet(name)
    shared = min(shared, int(traffic.prompt.max()))
    for layout in (FIRST, LAST):
        for ttl in ttls_of(made.rates):
            bill = billed(traffic, way(made, ttl, layout=layout), shared)
            plain = billed(traffic, way(made), shared)
            multiple = max(write.rate for write in made.rates.cache_writes) / made.rates.input
            assert bill.usd <= (plain.usd - plain.usd_output) * multiple + plain.usd_output + 1e-12
            assert bill.cached_tokens + bill.written_tokens <= bill.prompt_tokens and min(parts(bill)) >= 0
            assert math.fsum(parts(bill)) == pytest.approx(float(bill.usd))


@given(LENGTHS, st.integers(0, 100_000))
@settings(max_examples=40)
def test_cache_ttl__longer_finds_no_less(rows: list[tuple[float, int, int, int]], shared: int) -> None:
    traffic, made = drawn(rows), sheet("deepseek-v4-pro")
    biller = BillCalculator(requests=requests_of(traffic, "drawn", min(shared, int(traffic.prompt.max()))))
    bills = [biller.bill(way(made, ttl, layout=FIRST)) for ttl in (1.0, 60.0, 3600.0)]
    assert bills[0].cached_tokens <= bills[1].cached_tokens <= bills[2].cached_tokens
    assert biller.bill(way(made)).usd >= bills[0].usd - 1e-15 >= bills[2].usd - 1e-12


# -- the verb -------------------------------------------------------------------------------------------------------------------


def asked(command: str) -> Any:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["bill", *command.split(), "-o", "json"]) == 0
    return json.loads(out.getvalue())


def said(command: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["bill", *command.split()]) == 0
    return out.getvalue()


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "requests.csv"
    path.write_text("arrival_s,prompt,output,conversation\n0,1000,100,a\n60,1500,100,a\n90,300000,100,b\n", encoding="utf-8")
    return path


def test_bill__first_line_answers(trace: Path) -> None:
    text = said(f"--sheet claude-opus-4.6,gemini-3.1-pro --requests {trace} --cache 5min,1h,none --mode standard")
    assert text.startswith("Cheapest is google/gemini-3.1-pro (standard, no cache): $1.21 for 3 requests")
    assert "; anthropic/claude-opus-4.6 (standard, 5min cache) costs" in text.splitlines()[0]


def test_bill__cache_without_hits_is_not_the_cheapest(tmp_path: Path) -> None:
    path = tmp_path / "requests.csv"
    path.write_text("arrival_s,prompt,output\n0,1000,100\n60,1500,100\n", encoding="utf-8")
    text = said(f"--sheet claude-opus-4.6 --requests {path} --mode standard --cache 5min,none")
    assert text.startswith("Cheapest is anthropic/claude-opus-4.6 (standard, no cache): ")
    assert "a cache changes nothing" in text and "does not say what prompts share" in text


def test_bill__help_without_a_subject(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bill", "--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: headway bill --sheet NAME,... [flags]")


def test_bill__trace_refuses_flags_of_generated_requests(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for flag in ("--seed 3", "--arrivals even", "--turns 4"):
        assert main(["bill", "--sheet", "claude-opus", "--requests", str(trace), *flag.split()]) == 2
        assert "a trace" in capsys.readouterr().err


def test_shared__note_counts_shorter_prompts() -> None:
    told = said("--sheet claude-opus --prompt uniform:1k,8k --shared 4k --output 10 --rate 1/s --requests 50")
    assert " of 50 prompts are shorter than --shared 4,000" in told
    assert "shorter" not in said("--sheet claude-opus --prompt uniform:4k,8k --shared 4k --output 10 --rate 1/s --requests 50")


def test_bill__columns_of_a_trace(trace: Path) -> None:
    found = asked(f"--sheet claude-opus-5 --requests {trace} --mode standard --cache 5min,none")
    assert all(column["doc"] for column in found["columns"].values()) and "context" in found["columns"]["fits"]["doc"]
    cached, plain = sorted(found["rows"], key=lambda row: row["cache"])
    assert (cached["cached_tokens"], cached["written_tokens"], plain["prompt_tokens"]) == (1000, 301_500, 302_500)
    assert plain["usd"] == pytest.approx((302_500 * 5 + 300 * 25) * MTOK)
    assert cached["saved_share"] == pytest.approx(1 - cached["usd"] / plain["usd"])
    assert min(cached["usd"], plain["usd"]) * max(cached["over_cheapest"], plain["over_cheapest"]) == pytest.approx(
        max(cached["usd"], plain["usd"])
    )


def test_bill__totals_and_described_workloads() -> None:
    [row] = asked("--sheet deepseek-r1@2025-02-28 --tokens input=608B,cached=342B,output=168B --cache 5min")["rows"]
    assert row["usd"] == pytest.approx(562_100, abs=0.5)
    found = asked("--sheet claude-opus --prompt 8k --shared 6k --output 500 --rate 2/min --requests 400 --turns 5,60s --mode standard")
    ways = {(row["cache"], row["prompt_layout"]) for row in found["rows"]}
    assert ways == {("none", "any"), *((cache, layout) for cache in ("5min", "1h") for layout in (FIRST, LAST))}
    first, last = (next(row for row in found["rows"] if (row["cache"], row["prompt_layout"]) == ("5min", one)) for one in (FIRST, LAST))
    assert first["usd"] < last["usd"]
    assert found == asked(
        "--sheet claude-opus --prompt 8k --shared 6k --output 500 --rate 2/min --requests 400 --turns 5,60s --mode standard"
    )


def test_explain__every_number_of_a_bill(trace: Path) -> None:
    sheets = "claude-opus-4.6@2026-02,deepseek-v3"
    answer = Bill.from_values({"sheet": sheets, "requests": str(trace), "cache": "5min,none"}).answer()
    for number, row in enumerate(answer.rows):
        for key, value in row.items():
            if isinstance(value, int | float) and not isinstance(value, bool) and key not in ("requests", "too_long", "speed_ratio"):
                tree = answer.rows.explain(key, number)
                assert anonymous(tree) == [], key
                assert float(replay(tree)) == pytest.approx(value, rel=1e-12, abs=0)


def test_bill__every_leaf_has_a_source() -> None:
    with record():
        bill = billed(Traffic.of([0, 60], 1200, 100), way(sheet("claude-opus-4.6"), 300.0, layout=FIRST), shared=1000)
    assert all(isinstance(leaf, Sourced) for _, leaf in leaves(bill.usd))


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("--sheet nobody --tokens input=1M", "no price sheet named 'nobody'"),
        ("--sheet claude-opus", "no requests"),
        ("--sheet claude-opus --prompt 1k", "--output"),
        ("--sheet claude-opus --requests absent.csv", "cannot be read"),
        ("--sheet claude-opus --tokens input=1M --prompt 3", "totals alone"),
        ("--sheet claude-opus --tokens input=1,cached=2", "among the input"),
        ("--sheet claude-opus --tokens cash=2", "input=608B"),
        ("--sheet claude-opus --tokens input=1M --cache 5", "with its unit"),
        ("--sheet claude-opus --tokens input=1M --cache -5min", "with its unit"),
        ("--sheet claude-opus --tokens input=1M --mode fats", "did you mean fast"),
        ("--sheet claude-opus --tokens input=1M --mode batch --cache 7min", "something that is sold"),
        ("--sheet claude-opus --tokens input=1M --start 25:00", "time of day"),
        ("--sheet claude-opus --prompt 1k --output 10 --rate 0", "--rate"),
        ("--sheet claude-opus --prompt 1k --output 10 --rate 1/s --turns 5,x", "--turns"),
        ("--sheet claude-opus --prompt 1k --output 10 --rate 1/s --shared 1.5", "--shared"),
        ("--sheet claude-opus --prompt 1k --output 10 --rate 1/s --requests 0", "--requests"),
        ("--sheet claude-opus --prompt 1k --output 10 --rate 1/s --requests -5", "whole number"),
        ("--sheet claude-opus --prompt 1k --shared 2k --output 10 --rate 1/s", "at most the longest prompt"),
    ],
)
def test_bill__wrong_input_is_one_line(command: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bill", *command.split()]) == 2
    line = capsys.readouterr().err
    assert told in line and line.count("\n") == 1

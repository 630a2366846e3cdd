"""A trace's cache: hits by time to live and room against a replay, what is held against a clock, the bill by hand, bad input."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from headway.cli.main import main
from headway.core.errors import HeadwayError
from headway.core.formula import anonymous, replay
from headway.simulation.hit_rates import curve, replay_hits
from headway.simulation.traffic.requests import Traffic
from support.cache_rows import listing

BLOCK = 512


def drawn(seed: int, requests: int = 300) -> Traffic:
    """Prompts that walk down a random tree of blocks, at random times; some of them part full."""
    rng = np.random.default_rng(seed)
    tree: dict[tuple[int, ...], int] = {}
    blocks, start, prompt = [], [0], []
    for _ in range(requests):
        path: tuple[int, ...] = ()
        for _ in range(int(rng.integers(1, 9))):
            path = (*path, int(rng.integers(0, 3)))
            blocks.append(tree.setdefault(path, len(tree)))
        start.append(len(blocks))
        prompt.append((start[-1] - start[-2]) * BLOCK)
    arrival = np.sort(rng.uniform(0, 1000, requests)).round(1)
    return Traffic.of(arrival - arrival[0], prompt, 10, blocks=blocks, block_start=start, block_tokens=BLOCK)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("ttl", "room"), [(5.0, None), (60.0, None), (math.inf, None), (math.inf, 40), (30.0, 25), (1e-9, 1000)])
def test_hit_tokens__equal_a_replay(seed: int, ttl: float, room: int | None) -> None:
    traffic = drawn(seed)
    hits = replay_hits(traffic.blocks, traffic.block_start, traffic.arrival, capacity_blocks=room, ttl_s=ttl, leaf_first=True)
    assert curve(traffic).hit_tokens(ttl, math.inf if room is None else room) == BLOCK * int(hits.sum())


@pytest.mark.parametrize("ttl", [3.0, 47.3, 5000.0, math.inf])
def test_held_tokens__equal_a_clock(ttl: float) -> None:
    """Blocks in the cache by looking at every moment at which something changes."""
    traffic = drawn(7, requests=80)
    found, end = curve(traffic), float(traffic.arrival[-1])
    uses: dict[int, list[float]] = {}
    for index, time in enumerate(traffic.arrival):
        for block in traffic.blocks[traffic.block_start[index] : traffic.block_start[index + 1]]:
            uses.setdefault(int(block), []).append(float(time))
    moments = sorted({*traffic.arrival.tolist(), *(time + ttl for times in uses.values() for time in times if time + ttl < end)})
    spans = list(zip(moments, [*moments[1:], end], strict=True))

    def held(at: float) -> int:
        return sum(any(time <= at and at <= time + ttl for time in times) for times in uses.values())

    area = sum((until - since) * held((since + until) / 2) for since, until in spans) * BLOCK
    assert found.held_token_s(ttl) == pytest.approx(area, rel=1e-9)
    assert found.held_peak(ttl) == max(held(moment) for moment in moments) * BLOCK


def test_hit_tokens__rise_with_ttl_and_capacity() -> None:
    """More time and more room never find less; for ever and without limit all that was there before is found."""
    found = curve(drawn(3))
    shares = [found.hit_tokens(ttl) for ttl in (1, 10, 100, 1000, math.inf)]
    assert shares == sorted(shares)
    rooms = [found.hit_tokens(math.inf, room) for room in (1, 10, 100, 1000, math.inf)]
    assert rooms == sorted(rooms) and rooms[-1] == shares[-1]
    assert found.hit_tokens(math.inf) == found.prompt_tokens - BLOCK * len(np.unique(drawn(3).blocks))
    assert found.held_token_s(math.inf) <= found.held_peak(math.inf) * found.span


# -- a trace by hand ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """Three prompts: a and b; a and b again and c, after 100 s; a and d, 1000 s after that. The last block of each is half full."""
    rows = [(0, 768, [1, 2]), (100, 1280, [1, 2, 3]), (1100, 768, [1, 4])]
    path = tmp_path / "trace.jsonl"
    lines = [{"timestamp": 1000 * time, "input_length": prompt, "output_length": 10, "hash_ids": ids} for time, prompt, ids in rows]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def test_found_and_held_tokens__by_hand(trace: str) -> None:
    rows = list(listing("--workload", trace, "--ttl", "60s,300s,never"))
    assert [row["ttl"] for row in rows] == [60.0, 300.0, None]
    assert {row["asked_tokens"] for row in rows} == {768 + 1280 + 768}
    assert [row["found_tokens"] for row in rows] == [0, 1024, 1024 + 512]
    # 5 min: 1 and 2 (its half block, then whole) from 0 to 400 s, 3 from 100 to 400, 1 and 4 begin at the end
    assert rows[1]["held_tokens_mean"] * 1100 == pytest.approx((512 + 256) * 100 + (512 + 512 + 256) * 300)
    assert rows[1]["held_tokens_peak"] == 512 + 256 + 256  # a block counts as it was first stored
    assert rows[2]["held_tokens_peak"] == 512 + 256 + 256 + 256


def test_cache_cost__holding_wear_and_recompute_by_hand(trace: str) -> None:
    """Holding, wear and computing in DDR5 and flash, from the prices as a person would multiply them."""
    asked = ("--kv-bytes", "1MB", "--on", "h100", "--set", "chip.price=$3.6/h", "--fresh", "1000/s", "--workload", trace, "--ttl", "300s")
    rows = {row["tier"]: row for row in listing(*asked, "--tier", "hbm,ddr,flash", "--capacity", "10GB")}
    left, again = 2816 - 1024, 1e-3 * 3.6 / 3600
    own_year = 1.2 / (4 * 365.25 * 86400)
    for row in rows.values():
        assert row["usd_computed"] == pytest.approx(left * again)
        assert row["usd_loaded"] == 0
    assert rows["hbm"]["usd_held"] == pytest.approx(10e9 / 80e9 * 3.6 / 3600 * 1100)
    assert rows["ddr"]["usd_held"] == pytest.approx(10e9 * 15e-9 * own_year * 1100)
    assert rows["ddr"]["usd_worn"] == 0
    assert rows["flash"]["usd_worn"] == pytest.approx(left * 1e6 * 10950 / 30.72e12 / (5 * 365.25), rel=1e-6)
    busy = 2816 * 1e6 / 1100 / 14e9 * 30.72e12  # what flash is bought for the sake of its bandwidth
    assert rows["flash"]["paid_room"] == pytest.approx(max(busy, 10e9))
    for row in rows.values():
        whole = row["usd_held"] + row["usd_worn"] + row["usd_loaded"] + row["usd_computed"]
        assert row["usd_prompts"] == pytest.approx(whole) == pytest.approx(row["usd_per_request_prompt"] * 3)
        assert row["usd_per_mtok_prompt"] == pytest.approx(whole / 2816e-6)
        assert row["saved_share"] == pytest.approx(1 - whole / (2816 * again))
    assert [name for name, row in rows.items() if row["best"]] == [min(rows, key=lambda name: rows[name]["usd_prompts"])]


def test_sheet_usd_per_mtok__only_for_ttls_for_sale(trace: str) -> None:
    rows = listing("--workload", trace, "--ttl", "60s,5min,1h", "--sheet", "claude-opus-4.6")
    usd = [row["sheet_usd_per_mtok"] for row in rows]
    assert usd[0] is None  # no such time is sold
    assert usd[1:] == pytest.approx([(1792 * 6.25 + 1024 * 0.5) / 2816, (1280 * 10 + 1536 * 0.5) / 2816])
    assert [row["sheet_saved_share"] for row in rows][1] == pytest.approx(1 - usd[1] / 5)


def test_usd_loaded__waiting_chips(trace: str) -> None:
    asked = ("--kv-bytes", "1MB", "--on", "h100", "--set", "chip.price=$3.6/h", "--fresh", "1000/s", "--workload", trace, "--ttl", "300s")
    (row,) = listing(*asked, "--tier", "flash", "--waiting", "0.5")
    assert row["usd_loaded"] == pytest.approx(1024 * 1e6 / 14e9 * 0.5 * 1e-3)


def test_usd_computed__mean_request_of_the_trace(trace: str) -> None:
    from headway.performance.workload import Load
    from headway.serving.plan.plan import plan

    (row,) = listing("llama-3.1-8b", "--on", "h100", "--workload", trace, "--ttl", "5min", "--tier", "ddr")
    own = plan("llama-3.1-8b", "h100", Load(prompt=2816 / 3, output=10), kv="bf16", elasticities=False).table.row(0)
    assert row["usd_computed"] == pytest.approx((2816 - 1024) * own["usd_per_mtok_in"] * 1e-6, rel=1e-9)


def test_found_tokens__turns_share_earlier_prompts_and_answers(tmp_path: Path) -> None:
    """The second turn of a conversation begins with the first one's 640 prompt tokens and 128 of the answer's 129: whole blocks of 64."""
    path = tmp_path / "talk.csv"
    path.write_text("arrival_s,prompt,output,conversation\n0,640,129,a\n10,500,5,b\n60,1000,10,a\n")
    (row,) = listing("--workload", str(path), "--ttl", "2min")
    assert row["found_tokens"] == 768


def test_explain__every_number_of_a_trace_cache(trace: str) -> None:
    rows = listing("llama-3.3-70b", "--on", "h100", "--fresh", "4k/s", "--workload", trace, "--ttl", "5min,never", "--tier", "flash,hbm",
                   "--sheet", "claude-opus-4.6")  # fmt: skip
    for number, row in enumerate(rows.plain):
        for key, value in row.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                tree = rows.explain(key, number)
                assert anonymous(tree) == [], key
                assert math.isclose(float(replay(tree)), value, rel_tol=1e-12), key


def test_trace_block__other_lengths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "small_blocks.jsonl"
    lines = [{"timestamp": 1000 * at, "input_length": 48, "output_length": 1, "hash_ids": [1, 2, 3 + at]} for at in range(3)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (row,) = listing("--workload", str(path), "--ttl", "never", "--trace-block", "16")
    assert row["found_tokens"] == 2 * 32
    assert main(["bill", "--sheet", "deepseek-v4-flash", "--requests", str(path), "--trace-block", "16", "-o", "json"]) == 0
    assert max(one["cached_tokens"] for one in json.loads(capsys.readouterr().out)["rows"]) == 2 * 32


def test_cache__first_line_states_that_no_cache_pays(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["cache", "--kv-bytes", "1MB", "--on", "h100", "--fresh", "1000k/s", "--workload", trace, "--ttl", "1h", "--tier", "hbm"]
    assert main(asked) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert "no cache pays" in first and "computing every prompt costs no more" in first


@pytest.mark.parametrize("how", ["text", "md", "csv", "json"])
def test_cache__formats_and_plot(trace: str, how: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    asked = ["cache", "llama-3.3-70b", "--on", "h100", "--fresh", "4k/s", "--workload", trace, "--ttl", "1min,1h", "--capacity", "1GB,10GB"]
    picture = tmp_path / "found.svg"
    pytest.importorskip("vl_convert")
    assert main([*asked, "-o", how, "--plot", str(picture)]) == 0
    out = capsys.readouterr().out
    assert picture.stat().st_size > 1000
    if how == "json":
        answer = json.loads(out)
        assert len(answer["rows"]) == 2 * 2 * 5 and answer["columns"]["hit_share"]["doc"]
        assert "computing every prompt" in answer["columns"]["saved_share"]["doc"]  # and not what a bill means by it
    if how == "text":
        assert "prompts cost least" in out.splitlines()[0]


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("--ttl", "0s"), "above 0 s"),
        (("--ttl", "nan"), "finite"),
        (("--ttl", "-5min"), "above 0 s"),
        (("--ttl", "5min,,1h"), "20ms"),
        (("--capacity", "1GB"), "--kv-bytes"),
        (("--kv-bytes", "1MB", "--capacity", "0GB"), "above 0 B"),
        (("--requests", "0"), "at least 1"),
        (("--hold", "5min"), "--ttl"),
        (("--reuse", "0.5"), "a trace without it"),
        (("--hit-tokens", "1/s"), "a trace without it"),
        (("--waiting", "0.1,0.2", "--kv-bytes", "1MB", "--on", "h100", "--fresh", "1/s"), "one value"),
        (("--requests", "1"), "do not all arrive at once"),
    ],
)
def test_cache_trace__wrong_input_is_one_line(trace: str, argv: tuple[str, ...], says: str) -> None:
    with pytest.raises(HeadwayError) as told:
        listing("--workload", trace, *argv)
    assert says in str(told.value) and "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("arrival_s,prompt,output\n0,10,5\n1,20,5\n", "without prefix information"),
        ('{"timestamp": 0, "input_length": 10, "output_length": 5}\n', "without prefix"),
        ("", "is empty"),
        ("hello\n", ""),
    ],
)
def test_trace__malformed_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "trace"
    path.write_text(text)
    with pytest.raises(HeadwayError) as told:
        listing("--workload", str(path))
    assert says in str(told.value) and "\n" not in str(told.value)


def test_hit_tokens__more_with_blocks_of_answers() -> None:
    """Drawn conversations: with the answers' blocks more is found than without."""
    from headway.simulation.traffic.distributions import parse_arrivals, parse_lengths
    from headway.simulation.traffic.generate import generate_conversations, parse_turns

    traffic = generate_conversations(
        parse_arrivals("poisson", 1.0), 1.0, parse_lengths("500", "prompt"), parse_lengths("300", "output"), parse_turns("5,60s"), 400, 0
    ).with_listed_blocks()
    without = Traffic.of(
        traffic.arrival, traffic.prompt, traffic.output, blocks=traffic.blocks, block_start=traffic.block_start, block_tokens=64
    )
    assert curve(traffic).answers and not curve(without).answers
    assert curve(traffic).hit_tokens(1e9) > curve(without).hit_tokens(1e9) > 0

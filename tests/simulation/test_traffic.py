"""Traffic: what is read from traces and what is refused, and what is drawn from distributions."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.core.errors import BadFile, BadValue
from headway.simulation.traffic.distributions import Arrivals, Constant, Lognormal, Recorded, Uniform, parse_arrivals, parse_lengths
from headway.simulation.traffic.generate import Think, generate, generate_conversations, generate_loop, parse_think, parse_turns
from headway.simulation.traffic.read import read_trace
from headway.simulation.traffic.requests import NO_CONVERSATION, Traffic
from support.work import calls

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
2023-11-16 18:16:46.6805901,879,55"""
BURST = """Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
5,a,1.0,ChatGPT,472,18,490,Conversation log
45,b,2.0,ChatGPT,1087,0,1087,Conversation log
118,a,2.0,GPT-4,417,276,693,Conversation log
120,,2.0,GPT-4,17,6,23,API log
"""
VIDUR = "arrived_at,num_prefill_tokens,num_decode_tokens,anything\n0.5,10,2,x\n0.75,30,4,\n"
PLAIN = "output,prompt,arrival_s\n7,100,0.0\n8,200,1.5\n"
COUNT = 200_000


def written(folder: Path, text: str | bytes, name: str = "trace.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def mooncake(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def request(ms: float, prompt: Any, output: Any, ids: Any) -> dict[str, Any]:
    return {"timestamp": ms, "input_length": prompt, "output_length": output, "hash_ids": ids}


# -- the record -----------------------------------------------------------------------------------------------------------------


def blocked() -> Traffic:
    return Traffic.of([0, 1.0, 4.0], [5, 3, 9], 2, blocks=[1, 2, 1, 1, 2, 7], block_start=[0, 2, 3, 6], block_tokens=4)


def test_traffic_part__starts_at_zero_and_keeps_its_blocks() -> None:
    part = blocked().part(1, 3)
    assert part.arrival.tolist() == [0.0, 3.0] and part.prompt.tolist() == [3, 9] and part.output.tolist() == [2, 2]
    assert part.blocks.tolist() == [1, 1, 2, 7] and part.block_start.tolist() == [0, 1, 4]
    assert part.conversation.tolist() == [NO_CONVERSATION] * 2
    head = blocked().head(2)
    assert head.arrival.tolist() == [0.0, 1.0] and head.blocks.tolist() == [1, 2, 1] and len(blocked().head(0)) == 0
    assert len(blocked().head(99)) == 3


def test_scale_rate__keeps_the_shape_of_arrivals() -> None:
    before = Traffic.of([0, 1.0, 4.0, 5.0], 5, 5)
    after = before.scale_rate(2.5)
    assert after.arrival * 2.5 == pytest.approx(before.arrival)
    assert after.mean_rate() == pytest.approx(2.5 * before.mean_rate())
    assert before.at_rate(40.0).mean_rate() == pytest.approx(40.0)
    assert blocked().scale_rate(3).blocks is not None and np.array_equal(after.prompt, before.prompt)
    for wrong in (0, -1, math.nan, math.inf):
        with pytest.raises(BadValue, match="above 0"):
            before.scale_rate(wrong)
        with pytest.raises(BadValue, match="above 0"):
            before.at_rate(wrong)
    with pytest.raises(BadValue, match="all arrive at once"):
        Traffic.of([0.0, 0.0], 5, 5).at_rate(1.0)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"arrival": [0, 2.0, 1.0]}, "request 2 before request 1"), ({"arrival": [-1.0, 2.0, 3.0]}, "none below 0"),
        ({"arrival": [0, math.nan, 1]}, "finite"), ({"prompt": [1, 0, 1]}, "prompt"), ({"output": [1, -2, 1]}, "output"),
        ({"prompt": [1, 2**40, 1]}, "prompt"), ({"prompt": [1, 1.5, 1]}, "whole"), ({"prompt": [1, 2]}, "2 values"),
        ({"conversation": [1]}, "1 values"), ({"block_start": [0, 1, 2, 3]}, "block_start"),
        ({"blocks": [1], "block_start": [0, 1, 1, 1]}, "block_tokens"),
        ({"blocks": [1], "block_start": [0, 2, 1, 1], "block_tokens": 4}, "block_start"),
        ({"arrival": [[0.0, 1.0, 2.0]]}, "dimension"),
    ],
)  # fmt: skip
def test_traffic__impossible_requests_are_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(BadValue, match=says):
        Traffic.of(**{"arrival": [0, 1.0, 2.0], "prompt": [1, 1, 1], "output": 1, **wrong})


# -- traces ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "arrival", "prompt", "output"),
    [
        (AZURE, "azure", [0.0, 4.314579, 60.0000001], [374, 396, 879], [44, 109, 55]),
        (AZURE.replace(",374", "+00:00,374").replace(",396", "+00:00,396").replace(",879", "+00:00,879"), "azure",
         [0.0, 4.314579, 60.0000001], [374, 396, 879], [44, 109, 55]),
        (AZURE.replace("18:16:46.6805901", "20:16:46.6805901+02:00"), "azure", [0.0, 4.314579, 60.0000001], [374, 396, 879], [44, 109, 55]),
        (BURST, "burstgpt", [0.0, 113.0, 115.0], [472, 417, 17], [18, 276, 6]),
        (VIDUR, "vidur", [0.0, 0.25], [10, 30], [2, 4]),
        (PLAIN, "plain", [0.0, 1.5], [100, 200], [7, 8]),
        (PLAIN.replace("\n", "\r\n").replace("output,", "\ufeffOutput,") + "\n\n", "plain", [0.0, 1.5], [100, 200], [7, 8]),
        (mooncake(request(0, 600, 5, [1, 2]), request(1500, 512, 6, [1])), "mooncake", [0.0, 1.5], [600, 512], [5, 6]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("packed", [False, True])
def test_read_trace__recognises_every_format(
    tmp_path: Path, text: str, name: str, arrival: list[float], prompt: list[int], output: list[int], packed: bool
) -> None:
    data = gzip.compress(text.encode()) if packed else text.encode()
    trace = read_trace(written(tmp_path, data))
    assert trace.format == name and trace.malformed_count == 0
    assert trace.traffic.arrival == pytest.approx(np.array(arrival), abs=1e-12)
    assert trace.traffic.prompt.tolist() == prompt and trace.traffic.output.tolist() == output


def test_read_trace__counts_failures_and_numbers_conversations(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, BURST))
    assert (trace.lines, trace.failed, trace.malformed_count) == (4, 1, 0)
    assert trace.traffic.conversation.tolist() == [0, 0, NO_CONVERSATION]
    assert trace.notes() == ["1 of 4 requests had failed when recorded (no output tokens); left out"]
    plain = read_trace(written(tmp_path, "arrival_s,prompt,output,conversation\n0,5,5,7\n1,5,5,x\n2,5,5,7\n"))
    assert plain.traffic.conversation.tolist() == [0, 1, 0]


def test_read_trace__block_ids_stay_with_their_requests(tmp_path: Path) -> None:
    rows = [request(20, 1025, 5, [1, 2, 3]), request(10, 512, 5, [9]), request(10, 5, 5, []), request(30, 600, 5, [1, 4])]
    trace = read_trace(written(tmp_path, mooncake(*rows)))
    assert trace.traffic.block_tokens == 512 and trace.sorted == 2
    assert trace.traffic.prompt.tolist() == [512, 5, 1025, 600]
    assert trace.traffic.blocks.tolist() == [9, 1, 2, 3, 1, 4] and trace.traffic.block_start.tolist() == [0, 1, 1, 4, 6]


def test_read_trace__sorts_arrivals_with_a_note(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, "arrival_s,prompt,output\n3,1,1\n1,2,1\n1,3,1\n2,4,1\n9,5,1\n"))
    assert trace.traffic.prompt.tolist() == [2, 3, 4, 1, 5] and trace.traffic.arrival.tolist() == [0.0, 0.0, 1.0, 2.0, 8.0]
    assert trace.notes() == ["3 of 5 requests stood after one that arrived later; sorted by arrival"]


BAD_LINES = {
    "x,10,10": "arrival_s: got 'x'", "nan,10,10": "finite", "inf,10,10": "finite", "1,0,10": "prompt: got 0", "1,-3,10": "prompt: got '-3'",
    "1,10,0": "output: got 0", "1,10,-1": "output: got '-1'", "1,1.5,10": "whole", "1,10": "2 cells", "1,,10": "prompt: got ''",
    "1,1e300,10": "whole tokens", "1,9999999999,10": "whole tokens", "1,10,ten": "output: got 'ten'", ",,": "arrival_s",
}  # fmt: skip


@pytest.mark.parametrize("bad", BAD_LINES)
def test_read_trace__malformed_csv_line_is_skipped_and_named(tmp_path: Path, bad: str) -> None:
    good = [f"{second},10,10" for second in range(99)]
    trace = read_trace(written(tmp_path, "\n".join(["arrival_s,prompt,output", *good[:50], bad, *good[50:]])))
    assert (trace.lines, trace.malformed_count, len(trace.traffic)) == (100, 1, 99)
    assert trace.malformed[0].line == 52 and BAD_LINES[bad] in trace.malformed[0].why
    assert trace.notes()[0].startswith("1 of 100 lines malformed (line 52: ")


ROWS = {  # by format: the first line, and a request at a second with a prompt and an answer
    "azure": ("TIMESTAMP,ContextTokens,GeneratedTokens\n", "2023-11-16 18:15:{:02d}.68,{},{}\n"),
    "burstgpt": ("Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n", "{},,1,m,{},{},9,c\n"),
    "vidur": ("arrived_at,num_prefill_tokens,num_decode_tokens,more\n", "{},{},{},1\n"),
    "plain": ("arrival_s,prompt,output\n", "{},{},{}\n"),
    "mooncake": ("", '{{"timestamp": {}e3, "input_length": {}, "output_length": {}, "hash_ids": []}}\n'),
}


@pytest.mark.parametrize("name", ROWS)
def test_read_trace__every_format_skips_and_names_malformed_lines(tmp_path: Path, name: str) -> None:
    """Unsorted arrivals, a prompt of 0, lengths below 0, a line that breaks off, a quote that is never closed, and words."""
    header, row = ROWS[name]
    lines = [row.format(second, 100 + second, 5) for second in range(50)]
    lines[7], lines[8] = lines[8], lines[7]
    bad = {20: row.format(20, 0, 5), 21: row.format(21, -3, 5), 22: row.format(22, 5, -1), 23: lines[23][:5] + "\n", 24: '"' + lines[24],
           25: "and so on\n", 49: lines[49][:5]}  # fmt: skip
    for at, text in bad.items():
        lines[at] = text
    path, first = written(tmp_path, header + "".join(lines)), 1 + bool(header)
    trace = read_trace(path, most_malformed=0.2)
    assert (trace.format, trace.lines, trace.sorted) == (name, 50, 1)
    assert [one.line for one in trace.malformed] == [first + at for at in bad]
    assert trace.traffic.prompt.tolist() == [100 + second for second in range(50) if second not in bad]
    with pytest.raises(BadFile, match=f"7 of 50 lines malformed .line {first + 20}: .*more than 0.05 of the lines, so not read") as caught:
        read_trace(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("block", "count"), [(16, 0), (512, 1)])
def test_read_trace__block_size_is_a_parameter(tmp_path: Path, block: int, count: int) -> None:
    lines = mooncake(*(request(second, 100, 5, [1]) for second in range(40)), request(50, 100, 5, list(range(7))))
    trace = read_trace(written(tmp_path, lines), block=block)
    assert trace.malformed_count == count and trace.traffic.block_tokens == block
    assert not count or "--trace-block" in trace.malformed[0].why


def test_read_trace__too_many_malformed_lines_are_an_error(tmp_path: Path) -> None:
    lines = ["arrival_s,prompt,output", *(f"{second},{0 if second % 10 == 3 else 10},10" for second in range(20_000))]
    path = written(tmp_path, "\n".join(lines))
    with pytest.raises(BadFile, match=r"2000 of 20000 lines malformed \(line 5: prompt: got 0.*; \.\.\.\); more than 0.05 of the lines"):
        read_trace(path)
    trace = read_trace(path, most_malformed=0.1)
    assert trace.malformed_count == 2000 and len(trace.traffic) == 18_000 and len(trace.malformed) == 20
    assert [one.line for one in trace.malformed] == sorted(one.line for one in trace.malformed)
    for share in (-0.1, 1.1, math.nan):
        with pytest.raises(BadValue):
            read_trace(path, most_malformed=share)


@pytest.mark.parametrize("bad", [
    "{", "[1]", "3", json.dumps(request(0, 0, 5, [])), json.dumps(request(0, 5, 0, [])), json.dumps(request(0, "5", 5, [])),
    json.dumps(request(0, 5.5, 5, [])), json.dumps(request(0, 5, 5, [1, 2])), json.dumps(request(0, 5, 5, ["a"])),
    json.dumps(request(0, 5, 5, 3)),
    json.dumps(request(math.nan, 5, 5, [])), json.dumps({"timestamp": 0}),
    json.dumps(request(0, 5, 5, [2**70])), json.dumps(request(0, True, 5, [])),
])  # fmt: skip
def test_read_trace__malformed_json_line_is_skipped_and_named(tmp_path: Path, bad: str) -> None:
    good = mooncake(*(request(second, 600, 5, [second, second + 1]) for second in range(40)))
    trace = read_trace(written(tmp_path, good + bad + "\n"))
    assert (trace.lines, trace.malformed_count, trace.malformed[0].line) == (41, 1, 41)
    with pytest.raises(BadFile, match="1 of 41 lines malformed"):
        read_trace(written(tmp_path, good + bad + "\n"), most_malformed=0.0)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"), (b"\n \n", "is empty"), (b"a,b,c\n1,2,3\n", "no known trace.*azure.*burstgpt.*vidur.*plain.*mooncake"),
        (b"arrival_s,prompt,output\n", "no request"),
        (BURST.replace("18,", "0,").replace("276,", "0,").replace(",6,", ",0,").encode(), "no request in 4 lines"),
        (gzip.compress(b"", mtime=0), "is empty"), (b"\x1f\x8bnot gzip", "gzip|Gzip|cannot be read"),
        (gzip.compress(b"arrival_s,prompt,output\n1,2,3\n" * 9, mtime=0)[:-9], "gzip"),
        (b"\xff\xfe\x00\x01" * 50, "no known trace"), (b'arrival_s,prompt,output\n1,"' + b"x" * 200_000 + b'",2\n', "is not CSV"),
        (b'{"timestamp": "x"}\n', "1 of 1 lines malformed"),
    ],
)  # fmt: skip
def test_read_trace__unknown_file_is_a_one_line_error(tmp_path: Path, data: bytes, says: str) -> None:
    with pytest.raises(BadFile, match=says) as error:
        read_trace(written(tmp_path, data))
    assert "\n" not in str(error.value) and len(str(error.value)) < 600


@pytest.mark.parametrize("name", [name for name in ROWS if name != "azure"])
def test_read_trace__arrival_in_another_unit_is_told_and_left_out(tmp_path: Path, name: str) -> None:
    """One of 50 arrivals, 23 s, is in milliseconds: the trace is that without its line."""
    header, row = ROWS[name]
    lines = [row.format(second, 100 + second, 5) for second in range(50)]
    lines[7], lines[8] = lines[8], lines[7]
    without = read_trace(written(tmp_path, header + "".join(lines[:23] + lines[24:])))
    lines[23] = row.format(23_000, 123, 5)
    trace = read_trace(written(tmp_path, header + "".join(lines)))
    assert [entry.line for entry in trace.malformed] == [24 + bool(header)] and "another unit" in trace.malformed[0].why
    assert trace.sorted == without.sorted == 1
    assert trace.traffic.arrival.tolist() == without.traffic.arrival.tolist()
    assert trace.traffic.prompt.tolist() == without.traffic.prompt.tolist()


def test_read_trace__missing_file_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(BadFile, match="cannot be read"):
            read_trace(path)


def test_read_trace__binary_bytes_are_a_malformed_line(tmp_path: Path) -> None:
    lines = b"arrival_s,prompt,output\n" + b"".join(b"%d,10,10\n" % second for second in range(60)) + b"\xff\xfe\x00,\x01,5\n"
    assert read_trace(written(tmp_path, lines)).malformed[0].line == 62


def test_read_trace__few_calls_per_line(tmp_path: Path) -> None:
    path = written(tmp_path, "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "2023-11-16 18:15:46.6805900,374,44\n" * COUNT)
    traces = []
    assert calls(lambda: traces.append(read_trace(path))) < 4 * COUNT  # bench/bench_read.py measures the time
    assert len(traces[0].traffic) == COUNT


# -- what is drawn --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "cv"), [("poisson", 1.0), ("even", 0.0), ("bursty:2.5", 2.5), ("bursty:0.3", 0.3)])
def test_parse_arrivals__rate_and_variation_as_specified(text: str, cv: float) -> None:
    gaps = np.diff(parse_arrivals(text, 40.0).draw(np.random.default_rng(1), COUNT))
    assert gaps.min() >= 0
    assert gaps.mean() == pytest.approx(1 / 40, rel=4 * max(cv, 1e-9) / math.sqrt(COUNT))
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.05, abs=1e-9)


def test_parse_arrivals__diurnal_follows_its_levels() -> None:
    times = parse_arrivals("diurnal:100s,1,0,3,4", 40.0).draw(np.random.default_rng(2), COUNT)
    assert COUNT / times[-1] == pytest.approx(40.0, rel=0.02)
    part = np.bincount((times % 100 // 25).astype(int), minlength=4) / COUNT
    assert part == pytest.approx(np.array([1, 0, 3, 4]) / 8, abs=0.01)
    inside = times[(times % 100 > 50) & (times % 100 < 75)]
    assert np.diff(inside)[np.diff(inside) < 25].mean() == pytest.approx(1 / (40 * 4 * 3 / 8), rel=0.03)  # at its own rate there


@pytest.mark.parametrize(
    ("text", "mean", "deviation"), [("lognormal:2k,1.2", 2000, 1.2), ("lognormal:400,0.5", 400, 0.5), ("lognormal:64,0", 64, 0)]
)
def test_parse_lengths__lognormal_mean_and_deviation(text: str, mean: float, deviation: float) -> None:
    drawn = parse_lengths(text, "--prompt").draw(np.random.default_rng(3), COUNT)
    spread = math.sqrt(math.expm1(deviation**2))
    assert drawn.mean() == pytest.approx(mean, rel=5 * spread / math.sqrt(COUNT) + 1e-12)
    assert np.median(drawn) == pytest.approx(mean * math.exp(-(deviation**2) / 2), rel=0.02)
    assert np.log(drawn).std() == pytest.approx(deviation, rel=0.02, abs=1e-12)
    assert drawn.min() >= 1


def test_parse_lengths__constant_and_uniform() -> None:
    rng = np.random.default_rng(4)
    assert parse_lengths("2k", "--prompt") == parse_lengths("constant:2000", "--prompt") == Constant(tokens=2000)
    assert set(Constant(tokens=7).draw(rng, 9)) == {7}
    drawn = parse_lengths("uniform:3,6", "--prompt").draw(rng, COUNT)
    assert np.bincount(drawn) / COUNT == pytest.approx([0, 0, 0, 0.25, 0.25, 0.25, 0.25], abs=0.01)


def test_parse_lengths__trace_keeps_prompt_and_output_paired(tmp_path: Path) -> None:
    path = written(tmp_path, "arrival_s,prompt,output\n" + "".join(f"{n},{n + 1},{2 * n + 5}\n" for n in range(50)))
    prompt, output = parse_lengths(f"trace:{path}", "--prompt"), parse_lengths(f"trace:{path}", "--output", answers=True)
    assert isinstance(prompt, Recorded)
    traffic = generate(parse_arrivals("poisson", 1.0), prompt, output, 5000, 1)
    assert np.array_equal(traffic.output, 2 * traffic.prompt + 3)
    assert np.bincount(traffic.prompt)[1:].min() > 50
    apart = generate(parse_arrivals("poisson", 1.0), prompt, Uniform(least=1, most=100), 5000, 1)
    assert abs(np.corrcoef(apart.prompt, apart.output)[0, 1]) < 0.05


def drawn(arrivals: Arrivals, count: int = 1000, seed: int = 1) -> Traffic:
    return generate(arrivals, Lognormal(mean=500, sigma=1.0), Lognormal(mean=200, sigma=1.0), count, seed)


def test_generate__seed_fixes_the_traffic_and_its_beginning() -> None:
    poisson = parse_arrivals("poisson", 40.0)
    one, again, longer, other = drawn(poisson), drawn(poisson), drawn(poisson, 5000), drawn(poisson, seed=2)
    for name in ("arrival", "prompt", "output"):
        assert np.array_equal(getattr(one, name), getattr(again, name))
        assert np.array_equal(getattr(one, name), getattr(longer, name)[:1000])
        assert not np.array_equal(getattr(one, name), getattr(other, name))
    faster = drawn(parse_arrivals("poisson", 80.0))
    assert np.array_equal(faster.prompt, one.prompt) and faster.arrival * 2 == pytest.approx(one.arrival)


def talk(count: int, turns: str = "5,60s,1k", seed: int = 1, rate: float = 40.0) -> Traffic:
    lengths = Lognormal(mean=500, sigma=1.0), Lognormal(mean=200, sigma=1.0)
    return generate_conversations(parse_arrivals("poisson", rate), rate, *lengths, parse_turns(turns), count, seed)


def test_conversation__each_prompt_starts_with_all_earlier_turns() -> None:
    traffic = talk(5000).with_listed_blocks()
    before: dict[int, int] = {}
    part_full = []
    for one in range(len(traffic)):
        blocks = traffic.blocks[traffic.block_start[one] : traffic.block_start[one + 1]].tolist()
        prompt, talked = int(traffic.prompt[one]), int(traffic.conversation[one])
        assert len(blocks) == len(set(blocks)) == -(-prompt // 64) and blocks[:15] == list(range(15))
        if talked in before:
            last = before[talked]
            full = int(traffic.prompt[last]) // 64
            assert prompt > traffic.prompt[last] + traffic.output[last]
            assert blocks[:full] == traffic.blocks[traffic.block_start[last] :][:full].tolist()
        else:
            assert talked == len(before) and prompt > 1000
        before[talked] = one
        part_full += blocks[-1:] if prompt % 64 else []
    assert len(set(part_full)) == len(part_full)
    of_one = {int(block): set() for block in traffic.blocks if block >= 15}
    for one in range(len(traffic)):
        for block in traffic.blocks[traffic.block_start[one] + 15 : traffic.block_start[one + 1]].tolist():
            of_one[block].add(int(traffic.conversation[one]))
    assert all(len(talks) == 1 for talks in of_one.values())


def test_conversation__rate_turns_and_gaps_as_specified() -> None:
    traffic = talk(60_000, "5,10s")
    assert traffic.part(20_000, 60_000).mean_rate() == pytest.approx(40.0, rel=0.03)
    order = np.lexsort((traffic.arrival, traffic.conversation))
    same = np.diff(traffic.conversation[order]) == 0
    whole = traffic.conversation[order][1:][same] < 8000  # conversations that began early enough to have ended
    assert np.diff(traffic.arrival[order])[same][whole].mean() == pytest.approx(10.0, rel=0.03)
    assert np.bincount(traffic.conversation)[:8000].mean() == pytest.approx(5.0, rel=0.05)
    for name in ("arrival", "prompt", "conversation", "output"):
        assert np.array_equal(getattr(talk(700), name), getattr(talk(3000), name)[:700])
    slow = talk(2000, "5,36000s")  # gaps far longer than the run: nearly all are first turns
    assert len(slow) == 2000 and len(set(slow.conversation.tolist())) > 1800
    assert slow.mean_rate() == pytest.approx(40 / 5, rel=0.1)


def test_generate_loop__users_ramp_and_think_times() -> None:
    loop = generate_loop(8, Think(mean=2.0, exponential=True), Constant(tokens=5), Constant(tokens=9), 20_000, 1, ramp=4.0)
    assert loop.users == 8 and len(loop.traffic) == len(loop.think) == 20_000
    assert loop.traffic.arrival[:8].tolist() == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5]
    assert loop.think.mean() == pytest.approx(2.0, rel=0.03) and loop.think.std() == pytest.approx(2.0, rel=0.05)
    assert set(Think(mean=1.5).draw(np.random.default_rng(1), 9)) == {1.5} and parse_think("2s") == Think(mean=2.0)
    assert generate_loop(8, Think(mean=0.0), Constant(tokens=5), Constant(tokens=9), 9, 1).traffic.arrival.tolist() == [0.0] * 9


@pytest.mark.parametrize("text", [
    "", "0", "1.5", "-3", "x", "lognormal", "lognormal:2k", "lognormal:2k,1,2", "lognormal:0,1", "lognormal:2k,-1", "lognormal:2k,99",
    "lognormal:nan,1", "uniform:5", "uniform:9,3", "uniform:0,3", "gauss:3,4", "constant:1,2", "2s", "1e12", "lognormal:2k,x", "constant:",
])  # fmt: skip
def test_parse_lengths__bad_text_is_an_error(text: str) -> None:
    with pytest.raises(BadValue, match=r"^--prompt: got "):
        parse_lengths(text, "--prompt")


@pytest.mark.parametrize("text", [
    "", "poison", "poisson:3", "bursty", "bursty:0", "bursty:-1", "bursty:nan", "bursty:1e9", "diurnal", "diurnal:24h", "diurnal:0s,1",
    "diurnal:24h,0,0", "diurnal:24h,-1,2", "diurnal:24h,x", "diurnal:5tokens,1",
])  # fmt: skip
def test_parse_arrivals__bad_text_is_an_error(text: str) -> None:
    with pytest.raises(BadValue, match=r"^--arrivals: got "):
        parse_arrivals(text, 1.0)


@pytest.mark.parametrize("text", ["", "5", "0.5,60s", "5,-1s", "5,60s,1.5", "5,60s,1k,2", "x,60s", "5,x"])
def test_parse_turns__bad_text_is_an_error(text: str) -> None:
    with pytest.raises(BadValue, match=r"^--turns: got "):
        parse_turns(text)


def test_generate__bad_values_name_their_flag(tmp_path: Path) -> None:
    poisson, five = parse_arrivals("poisson", 1.0), Constant(tokens=5)
    for text in ("", "-1s", "normal:2s", "exponential:x", "inf"):
        with pytest.raises(BadValue, match="--think"):
            parse_think(text)
    for rate in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(BadValue, match="--rate"):
            parse_arrivals("poisson", rate)
    for count, seed, says in ((0, 1, "--requests"), (10**12, 1, "--requests"), (5, -1, "--seed")):
        with pytest.raises(BadValue, match=says):
            generate(poisson, five, five, count, seed)
    for users, ramp, says in ((0, 0.0, "--users"), (5, -1.0, "ramp"), (5, math.nan, "ramp")):
        with pytest.raises(BadValue, match=says):
            generate_loop(users, Think(mean=1.0), five, five, 5, 1, ramp)
    with pytest.raises(BadFile, match="cannot be read"):
        parse_lengths(f"trace:{tmp_path}/none.csv", "--prompt")


# -- units of foreign files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [16, 64, 128, 256])
@pytest.mark.parametrize(("extra", "unit"), [({"chat_id": 3, "turn": 1}, 1.0), ({}, 1e-3)])
def test_read_trace__blocks_and_seconds_are_known_by_counts_and_keys(
    tmp_path: Path, tokens: int, extra: dict[str, int], unit: float
) -> None:
    prompts = [2000 + 37 * number for number in range(30)]
    lines = [
        {"timestamp": 7 * number, "input_length": prompt, "output_length": 5, "hash_ids": list(range(-(-prompt // tokens))), **extra}
        for number, prompt in enumerate(prompts)
    ]
    trace = read_trace(written(tmp_path, "".join(json.dumps(line) + "\n" for line in lines)))
    assert trace.traffic.block_tokens == tokens and trace.malformed_count == 0
    assert trace.traffic.arrival[-1] == pytest.approx(7 * 29 * unit)
    assert any("seconds" in note for note in trace.notes()) == (unit == 1.0)
    assert any(f"{tokens} tokens" in note for note in trace.notes())


def test_read_trace__fractions_of_a_millisecond_are_seconds(tmp_path: Path) -> None:
    lines = "".join(json.dumps({"timestamp": 1.37 * number, "input_length": 600, "output_length": 5}) + "\n" for number in range(20))
    assert read_trace(written(tmp_path, lines)).traffic.arrival[-1] == pytest.approx(1.37 * 19)


def test_read_trace__a_bad_line_among_blocks_keeps_the_ids_of_the_rest(tmp_path: Path) -> None:
    ids = [[n, n + 100] if n != 9 else [1, 2, 3] for n in range(30)]
    lines = [{"timestamp": n, "input_length": 600, "output_length": 5, "hash_ids": of_line} for n, of_line in enumerate(ids)]
    trace = read_trace(written(tmp_path, "".join(json.dumps(line) + "\n" for line in lines)))
    assert trace.malformed_count == 1 and trace.malformed[0].line == 10
    assert [int(block) for block in trace.traffic.blocks] == [block for of_line in ids if len(of_line) == 2 for block in of_line]

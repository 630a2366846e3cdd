"""Logs of engines' starts: what public logs say is read, what they say in another way is told, and a deployment's room becomes theirs."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from headway.core.errors import BadFile, BadValue
from headway.evidence.calibration.engine_logs import cells_of, observed_start
from headway.evidence.readers.engine_log import read
from headway.evidence.readers.files import RunFields, Unusable
from headway.performance.calibration.start import LoggedStart, logged_start
from support.command import Cli

LOGS = Path(__file__).parents[1] / "data" / "engine_logs"
H100 = RunFields(hardware="h100-sxm")


def start(name: str, user_input: RunFields) -> LoggedStart:
    """What the log of a deployment says of it."""
    log = read(LOGS / name)
    observations = observed_start(cells_of(log, user_input), f"mine:{name}", log.month)
    found = logged_start(observations, observations[0].key)
    assert found is not None
    return found


def test_vllm__room_layout_and_flags_as_its_lines_say() -> None:
    log = read(LOGS / "vllm_llama8b.log")
    assert (log.engine, log.version, log.model, log.tp, log.dp, log.sequences) == (
        "vLLM", "0.19.0", "meta-llama/Llama-3.1-8B-Instruct", 1, 1, 1024,
    )  # fmt: skip
    assert (log.utilization, log.context, log.fitting * log.context) == (0.95, 8192, 476016)  # more digits than 58.11 times 8,192
    assert not log.notes


def test_sglang__tokens_of_a_rank_and_the_limit_that_it_logs() -> None:
    log = read(LOGS / "sglang_qwen235b.log")
    assert (log.engine, log.month, log.model, log.weights, log.tp, log.ep) == ("SGLang", "2025-07", "Qwen3-235B-A22B-FP8", "fp8", 4, 1)
    assert (log.utilization, log.sequences, log.fitting * log.context) == (0.93, 2048, 367404)


def test_room__that_public_logs_found_is_near_the_laws() -> None:
    vllm, sglang = start("vllm_llama8b.log", H100), start("sglang_qwen235b.log", RunFields(hardware="h100-sxm", chips=4))
    assert vllm.room == pytest.approx(1, abs=0.05) and sglang.room == pytest.approx(1, abs=0.05)
    assert vllm.share == pytest.approx(0.95 / 0.9)


def changed(tmp_path: Path, *edits: tuple[str, str], name: str = "vllm_llama8b.log") -> Path:
    """A log with other text in it."""
    text = (LOGS / name).read_text(encoding="utf-8")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "start.log"
    path.write_text(text, encoding="utf-8")
    return path


def test_vllm__one_line_of_later_versions_and_the_line_of_the_first_engine(tmp_path: Path) -> None:
    one = " tokens, Maximum concurrency for 8,192 tokens per request: 58.11x"
    merged = changed(tmp_path, (" tokens\n", one + "\n"))
    assert read(merged).fitting * 8192 == 476016
    old = tmp_path / "old.log"
    old.write_text("# GPU blocks: 2048, # CPU blocks: 512\nMaximum concurrency for 4096 tokens per request: 8.00x\n", encoding="utf-8")
    assert read(old).fitting == 8


def test_ranks__the_fullest_counts_and_the_last_start_of_each(tmp_path: Path) -> None:
    path = tmp_path / "ranks.log"
    lines = [(0, 400, 48.83), (1, 500, 61.04), (0, 409, 49.93), (1, 450, 54.93)]
    path.write_text("".join(
        f"(EngineCore_DP{rank} pid=7) GPU KV cache size: {tokens},000 tokens\n"
        f"(EngineCore_DP{rank} pid=7) Maximum concurrency for 8,192 tokens per request: {most}x\n" for rank, tokens, most in lines
    ), encoding="utf-8")  # fmt: skip
    log = read(path)
    assert log.fitting == pytest.approx(409000 / 8192)
    assert log.notes == ("2 ranks, of which the fullest counts",)


def test_unknown__lines_and_formats_are_told_and_nothing_is_taken_from_them(tmp_path: Path) -> None:
    odd = changed(tmp_path, ("quantization=None", "quantization=novel4"), ("Available KV cache memory", "KV cache budget"))
    log = read(odd)
    assert log.weights == ""
    assert any("quantization novel4" in note for note in log.notes)
    assert any("line 5" in note and "KV cache budget" in note for note in log.notes)


@pytest.mark.parametrize(("text", "word"), [
    ("INFO all is well\n", "Maximum concurrency"),
    ("max_total_num_tokens=many, x\nserver_args=ServerArgs(tp_size=1)\n", "max_total_num_tokens"),
])  # fmt: skip
def test_no_start__is_one_line(tmp_path: Path, text: str, word: str) -> None:
    path = tmp_path / "other.log"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadFile, match=word):
        read(path)


def test_chip__is_asked_for_and_a_layout_of_other_chips_refused() -> None:
    log = read(LOGS / "sglang_qwen235b.log")
    with pytest.raises(BadValue, match="--on"):
        cells_of(log, RunFields())
    with pytest.raises(Unusable, match="4 chips"):
        cells_of(log, RunFields(hardware="h100-sxm", chips=3))


def test_log__of_weights_that_do_not_fit_is_told() -> None:
    cells = cells_of(read(LOGS / "sglang_qwen235b.log"), RunFields(hardware="rtx4090", chips=4))
    with pytest.raises(Unusable, match="no room"):
        observed_start(cells, "mine:odd", "")


def test_twice_the_sequences__twice_the_room(tmp_path: Path) -> None:
    log = read(changed(tmp_path, ("476,016", "952,032"), ("58.11x", "116.21x")))
    once, twice = (observed_start(cells_of(each, H100), "mine:a", "")[0] for each in (read(LOGS / "vllm_llama8b.log"), log))
    assert math.exp(twice.excess - once.excess) == pytest.approx(2)


LLAMA = ("llama-3.1-8b", "--on", "h100-sxm", "--engine", "vllm")


def profile_of(tmp_path: Path, cli: Cli, log: Path) -> tuple[str, str]:
    """The catalogue of a log, as a flag."""
    assert cli("calibrate", "--log", log, "--on", "h100-sxm", "--save", "start", "--into", tmp_path).status == 0
    return "--catalog", str(tmp_path)


def test_verbs__have_the_room_of_the_log_and_say_so(tmp_path: Path, cli: Cli) -> None:
    """The log says 476,016 tokens, 58.11 sequences of 8,192, at 0.95 of the card."""
    where = profile_of(tmp_path, cli, LOGS / "vllm_llama8b.log")
    answer = cli.json("capacity", *LLAMA, "--context", 8192, *where)
    assert answer["rows"][0]["kv_room_tokens"] == pytest.approx(476016, abs=8)
    assert "as the engine logged it" in answer["notes"][0] and answer["facts"]["calibration"][0]["name"] == "start"
    (served,) = cli.rows("serve", *LLAMA, "--context", 8192, *where)
    assert served["max_concurrency"] == pytest.approx(58.107, abs=1e-3)
    (without,) = cli.rows("serve", *LLAMA, "--context", 8192, *where, "--calibration", "none")
    assert without == cli.rows("serve", *LLAMA, "--context", 8192)[0]
    assert without["max_concurrency"] < 54


def test_share_of_the_card__that_the_user_says_holds(tmp_path: Path, cli: Cli) -> None:
    """What the engine set aside beyond the laws it sets aside at another share: a constant number of bytes."""
    where = profile_of(tmp_path, cli, LOGS / "vllm_llama8b.log")
    beyond = []
    for share in ("0.6", "0.8", "0.95"):
        flags = ("capacity", *LLAMA, "--hbm-utilization", share)
        by_log, by_laws = (cli.rows(*flags, *more)[0]["kv_room_bytes_chip"] for more in (where, ()))
        beyond.append(by_log - by_laws)
    assert beyond == pytest.approx([beyond[0]] * 3, rel=0.01) and beyond[0] > 0


def test_parts_of_a_card__sum_to_it(tmp_path: Path, cli: Cli) -> None:
    (row,) = cli.rows("capacity", *LLAMA, *profile_of(tmp_path, cli, LOGS / "vllm_llama8b.log"))
    parts = ("weights", "kv_room", "activation", "workspace", "left", "block_rest")
    assert sum(row[f"{part}_bytes_chip"] for part in parts) == pytest.approx(row["memory_bytes_chip"])


def test_most_sequences__are_those_of_the_log(tmp_path: Path, cli: Cli) -> None:
    where = profile_of(tmp_path, cli, changed(tmp_path, ("'max_num_seqs': 1024", "'max_num_seqs': 32")))
    load = ("--prompt", 500, "--output", 100, "--batch", 64)
    few, many = (cli.rows("serve", *LLAMA, *load, *more)[0] for more in (where, (*where, "--calibration", "none")))
    assert few["tok_per_s"] < 0.9 * many["tok_per_s"] and few["ttft_s"] > 3 * many["ttft_s"]  # half of the users wait


def test_rows__are_predicted_as_serve_has_them(tmp_path: Path, cli: Cli) -> None:
    where = profile_of(tmp_path, cli, changed(tmp_path, ("'max_num_seqs': 1024", "'max_num_seqs': 32")))
    table = tmp_path / "rows.csv"
    table.write_text("id,model,hardware,engine,mode,isl,osl,batch_or_concurrency\n"
                     "a,llama-3.1-8b,h100-sxm,vllm,serving_concurrency,500,100,64\n", encoding="utf-8")  # fmt: skip
    answer, load = cli.json("predict", table, *where), ("--prompt", 500, "--output", 100, "--batch", 64)
    (row,), (served,) = answer["rows"], cli.rows("serve", *LLAMA, *load, *where)
    assert "as the engine logged it" in answer["notes"][0]
    assert row["ttft_ms"] == pytest.approx(1e3 * served["ttft_s"], rel=1e-6)
    assert row["ttft_ms"] > 3 * cli.rows("predict", table)[0]["ttft_ms"]


def test_simulation__has_the_sequences_of_the_log(tmp_path: Path, cli: Cli) -> None:
    where = profile_of(tmp_path, cli, changed(tmp_path, ("'max_num_seqs': 1024", "'max_num_seqs': 8")))
    flags = ("sim", *LLAMA, "--users", 32, "--prompt", 500, "--output", 100, "--requests", 200, "--seed", 1)
    few, typed = (cli.rows(*flags, *more)[0] for more in (where, (*where, "--max-seqs", 8)))
    assert few["output_tok_per_s"] == typed["output_tok_per_s"]
    assert few["output_tok_per_s"] < 0.8 * cli.rows(*flags, *where, "--calibration", "none")[0]["output_tok_per_s"]


def test_another_layout__keeps_nothing_of_a_log(tmp_path: Path, cli: Cli) -> None:
    where = profile_of(tmp_path, cli, LOGS / "vllm_llama8b.log")
    flags = ("capacity", "llama-3.1-8b", "--on", "2xh100-sxm", "--tp", 2, "--engine", "vllm")
    assert cli.rows(*flags, *where) == cli.rows(*flags)

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

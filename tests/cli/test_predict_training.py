"""`headway predict --training`: every line of the input in the output, in the contract's columns, sane for what was never measured."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from headway.cli.main import main
from headway.evidence.training.row import MEASURED
from support.paths import DATA

pytestmark = pytest.mark.slow

ROWS = DATA / "training_rows.csv"
QUANTITIES = ("tokens_per_s_per_chip", "step_time_s", "tflops_per_chip", "memory_gb_per_chip")
CONTRACT = ["id", *(key + end for key in QUANTITIES for end in ("", "_lo", "_hi")), "flags", "why", "calibrated_by", "calibrated_runs"]
HEAD = "id,model,hardware,n_chips,precision,seq_len,tp,pp,ep,zero_or_fsdp,micro_batch,global_batch,recompute"
# Chips, models and spellings that no measured row has: id, peak FLOP/s of the row's format, what follows the id.
NEW = {
    "mi300x": (1307.4e12, "Llama-3.1-8B,AMD Instinct MI300X,8,bf16,8192,1,1,,FSDP,2,64,"),
    "b200": (4500e12, "llama3.1-70b,DGX-B200,64,fp8,8192,2,4,,dist-opt,1,128,"),
    "gb200": (2500e12, "Llama 3.1 405B,GB200-NVL72,128,bf16,8192,4,8,,,1,64,"),
    "deepseek": (1979e12, "DeepSeek-V3,H800,2048,fp8,4096,1,16,64,zero-1,1,15360,selective"),
    "mixtral": (989.5e12, "mistralai/Mixtral-8x7B-v0.1,H100 SXM5 80GB,128,bf16,4096,1,4,8,,1,256,"),
    "qwen3": (989.5e12, "Qwen3-30B-A3B,H100,16,bf16,4096,1,2,8,,2,512,"),
    "v6e": (918e12, "llama2-70b,TPU v6e,256,bf16,4096,,,,,,,"),
    "v7": (2307e12, "Mixtral 8x7B,TPU7x,64,bf16,4096,,,,,,,"),
    "trn2": (667e12, "llama3-8b,Trainium2,16,bf16,8192,,,,,,,"),
    "notdp": (197e12, "llama3-8b,TPU-v5e,16,bf16,8192,,,,,,,"),
    "v100": (125e12, "GPT-3 175B,V100-32GB,1024,fp16,2048,8,16,,,1,1536,full"),
}


def run(path: Path, *args: str, capsys: pytest.CaptureFixture) -> str:
    assert main(["predict", "--training", str(path), *args]) == 0
    return capsys.readouterr().out


def predicted(path: Path, capsys: pytest.CaptureFixture) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(run(path, "-o", "csv", capsys=capsys))))


def measured() -> list[dict[str, str]]:
    return list(csv.DictReader(ROWS.read_text(encoding="utf-8").splitlines()))


def number(row: dict[str, str], key: str) -> float:
    return float(row[key])


def test_predict_training__every_row_in_the_contract_columns(capsys: pytest.CaptureFixture) -> None:
    asked = measured()
    found = predicted(ROWS, capsys)
    assert list(found[0]) == CONTRACT
    assert [row["id"] for row in found] == [row["id"] for row in asked]
    for row in found:
        assert bool(row["why"]) != all(row[key] for key in QUANTITIES), row["id"]
        for key in QUANTITIES if not row["why"] else ():
            assert 0 < number(row, f"{key}_lo") <= number(row, key) <= number(row, f"{key}_hi"), row["id"]


def test_predict_training__measured_columns_change_nothing(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    hidden = tmp_path / "rows.csv"
    lines = measured()
    with hidden.open("w", newline="") as out:
        writer = csv.DictWriter(out, [key for key in lines[0] if key not in MEASURED], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(lines)
    assert run(hidden, "-o", "csv", capsys=capsys) == run(ROWS, "-o", "csv", capsys=capsys)


def test_predict_training__speed_step_time_and_flops_agree(capsys: pytest.CaptureFixture) -> None:
    asked = {row["id"]: row for row in measured()}
    for row in predicted(ROWS, capsys):
        said = asked[row["id"]]
        if row["why"] or not (said["global_batch"] and said["seq_len"] and said["n_chips"]):
            continue
        tokens = float(said["global_batch"]) * float(said["seq_len"]) / float(said["n_chips"])
        for speed, step in (("", ""), ("_lo", "_hi"), ("_hi", "_lo")):
            assert number(row, "tokens_per_s_per_chip" + speed) * number(row, "step_time_s" + step) == pytest.approx(tokens)
        ends = [number(row, "tflops_per_chip" + end) / number(row, "tokens_per_s_per_chip" + end) for end in ("", "_lo", "_hi")]
        assert ends == pytest.approx([ends[0]] * 3)


def test_memory_gb_per_chip__korthikanti_published(capsys: pytest.CaptureFixture) -> None:
    """Figure 1 of arXiv:2205.05198, first stage of GPT-22B, 175B and 530B, in GiB: nothing of the memory law is fitted to it."""
    found = {row["id"]: row for row in predicted(ROWS, capsys)}
    for name, gib in (("KOR-012", 55.1), ("KOR-013", 112.4), ("KOR-014", 57.9), ("KOR-016", 54.7)):
        assert number(found[name], "memory_gb_per_chip") == pytest.approx(gib, rel=0.06)


def test_predict_training__bad_row_says_why_and_others_go_on(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = tmp_path / "rows.csv"
    good = "Llama-3.1-8B,H100,8,bf16,8192,1,1,,FSDP,1,64,full"
    path.write_text(
        f"{HEAD}\na,{good}\nb,{good.replace(',8,', ',none,', 1)}\nc,{good.replace('H100', 'Quantum9')}\n"
        f"d,{good.replace('Llama-3.1-8B', 'Nonsense')}\ne,{good}\n"
    )
    found = predicted(path, capsys)
    assert [row["id"] for row in found] == list("abcde")
    assert [bool(row["why"]) for row in found] == [False, True, True, True, False]
    assert found[1]["why"].startswith("line 3: n_chips: got 'none'") and "no chip named 'Quantum9'" in found[2]["why"]
    assert found[0] | {"id": ""} == found[4] | {"id": ""}


def test_predict_training__unmeasured_chips_and_models_are_plausible(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([HEAD, *(f"{name},{rest}" for name, (_, rest) in NEW.items())]) + "\n")
    for row in predicted(path, capsys):
        assert not row["why"], row
        peak = NEW[row["id"]][0]
        assert 0.12 < number(row, "tflops_per_chip") * 1e12 / peak < 0.7, row
        assert 5 < number(row, "memory_gb_per_chip") < 300, row


def test_tokens_per_s_per_chip__deepseek_v3_on_h800_within_interval(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """2.664 M H800 hours for 14.8 T tokens (arXiv:2412.19437 table 1): 1543 tokens/s per chip, DualPipe not told to the row."""
    path = tmp_path / "rows.csv"
    path.write_text(f"{HEAD}\ndeepseek,{NEW['deepseek'][1]}\n")
    row = predicted(path, capsys)[0]
    assert number(row, "tokens_per_s_per_chip_lo") < 14.8e12 / (2.664e6 * 3600) < number(row, "tokens_per_s_per_chip_hi")


def test_predict_training__unstated_layout_has_a_wider_interval(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"{HEAD}\nstated,Llama-3.1-8B,H100,8,bf16,8192,1,1,,,1,64,none\nopen,Llama-3.1-8B,H100,8,bf16,8192,,,,,1,64,none\n")
    stated, open_ = (number(row, "step_time_s_hi") / number(row, "step_time_s") for row in predicted(path, capsys))
    assert open_ > stated > 1.05


def test_predict_training__text_counts_rows_and_names_defaults(capsys: pytest.CaptureFixture) -> None:
    told = run(ROWS, capsys=capsys)
    assert told.splitlines()[0].endswith(" rows predicted.")
    assert "note: not predicted: the time of one layer alone is no optimiser step (2)" in told
    assert "sequence not stated: 2048 tokens" in told
    answer = json.loads(run(ROWS, "-o", "json", capsys=capsys))
    assert set(CONTRACT) == set(answer["columns"]) and "GiB" in answer["columns"]["memory_gb_per_chip"]["doc"]


def test_predict_training__numbers_of_the_catalogue_folder(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Matmuls at half of the share take longer: `--catalog DIR` reads DIR/training/efficiency.toml, which a fit wrote there."""
    rows = tmp_path / "rows.csv"
    rows.write_text(f"{HEAD}\nx,llama-3.1-70b,H100,64,bf16,8192,8,2,,,1,64,none\n", encoding="utf-8")
    (tmp_path / "training").mkdir()
    line = 'compute = { value = 0.3, unit = "", error = 0.1, rows = 9, meaning = "share", source = "own", date = "2026", kind = "fitted" }'
    (tmp_path / "training" / "efficiency.toml").write_text(f"[training.hopper.bf16]\n{line}\n", encoding="utf-8")
    shipped, own = (
        float(next(csv.DictReader(io.StringIO(run(rows, *more, "-o", "csv", capsys=capsys))))["tokens_per_s_per_chip"])
        for more in ((), ("--catalog", str(tmp_path)))
    )
    assert 0.45 < own / shipped < 0.75

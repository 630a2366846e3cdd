"""`headway predict`: every row of the input in the output, in order, in the contract's columns."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from headway.cli.main import main
from headway.evidence.rows.row import read_rows
from headway.evidence.rows.tasks import tasks
from headway.evidence.serving.predict import predict
from support.command import Cli
from support.work import calls

HEAD = "id,model,hardware,n_chips,engine,weight_precision,tp,mode,isl,osl,batch_or_concurrency"
GOOD = "llama-3.1-70b,h100-sxm,8,vllm,fp8,8,serving_concurrency,1024,1024,64"
CONTRACT = [
    "id", "ttft_ms", "ttft_ms_floor", "ttft_ms_lo", "ttft_ms_hi", "tpot_ms", "tpot_ms_floor", "tpot_ms_lo", "tpot_ms_hi",
    "output_tok_s_total", "output_tok_s_total_lo", "output_tok_s_total_hi", "tok_s_per_chip", "tok_s_per_chip_lo", "tok_s_per_chip_hi",
    "flags", "why", "calibrated_by", "calibrated_runs",
]  # fmt: skip
MIXED = f"""{HEAD}
first,{GOOD}
nomodel,,h100-sxm,8,vllm,fp8,8,serving_concurrency,1024,1024,64
nochip,llama-3.1-70b,h1000,8,vllm,fp8,8,serving_concurrency,1024,1024,64
text,llama-3.1-70b,h100-sxm,8,vllm,fp8,8,serving_concurrency,many,1024,64
nan,llama-3.1-70b,h100-sxm,8,vllm,fp8,8,serving_concurrency,1024,nan,64

wide,{GOOD},7,8
short,llama-3.1-70b,h100-sxm
"two
lines",{GOOD}
tp3,llama-3.1-70b,h100-sxm,8,vllm,fp8,3,serving_concurrency,1024,1024,64
nolength,llama-3.1-70b,h100-sxm,8,vllm,fp8,8,serving_concurrency,,1024,64
,{GOOD}
last,llama-3.1-8b,rtx4090,1,llama.cpp,q4_k_m,1,decode_step,0,128,1
"""


def file(folder: Path, text: str) -> str:
    path = folder / "rows.csv"
    path.write_text(text, encoding="utf-8")
    return str(path)


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_predict__every_row_in_order_and_the_line_of_each_error(tmp_path: Path, cli: Cli) -> None:
    status, out, err = cli("predict", file(tmp_path, MIXED), "-o", "csv")
    assert (status, err) == (0, "")
    found = rows_of(out)
    names = ["first", "nomodel", "nochip", "text", "nan", "wide", "short", "two\nlines", "tp3", "nolength", "", "last"]
    assert [row["id"] for row in found] == names
    why = {row["id"]: row["why"] for row in found if row["why"]}
    assert why["nomodel"] == "line 3: model: missing"
    assert why["nochip"].startswith("line 4: no chip named 'h1000'; did you mean h100")
    assert why["text"].startswith("line 5: isl: got 'many'; wants a number of tokens")
    assert why["nan"].startswith("line 6: osl: got 'nan'")
    assert why["wide"].startswith("line 8: 13 cells under 11")
    assert why["short"] == "line 9: mode: missing"
    assert why["tp3"].startswith("line 12: layout tp=3: tp 3 does not divide 64")
    assert why["nolength"] == "line 13: input length not stated"
    assert set(why) == set(names) - {"first", "two\nlines", "", "last"}
    assert {key: row for key, row in found[0].items() if key != "id"} == {key: row for key, row in found[7].items() if key != "id"}


def test_predict__columns_of_the_contract(tmp_path: Path, cli: Cli) -> None:
    path = file(tmp_path, MIXED)
    _, out, _ = cli("predict", path, "-o", "csv")
    assert out.split("\n")[0].split(",") == CONTRACT
    _, out, _ = cli("predict", path, "-o", "json")
    answer = json.loads(out)
    assert list(answer) == ["headway", "command", "answer", "binds", "helps", "launch", "checked", "columns", "rows", "notes"]
    assert list(answer["columns"]) == CONTRACT
    assert {key: one["unit"] for key, one in answer["columns"].items() if one["unit"]} == {
        key: "ms" if "_ms" in key else "token/s" for key in CONTRACT[1:-4]
    }
    assert all(one["doc"] for one in answer["columns"].values())


def test_predict__floor_and_interval_in_order_and_milliseconds(tmp_path: Path, cli: Cli) -> None:
    path = file(tmp_path, MIXED)
    _, out, _ = cli("predict", path, "-o", "csv")
    first, last = rows_of(out)[0], rows_of(out)[-1]
    for stem, row in (("ttft_ms", first), ("tpot_ms", first), ("tpot_ms", last)):
        floor, low, middle, high = (float(row[stem + end]) for end in ("_floor", "_lo", "", "_hi"))
        assert 0 < floor <= low <= middle <= high, stem
    assert last["ttft_ms"] == ""
    seen = predict(tasks(read_rows(path)[0]))[0]
    assert seen.tpot is not None and seen.per_chip is not None
    assert float(first["tpot_ms"]) == pytest.approx(1000 * seen.tpot.expected)
    assert float(first["tok_s_per_chip"]) == pytest.approx(seen.per_chip.expected)
    assert float(first["output_tok_s_total"]) == pytest.approx(8 * float(first["tok_s_per_chip"]))
    # An 8B model in 4 bits is about 4.6 to 5 GB, read at 1008 GB/s: no step of a 4090 is under 4.5 ms.
    assert 4.4 < float(last["tpot_ms_floor"]) < 5.2


def test_predict__answers_of_one_token_have_no_tpot(tmp_path: Path, cli: Cli) -> None:
    """vLLM divides by the tokens after the first."""
    path = tmp_path / "rows.csv"
    path.write_text(f"{HEAD}\none,{GOOD.replace('1024,1024', '1024,1')}\ntwo,{GOOD.replace('1024,1024', '1024,2')}\n")
    one, two = cli("predict", str(path), "-o", "json").rows
    assert one["ttft_ms"] > 0 and one["tpot_ms"] is None and one["tpot_ms_lo"] is None and two["tpot_ms"] > 0


def test_predict__first_line_is_the_answer(tmp_path: Path, cli: Cli) -> None:
    _, out, _ = cli("predict", file(tmp_path, MIXED))
    first = out.split("\n")[0]
    assert first == "4 of 12 rows predicted."
    assert "note: not predicted: model: missing" in out
    assert "rows predicted" in cli("predict", file(tmp_path, MIXED), "-o", "md")[1].split("\n")[0]


def test_predict__measured_columns_are_ignored(tmp_path: Path, cli: Cli) -> None:
    bare = rows_of(cli("predict", file(tmp_path, f"{HEAD}\na,{GOOD}\n"), "-o", "csv")[1])
    text = f"{HEAD},ttft_ms,tpot_ms,tok_s_per_chip,notes\na,{GOOD},1,n/a,-3,ctx servers 2x TP4\n"
    assert rows_of(cli("predict", file(tmp_path, text), "-o", "csv")[1]) == bare
    assert bare[0]["tpot_ms"]


def test_predict__where_reads_times_with_their_unit(tmp_path: Path, cli: Cli) -> None:
    path = file(tmp_path, MIXED)
    ten, bare = (rows_of(cli("predict", path, "-o", "csv", "--where", f"tpot_ms <= {most}")[1]) for most in ("10s", "10000"))
    assert [row["id"] for row in ten] == [row["id"] for row in bare] == ["first", "two\nlines", "", "last"]


def test_predict__empty_table_and_malformed_file(tmp_path: Path, cli: Cli) -> None:
    assert cli("predict", file(tmp_path, HEAD + "\n")) == (0, "No row to predict.\n", "")
    assert cli("predict", file(tmp_path, HEAD + "\n"), "-o", "csv")[1] == ",".join(CONTRACT) + "\n"
    for text, wants in (("", "is empty"), ("\n\n", "is empty"), ("a,b\n1,2\n", "has no column id")):
        status, _, err = cli("predict", file(tmp_path, text))
        assert status == 2 and wants in err and err.count("\n") == 1
    assert cli("predict", str(tmp_path / "none.csv"))[0] == 2
    status, _, err = cli("predict", file(tmp_path, MIXED), "--set", "chip.hbm=1GB")
    assert status == 2 and "each row names its own machine" in err


def test_predict__parquet(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert main(["predict", file(tmp_path, MIXED), "-o", "parquet"]) == 0
    table = parquet.read_table(io.BytesIO(capfdbinary.readouterr().out))
    assert table.column_names == CONTRACT and table.num_rows == 12


def test_predict__thousands_of_rows_share_their_work(tmp_path: Path, cli: Cli) -> None:
    chips, models = ("h100-sxm", "a100-80gb", "mi300x", "b200"), ("llama-3.1-8b", "llama-3.1-70b", "deepseek-v3", "qwen3-30b-a3b")
    loads = [f"{100 + n},{50 + n % 700},{1 + n % 99}" for n in range(2000)]
    lines = [
        f"r{n},{models[n % 4]},{chips[n // 4 % 4]},{1 << n % 5},vllm,fp8,{1 << n % 3},serving_concurrency,{load}"
        for n, load in enumerate(loads)
    ]
    path = file(tmp_path, "\n".join([HEAD, *lines]) + "\n")
    answers = []
    assert calls(lambda: answers.append(cli("predict", path, "-o", "csv"))) < 400 * len(lines)  # bench/bench_predict.py measures the time
    assert len(rows_of(answers[0].text)) == len(lines)

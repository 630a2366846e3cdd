"""Which run to make next: the study's order, and that the width which is told is the one that the posterior has after such a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headway.evidence.calibration.advise import advise, candidates
from headway.evidence.calibration.load_generators import RunLoad, commands
from headway.evidence.calibration.observe import observe
from headway.evidence.rows.row import MeasuredRow
from headway.evidence.rows.run_keys import task_key
from headway.evidence.rows.tasks import Task, tasks
from headway.evidence.serving.predict import predict
from support.command import Cli

MONTH = "2026-11"
MACHINES = (("llama-3.1-70b", "H100 SXM", 8, "vLLM", "fp8"), ("llama-3.1-8b", "H100 SXM", 1, "vLLM", "bf16"),
            ("gpt-oss-120b", "B200", 2, "TensorRT-LLM", "mxfp4"), ("qwen3-235b-a22b", "H200", 8, "SGLang", "fp8"))  # fmt: skip


def run(machine: tuple[str, str, int, str, str], mode: str = "serving_concurrency", users: float | None = 16) -> Task:
    """A run of a deployment."""
    model, chip, chips, engine, weights = machine
    (task,) = tasks([MeasuredRow(
        line=1, id="a", model=model, hardware=chip, chips=chips, tp=chips, mode=mode, engine=engine, weights=weights, month=MONTH,
        prompt=1024, output=1024, concurrency=users,
    )])  # fmt: skip
    assert isinstance(task, Task)
    return task


def measured(task: Task) -> Task:
    """The run as it would measure exactly what is predicted."""
    (expected,) = predict([task])
    assert expected.rate
    values = {"output_tok_per_s": expected.rate.expected}
    values |= {f"{name}_s": estimate.expected for name in ("ttft", "tpot") if (estimate := getattr(expected, name))}
    values = {"output_tok_per_s": values["output_tok_per_s"]} if task.kind == "offline" else values
    return replace(task, row=replace(task.row, concurrency=task.concurrency, prompt=task.prompt, output=task.output, **values))


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine[0])
def test_users__fewest_then_most_then_between(machine: tuple[str, str, int, str, str]) -> None:
    done: list[Task] = []
    for _ in range(3):
        done.append(measured(advise(run(machine), observe(done, [f"a:{n}" for n in range(len(done))]), "tpot", MONTH, done)[0].task))
    users = [task.concurrency for task in candidates(run(machine))]
    assert [task.concurrency for task in done[:2]] == [users[0], users[-1]]
    assert done[2].concurrency in users[1:-1]


def test_lengths__the_middle_one_first() -> None:
    first = advise(run(MACHINES[1], "offline_throughput", None), (), "rate", MONTH)[0].task
    assert (first.prompt, first.output) == (1024, 1024)


@pytest.mark.parametrize("asked", ["tpot", "ttft", "rate"])
def test_width_after__is_the_posteriors(asked: str) -> None:
    task = run(MACHINES[0])
    best = advise(task, (), asked, MONTH)[0]
    assert best.after < best.before
    runs = observe([measured(best.task)], ["a:1"])
    loads = candidates(task)
    halves = [getattr(one, asked).high / getattr(one, asked).expected for one in predict(loads, runs=runs)]
    assert float(np.exp(np.mean(np.log(halves)))) == pytest.approx(best.after, rel=1e-3)
    assert task_key(task) == runs[0].key


def test_commands__have_the_load_in_the_flags_of_each_generator() -> None:
    served = commands(RunLoad(model="m", prompt=1000, output=200, users=8))
    assert [line.split()[0] for line in served] == ["vllm", "aiperf", "guidellm"]
    assert "--max-concurrency 8" in served[0] and "--num-prompts 80" in served[0]
    assert "--concurrency 8 --request-count 80" in served[1] and "--rate 8 --max-requests 80" in served[2]


TABLE = "id,model,hardware,n_chips,tp,engine,weight_precision,mode,isl,osl,batch_or_concurrency,ttft_ms,tpot_ms\n"
ROW = "a,llama-3.1-70b,h100-sxm,8,8,vllm,fp8,serving_concurrency,2000,500,{users},{measured}\n"


def test_verb__says_the_run_its_width_and_its_commands(tmp_path: Path, cli: Cli) -> None:
    table = tmp_path / "runs.csv"
    table.write_text(TABLE + ROW.format(users=4, measured=","), encoding="utf-8")
    rows = cli.rows("calibrate", table, "--advise")
    assert [row["place"] for row in rows] == list(range(1, len(rows) + 1))
    assert rows[0]["users"] == 1 and 0 < rows[0]["half_after"] < rows[0]["half"]
    assert rows[0]["command"].startswith("vllm bench serve --model llama-3.1-70b")
    table.write_text(TABLE + ROW.format(users=1, measured="85,14"), encoding="utf-8")
    later = cli.rows("calibrate", table, "--advise")
    assert later[0]["users"] == max(row["users"] for row in rows)
    assert all(row["users"] != 1 for row in later)  # the load that was run is not advised again
    assert later[0]["half"] == pytest.approx(rows[0]["half_after"], rel=0.3)


def test_for__stands_beside_advise_alone(tmp_path: Path, cli: Cli) -> None:
    table = tmp_path / "runs.csv"
    table.write_text(TABLE + ROW.format(users=1, measured="85,14"), encoding="utf-8")
    answer = cli("calibrate", table, "--for", "ttft_s")
    assert answer.status == 2 and "--advise" in answer.err

"""The floor: a lower bound whichever kernel an engine selects, never raised by fewer bits or by more of any resource; what it is of."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import headway as hw
from headway.core.schema import fields
from headway.hardware.chip import chip
from headway.hardware.edit import edit
from headway.hardware.system import system
from headway.models.config import model
from headway.models.precision import CACHE, COMPUTE, WEIGHTS, Precision, cache_format, formats
from headway.models.stored import is_gguf
from headway.models.work import work_of
from headway.performance.assumptions import Assumptions
from headway.performance.formats import best_peak, floor_note, peak, resolve
from support.each import for_each

FLOORS = ("ttft_floor_s", "tpot_floor_s", "step_floor_s")
MACHINES = (
    "1xh100-sxm",
    "1xa100-sxm-80",
    "1xb200-sxm",
    "1xb300-sxm",
    "1xmi300x",
    "1xmi355x",
    "1xrtx5090",
    "1xtpu-v6e",
    "1xtpu-v7",
    "1xl40s",
)
BY_CACHE = sorted(CACHE, key=lambda name: -float(cache_format(name).bytes))
ROUNDING = 1 + 1e-12
SCATTER = fields(Assumptions)["length_cv"][1]  # typed out: a note on what is assumed asks each question twice


def floors(name: str, machine: Any, tp: int = 1, prompt: int = 4000, **flags: Any) -> dict[str, float]:
    """The floors of a request alone; under a load a faster prefill lets more users decode at once, which may lengthen TPOT."""
    return weighed(name, machine, tp, prompt, **flags)[1]


def weighed(name: str, machine: Any, tp: int = 1, prompt: int = 4000, **flags: Any) -> tuple[float, dict[str, float]]:
    """The bytes of the weights on a chip, and the floors."""
    row = hw.serve(name, on=machine, tp=tp, batch=1, prompt=prompt, output=100, length_cv=SCATTER, **flags).rows()[0]
    return row["weights_bytes_chip"], {key: row[key] for key in FLOORS}


def never_rises(steps: list[tuple[str, dict[str, float]]]) -> None:
    for (before, wide), (after, narrow) in itertools.pairwise(steps):
        for key in wide:
            assert narrow[key] <= wide[key] * ROUNDING, f"{key} rises from {before} to {after}"


@for_each(MACHINES)
def test_floor__never_rises_with_fewer_bits_of_a_weight(machine: str) -> None:
    for whole_file in (False, True):  # a GGUF name is that of a file, head and embedding among them; others leave both as they are
        rows = {name: weighed("llama-3.2-3b", machine, weights=name) for name in WEIGHTS if is_gguf(name) == whole_file}
        never_rises([(name, rows[name][1]) for name in sorted(rows, key=lambda name: -rows[name][0])])


@for_each(MACHINES)
def test_floor__never_rises_with_a_narrower_cache(machine: str) -> None:
    for name in ("llama-3.2-3b", "gpt-oss-20b", "deepseek-v2-lite"):
        if float(chip(machine[2:]).hbm) < 60e9 and name != "llama-3.2-3b":
            continue
        never_rises([(kv, floors(name, machine, prompt=60_000, kv=kv)) for kv in BY_CACHE])


@for_each(MACHINES)
def test_floor__no_arithmetic_at_least_as_wide_beats_it(machine: str) -> None:
    device = chip(machine[2:])
    for stored in ("bf16", "fp8", "int4_g128", "mxfp4"):
        least = floors("llama-3.2-3b", machine, weights=stored, embedding=stored)  # stated arithmetic is the head's too
        for compute in COMPUTE:
            if device.peak(compute) is None or float(formats()[compute].bytes) < float(formats()[stored].bytes) // 0.5 * 0.5:
                continue
            stated = floors("llama-3.2-3b", machine, weights=stored, embedding=stored, compute=compute)
            assert all(least[key] <= stated[key] * ROUNDING for key in FLOORS), (stored, compute)


def test_floor__prompt_of_int4_takes_no_longer_than_of_fp8() -> None:
    """The case: a cache of 4 bits fell back to 16-bit attention, so that the floor rose by 74 %."""
    wide, narrow = (floors("llama-3.1-70b", "8xh100-sxm", tp=8, prompt=100_000, kv=kv) for kv in ("fp8", "int4"))
    assert narrow["ttft_floor_s"] == pytest.approx(wide["ttft_floor_s"])


def test_best_peak__fastest_of_the_published_peaks_at_least_as_wide() -> None:
    h100, a100 = chip("h100-sxm"), chip("a100-sxm-80")
    for name, expected in (("bf16", 989.5e12), ("fp8", 1979e12), ("int4", 1979e12), ("q6_k", 1979e12)):
        assert float(best_peak(h100, formats()[name], peak(h100, name)[1])) == pytest.approx(expected, rel=1e-3)
    assert best_peak(a100, formats()["int4"], peak(a100, "int4")[1]) == a100.peak_int8
    assert best_peak(a100, formats()["bf16"], peak(a100, "bf16")[1]) == a100.peak_bf16


RESOURCES = ("chip.hbm_bw", "chip.peak_bf16", "chip.peak_fp8", "chip.peak_fp4", "chip.peak_int8", "chip.scale_up_bw", "chip.scale_out_bw")
LAYOUTS = (("8xh100-sxm", {"tp": 8}), ("16xh100-sxm", {"tp": 16}), ("2xmi300x", {"tp": 2}), ("8xmi300x", {"tp": 4}),
           ("tpu-v5p-2x2x2", {"tp": 8}), ("8xb200-sxm", {"tp": 2, "pp": 4}), ("16xh200-sxm", {"tp": 1, "dp": 16, "ep": 16}))  # fmt: skip


@for_each(LAYOUTS)
def test_floor__never_rises_with_more_of_a_resource(case: tuple[str, dict[str, int]]) -> None:
    name, layout = case
    machine, subject = system(name), "qwen3-30b-a3b" if "ep" in layout else "llama-3.1-70b"
    for key, precision in itertools.product(RESOURCES, ({}, {"weights": "fp8", "kv": "int4"})):
        part, _, fact = key.partition(".")
        known = getattr(getattr(machine, part) if part == "chip" else machine, fact)
        if known is None:
            continue
        series = []
        for factor in (0.5, 1.0, 1.3, 3.0):
            edited = edit(machine, key, float(known) * factor)
            load = {"batch": [1, 64], "prompt": 3000, "output": 100, "length_cv": SCATTER}
            alone, many = hw.serve(subject, on=edited, **load, **layout, **precision).rows()
            loaded = {f"{floor} of 64": many[floor] for floor in ("ttft_floor_s", "step_floor_s")}
            series.append((f"{key} x {factor}", {floor: alone[floor] for floor in FLOORS} | loaded))
        never_rises(series)


@for_each(MACHINES)
def test_full__is_the_floor_at_peak_in_every_format(machine: str) -> None:
    perfect: dict[str, Any] = {"overlap": "full", "eff_compute": 1.0, "eff_memory": 1.0, "t0": 0.0}
    for weights, kv in (("bf16", "bf16"), ("int4_g128", "int4"), ("mxfp4", "fp8"), ("q4_k_m", "bf16")):
        row = hw.serve("llama-3.2-3b", on=machine, batch=64, context=8000, weights=weights, kv=kv, **perfect).rows()[0]
        assert row["step_s"] == pytest.approx(row["step_floor_s"], rel=1e-12)


# What the floor is of


def note(name: str, machine: str = "8xh100-sxm", **precision: str) -> str:
    work = work_of(model(name))
    return floor_note(work, resolve(work, system(machine).chip, Precision(**precision)))


def test_floor_note__names_the_formats_of_a_mixed_checkpoint() -> None:
    text = note("gpt-oss-120b", "dgx-spark-gb10")
    parts = "attention bf16, experts mxfp4, head bf16"
    flags = "--weights mxfp4 --embedding mxfp4"
    assert text == f"floor: of weights as stored ({parts}); a build with all of them in mxfp4 may beat it: {flags}"
    assert "attention bf16, FFN fp8" in note("llama-3.1-405b-fp8")
    assert note("llama-3.1-8b", weights="int4_g128").endswith(": --embedding int4_g128")  # its head is a sixth of what a token reads


def test_floor_note__none_where_all_is_stored_alike_or_the_rest_is_small() -> None:
    alike = {"llama-3.1-8b": "", "llama-3.1-70b": "fp8", "deepseek-v3": "", "qwen3-8b": "q4_k_m"}  # a GGUF mixture is one build
    for name, weights in alike.items():
        assert note(name, weights=weights) == ""


def test_floor_note__measured_build_lies_between_both_floors() -> None:
    """gpt-oss-120b on DGX Spark: 60.7 tokens/s by a build with all layers in MXFP4, faster than the floor of the checkpoint as stored."""
    stored = floors("gpt-oss-120b", "dgx-spark-gb10", prompt=2000)
    narrow = floors("gpt-oss-120b", "dgx-spark-gb10", prompt=2000, weights="mxfp4")
    assert 1 / stored["step_floor_s"] < 60.7 < 1 / narrow["step_floor_s"]


def test_floor_note__once_in_every_verb(cli: Any, tmp_path: Any) -> None:
    load = ("--prompt", "2k", "--output", "200")
    asked = [("serve", "gpt-oss-120b", "--on", "4xh100-sxm", "--tp", "4", "--batch", "1,8", *load),
             ("plan", "gpt-oss-120b", "--on", "4xh100-sxm", *load)]  # fmt: skip
    rows = tmp_path / "rows.csv"
    head = "id,model,hardware,n_chips,tp,mode,isl,osl,batch_or_concurrency,engine,tpot_ms\n"
    lines = [f"{line},{name},H100-SXM,{chips},{chips},serving_concurrency,1000,500,16,vllm,9\n"
             for line, name, chips in (("a", "gpt-oss-120b", 4), ("b", "gpt-oss-120b", 2), ("c", "llama-3.1-8b", 1))]  # fmt: skip
    rows.write_text(head + "".join(lines), encoding="utf-8")
    asked += [("predict", str(rows)), ("score", str(rows), "--each")]
    for words in asked:
        notes = [text for text in cli(*words, "-o", "json").notes if "floor: of weights as stored" in text]
        assert len(notes) == 1 and "experts mxfp4" in notes[0], words

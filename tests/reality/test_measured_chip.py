"""A measured machine as a chip: numbers of a made machine are found again, and what was reached counts once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import headway as hw
from headway.core.catalog import open_catalog
from headway.core.errors import BadFile
from headway.hardware.chip import chip as find_chip
from headway.hardware.system import system
from headway.models.totals import total_params
from headway.reality.lab.batch import calibrate
from headway.reality.lab.batch_setup import BatchSetup
from headway.reality.lab.shape import model_of
from headway.reality.measure.chip import save, saved_record
from headway.reality.measure.decode import CHILD, SHAPES, hash_of, memory_need, points, prediction, results
from headway.reality.measure.rates import MachineRates, rates_of
from headway.reality.measure.record import MachineRecord, of_dict
from support.command import Cli

PEAK, BANDWIDTH, CALL, PACKING = 80e9, 20e9, 2e-6, 1.5


def times() -> Iterator[dict[str, Any]]:
    """Matmuls of a machine whose reads and arithmetic do not overlap, and that copies the weights of more than one row."""
    for rows in (1, 2, 4, 16, 64, 256, 1024):
        weights = 4e6 / BANDWIDTH * (1 if rows == 1 else 1 + PACKING)
        yield {"format": "float32", "native": True, "rows": rows, "inner": 1000, "columns": 1000, "element": 4, "spread": 0.0,
               "seconds": CALL + weights + 2e6 * rows / PEAK}  # fmt: skip


def machine() -> MachineRecord:
    """A machine of which every number is known."""
    attention = {"heads": 4, "kv_heads": 2, "head": 64, "element": 4, "spread": 0.0}
    decodes = [
        attention | {"sequences": count, "queries": 1, "context": context,
                     "seconds": 2 * CALL + 2.0 * count * context * 2 * 64 * 4 / (BANDWIDTH / 2)}
        for count in (1, 8) for context in (100, 1000)
    ]  # fmt: skip
    prompts = [
        attention | {"sequences": 1, "queries": prompt, "context": prompt,
                     "seconds": 2 * CALL + 4.0 * 4 * 64 * prompt * (prompt + 1) / 2 / (PEAK / 4)}
        for prompt in (100, 400)
    ]  # fmt: skip
    vectors = [
        {"kind": kind, "rows": rows, "width": 500, "seconds": 5e-6 + rows * 500 * 1e-9, "spread": 0.0}
        for kind in ("norm", "rotation", "gate", "routing") for rows in (1, 100)
    ]  # fmt: skip
    return of_dict({
        "device": "Test CPU", "library": "numpy 2", "date": "2026-11-27", "cores": 1, "threads": 1, "memory": 16 * 10**9,
        "matmuls": list(times()), "streams": [{"kind": "read", "bytes": 10**8, "seconds": 10**8 / BANDWIDTH, "spread": 0.0}],
        "calls": [{"kind": "matmul", "seconds": CALL, "spread": 0.0}], "vectors": vectors, "attentions": [*decodes, *prompts],
    })  # fmt: skip


RATES = rates_of(machine())


def test_rates__numbers_of_a_made_machine_are_found_again() -> None:
    assert RATES.peak == pytest.approx(PEAK, rel=0.03)  # at 1,024 rows
    assert RATES.bandwidth == pytest.approx(BANDWIDTH)
    assert RATES.memory == pytest.approx(1.0, rel=0.02)
    assert RATES.packing == pytest.approx(PACKING, rel=0.1)
    assert RATES.norm == pytest.approx(1.0, abs=0.1)
    assert RATES.decode_memory == pytest.approx(0.5, rel=0.1)
    assert RATES.prefill_compute == pytest.approx(0.25, rel=0.1)
    assert RATES.half < 1.2


def kept(folder: Path, rates: MachineRates = RATES) -> hw.System:
    save(machine(), rates, "testbench", folder)
    return system("testbench", open_catalog((folder,)))


def test_saved_chip__facts_are_measured_and_dated(tmp_path: Path) -> None:
    chip = kept(tmp_path).chip
    assert (chip.hbm_bw.kind, chip.hbm_bw.date) == ("measured", "2026-11-27")
    assert "measured here" in chip.hbm_bw.source and "float32" in chip.peak_bf16.source
    assert float(chip.hbm) == 16e9
    assert saved_record(tmp_path / "efficiency" / "testbench.json") == machine()


def test_saved_chip__what_was_reached_counts_once(tmp_path: Path) -> None:
    """Without fixed costs, copies and activations, a machine that reaches all its rates runs at its floor."""
    ideal = replace(
        RATES, call_s=0.0, memory=1.0, packing=0.0, norm=500.0, activation=1e9, decode_t0_s=0.0, decode_memory=1.0, block_s=0.0,
        prefill_t0_s=0.0, prefill_compute=1.0, prefill_pad=0.0, vector_t0_s=0.0, vector_memory=1e9,
    )  # fmt: skip
    row = hw.serve("llama-3.2-1b", kept(tmp_path, ideal), batch=1, context=1000, engine="none")[0]
    assert row["step_s"] == pytest.approx(row["step_floor_s"], rel=0.02)


def test_saved_chip__a_second_row_costs_the_copies(tmp_path: Path) -> None:
    table = hw.serve("llama-3.2-1b", kept(tmp_path), batch=[1, 2], context=100, engine="none")
    assert table[1]["weights_s"] / table[0]["weights_s"] == pytest.approx(1 + RATES.packing)
    assert table[1]["step_s"] / 2 > table[0]["step_s"]  # a token of two users costs more than one of a single user


def test_save__what_nobody_measured_stays(tmp_path: Path) -> None:
    path = tmp_path / "chips" / "testbench.toml"
    path.parent.mkdir()
    path.write_text('vendor = "mine"\n', encoding="utf-8")
    with pytest.raises(BadFile, match="was not measured"):
        save(machine(), RATES, "testbench", tmp_path)
    assert path.read_text(encoding="utf-8") == 'vendor = "mine"\n'


def test_prediction__is_hashed_before_and_not_moved_by_measuring() -> None:
    document = prediction(machine(), RATES, quick=True)
    assert len(points()) >= 24
    assert document["sha256"] == hash_of(document["points"])
    asked: dict[str, Any] = {}

    def child(module: str, request: dict[str, Any], threads: int) -> dict[str, Any]:
        asked.update(module=module, request=request)
        return {"times": [[row["predicted_s"] / 2, 0.01] for row in document["points"]]}

    all_results = results(document, 1, child)
    assert asked["module"] == CHILD and all("predicted_s" not in row for row in asked["request"]["points"])
    assert [result.error for result in all_results] == pytest.approx([1.0] * len(all_results))


def test_prediction__rises_with_batch_context_and_prompt() -> None:
    by_point = {tuple(row.values())[:4]: row["predicted_s"] for row in prediction(machine(), RATES, quick=False)["points"]}
    for (kind, shape, batch, tokens), seconds in by_point.items():
        assert 0 < seconds < math.inf
        for more in by_point:
            if more[:2] == (kind, shape) and more[2] >= batch and more[3] >= tokens:
                assert by_point[more] >= seconds


def test_memory_need__holds_the_largest_decoder() -> None:
    shape = SHAPES["routed"]
    assert memory_need(quick=True) > 4 * shape.layers * shape.experts * 3 * shape.hidden * shape.expert_width


def test_command__an_unknown_record_and_a_taken_name_are_refused(cli: Cli) -> None:
    answer = cli("measure", "--decode", "--record", "nobody")
    assert answer.status == 2 and "measure --save NAME" in answer.err
    answer = cli("measure", "--save", "h100-sxm")
    assert answer.status == 2 and "no chip or system of the catalogue" in answer.err
    answer = cli("measure", "--record", "laptop")
    assert answer.status == 2 and "--decode" in answer.err


def test_efficiency_file__is_of_its_chip_alone(tmp_path: Path) -> None:
    chip = kept(tmp_path).chip
    assert chip.efficiency is not None and find_chip("h100-sxm").efficiency is None


def test_prediction__a_single_row_reads_short_matrices_as_slowly_as_measured() -> None:
    """On a machine that reads matrices of half the outputs at half the speed, a decoder of short ones takes longer for its bytes."""
    single = next(time for time in machine().matmuls if time.rows == 1)
    slow = replace(single, inner=2000, columns=500, seconds=2 * single.seconds)
    uneven = replace(machine(), matmuls=(*machine().matmuls, slow))

    def over_wide(record: MachineRecord) -> float:
        rows = {tuple(row.values())[:4]: row["predicted_s"] for row in prediction(record, rates_of(record), quick=True)["points"]}
        each = [rows["decode", name, 1, 64] / float(total_params(model_of(SHAPES[name]))) for name in ("narrow", "wide")]
        return each[0] / each[1]

    assert over_wide(uneven) > 1.05 * over_wide(machine())


def test_the_lab_goes_by_the_format_of_its_decoder() -> None:
    """Where torch is there, a processor multiplies faster in 16 bits: the decoder of 32 bits is not predicted by that."""
    fast = [time | {"format": "bfloat16", "element": 2, "seconds": time["seconds"] / 8} for time in times()]
    plain, both = (machine().as_dict() | {"matmuls": [*times(), *more]} for more in ([], fast))
    predicted = [calibrate(BatchSetup(shape=next(iter(SHAPES.values()))), child)
                 for child in (lambda *_: plain, lambda *_: both)]  # fmt: skip
    assert predicted[0] == predicted[1]
    assert of_dict(both).main == "bfloat16"
    assert Cli()("measure --device card --threads 2").status == 2

"""One quantity by two ways: the memory of a sequence by every verb, bytes of an exchange by counting them, hops by walking a tree."""

from __future__ import annotations

import random

import pytest

from headway.core.errors import HeadwayError
from headway.hardware.rack import need
from headway.hardware.system import system
from headway.laws.rack import hops_through_switches
from headway.models.config import catalogue_index, model
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.capacity import even_split
from headway.performance.layout import Layout
from headway.serving.serve import serve
from support.command import Cli

SEED = 20261125
MACHINE = "8xh100-sxm"


@pytest.mark.parametrize("name", [row["name"] for row in catalogue_index()])
def test_memory_of_a_sequence__is_one_number_in_serve_capacity_and_rack(name: str) -> None:
    """Tensor parallelism off, so that a chip holds the whole sequence; a fourth of the models at a time is a length of its own."""
    machine, found = system(MACHINE), model(name)
    context = (1_000, 8_000, 131_072, 500_000)[sum(map(ord, name)) % 4]
    split = even_split(found, machine, Precision(), Assumptions(), 1, context)
    (row,) = serve(found, machine, Layout(tp=1), batch=1, context=context).rows()
    assert float(split.sequence_bytes) == pytest.approx(float(row["kv_bytes_chip"]), rel=1e-12)
    if row["kv"].startswith("bf16") and found.precision.state == "bf16":  # the rack's table counts two bytes of each element
        assert float(need(found, context).sequence) == pytest.approx(float(row["kv_bytes_chip"]), rel=1e-12)


@pytest.mark.parametrize("name", ["qwen3-vl-8b", "gemma-3-27b", "llama-4-scout-17b-16e", "gpt2", "opt-125m", "llama-3.1-8b"])
def test_weights__are_one_number_in_serve_capacity_and_rack(name: str) -> None:
    """Towers, learned positions and tied tables included."""
    machine, found = system(MACHINE), model(name)
    (row,) = serve(found, machine, Layout(tp=1), batch=1, context=1000).rows()
    split = even_split(found, machine, Precision(), Assumptions(), 1, 1000)
    assert float(split.weights_bytes) == pytest.approx(float(row["weights_bytes_chip"]), rel=1e-9)
    assert float(need(found, 1000).weights) == pytest.approx(float(row["weights_bytes_chip"]), rel=1e-9)


def test_memory__of_500_drawn_formats_batches_and_lengths_is_one_number() -> None:
    """Serve's chip that holds everything beside capacity's sum: weights, a sequence, and whether the batch has room."""
    dice, names = random.Random(f"{SEED} formats"), [row["name"] for row in catalogue_index()]
    machine, count = system("1xh200"), 0
    while count < 500:
        found, formats = model(dice.choice(names)), Precision(weights=dice.choice(("", "bf16", "fp8", "int8")), kv=dice.choice(("", "fp8")))
        batch, context = int(10 ** dice.uniform(0, 2)), int(10 ** dice.uniform(2, 5.5))
        load = {"batch": batch, "context": context}
        try:
            split = even_split(found, machine, formats, Assumptions(), batch, context)
        except HeadwayError:  # a format that the chip does not have: by both
            with pytest.raises(HeadwayError):
                serve(found, machine, Layout(tp=1), **load, precision=formats)
            continue
        (row,) = serve(found, machine, Layout(tp=1), **load, precision=formats).rows()
        asked = SEED, found.name, formats, batch, context
        assert float(split.weights_bytes) == pytest.approx(float(row["weights_bytes_chip"]), rel=1e-9), asked
        assert float(split.sequence_bytes) * batch == pytest.approx(float(row["kv_bytes_chip"]), rel=1e-9), asked
        if split.fits != row["fits"]:  # buffers of a step, which capacity leaves out
            assert split.fits and float(split.load_bytes) > 0.9 * float(split.usable_bytes), asked
        count += 1


def test_all_to_all__time_is_that_of_the_bytes_counted_link_by_link(cli: Cli) -> None:
    """Each of m chips holds 1/m of an array and keeps 1/m of that; what goes to a chip of its own domain takes the inner link."""
    rng = random.Random(SEED)
    for _ in range(12):
        domains, size, inner = rng.choice((2, 3, 4, 9)), rng.choice((0.5e9, 1e9, 8e9)), rng.choice((50e9, 450e9, 900e9))
        chips = 8 * domains
        out = rng.choice((25e9, 50e9, 400e9, inner))
        command = f"collective all-to-all {size:.0f} --mesh X{chips} --on {chips}xh100-sxm --out-bw {out:.0f}B/s"
        (row,) = cli.rows(f"{command} --set chip.scale_up_bw={inner:.0f}B/s")
        piece = size / chips**2
        within, beyond = 7 * piece / inner, (chips - 8) * piece / out
        assert row["transfer_s"] == pytest.approx(max(within, beyond), rel=1e-9)


def test_hops__of_a_folded_tree_by_counting_its_levels() -> None:
    for ports in (4, 36, 72, 144):
        for chips in (1, 2, 3, ports // 2, ports, ports + 1, 2 * (ports // 2) ** 2, 2 * (ports // 2) ** 2 + 1):
            levels = 0
            while chips > 1 and (levels == 0 or 2 * (ports // 2) ** levels < chips):
                levels += 1
            assert float(hops_through_switches(chips, ports)) == 2 * levels, (chips, ports)

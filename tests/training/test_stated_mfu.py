"""`--mfu` stands for the step: a run takes its model FLOPs over that share of the peak, and a prefill too."""

from __future__ import annotations

import pytest

from support.command import Cli

RUN = "train llama-3.1-70b --on 1024xh100-sxm --tokens 15T"
# FLOPs of a token by hand: 6 per parameter outside the embedding (head included), and attention's causal half, forward and twice backward.
PARAMS, LAYERS, HIDDEN, SEQUENCE, PEAK = 70_553_706_496 - 128_256 * 8_192, 80, 8_192, 4_096, 989.4e12
FLOP = 6 * PARAMS + 3 * LAYERS * 4 * HIDDEN * SEQUENCE / 2


@pytest.mark.parametrize("mfu", [0.2, 0.4, 0.55])
def test_train__days_by_hand(cli: Cli, mfu: float) -> None:
    best = cli(f"{RUN} --mfu {mfu} -o json").rows[0]
    assert best["mfu"] == pytest.approx(mfu, rel=1e-12)
    assert best["run_s"] == pytest.approx(15e12 * FLOP / (1024 * PEAK * mfu), rel=1e-3)
    assert best["step_lo_s"] == best["step_s"] == best["step_hi_s"]


def test_train__the_layout_is_that_of_the_laws(cli: Cli) -> None:
    names = ("tp", "pp", "dp", "vpp", "zero", "micro_batch", "memory_bytes_chip")
    plain, stated = (cli(f"{RUN}{flag} -o json").rows[0] for flag in ("", " --mfu 0.3"))
    assert [stated.get(name) for name in names] == [plain.get(name) for name in names]
    assert stated["step_floor_s"] == plain["step_floor_s"]


def test_serve__a_prompt_by_hand(cli: Cli) -> None:
    row = cli("serve llama-3.1-70b --on 8xh100-sxm --tp 8 --prompt 8192 --output 2 --batch 1 --mfu 0.5 -o json").rows[0]
    head = 2 * 128_256 * HIDDEN  # of the last token alone
    flop = 8192 * 2 * (PARAMS - 128_256 * HIDDEN) + head + LAYERS * 4 * HIDDEN * 8192**2 / 2
    assert row["ttft_s"] == pytest.approx(flop / (8 * PEAK * 0.5), rel=0.01)


@pytest.mark.parametrize(
    "command", [f"{RUN} --mfu 1.2", f"{RUN} --mfu 0", "serve llama-3.1-8b --on h200 --prompt 1k --output 2 --mfu 0.5 --eff-compute 0.4"]
)
def test_wrong_input__is_one_line(cli: Cli, command: str) -> None:
    answer = cli(command)
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1) and "--mfu" in answer.err

"""Random closed loops: the law of `serve` against the simulation of `sim`, each asked the same."""

from __future__ import annotations

import numpy as np
import pytest

from reference.drawn_loops import drawn_loops
from support.command import command

R1 = ("deepseek-r1", "--on", "8xh200-sxm", "--tp", "8", "--engine", "sglang")


def test_closed_loops__serve_and_sim_agree() -> None:
    errors = [law["ttft_s"] / sim["mean_ttft_s"] - 1 for _, law, sim in drawn_loops(40, 40)]
    assert np.median(np.abs(errors)) <= 0.15


@pytest.mark.parametrize("users", [8, 64])
def test_closed_loop__means_lengths_that_scatter_as_a_benchmark_draws_them(users: int) -> None:
    served = command("serve", *R1, "--batch", users, "--prompt", 922, "--output", 922, "-o", "json").rows[0]["ttft_s"]
    scattered = command("sim", *R1, "--users", users, "--prompt", "uniform:819,1024", "--output", "uniform:819,1024", "-o", "json")
    assert served == pytest.approx(scattered.rows[0]["mean_ttft_s"], rel=0.2)


def test_one_length__is_a_note_of_both_verbs() -> None:
    """64 users who march in step: serve tells both times, sim tells why."""
    served = command("serve", *R1, "--batch", 64, "--prompt", 922, "--output", 922, "-o", "json")
    (told,) = [note for note in served.notes if "march in step" in note]
    alike = command("serve", *R1, "--batch", 64, "--prompt", 922, "--output", 922, "--length-cv", 0, "-o", "json")
    assert f"{alike.rows[0]['ttft_s']:.3g} s instead of" in told and not any("march" in note for note in alike.notes)
    played = command("sim", *R1, "--users", 64, "--prompt", 922, "--output", 922, "-o", "json")
    assert any("march in step" in note for note in played.notes)
    assert alike.rows[0]["ttft_s"] == pytest.approx(played.rows[0]["mean_ttft_s"], rel=0.03)
    assert not any("march" in note for note in command("sim", *R1, "--users", 1, "--prompt", 922, "--output", 922, "-o", "json").notes)


def test_length_cv__is_refused_where_nothing_marches() -> None:
    for words in ("--rate 1 --prompt 500 --output 50", "--context 500"):
        refused = command("serve", "llama-3.1-8b", "--on", "h100", *words.split(), "--length-cv", "0.3")
        assert refused.status == 2 and "--length-cv" in refused.err
    refused = command("sim", "llama-3.1-8b", "--on", "h100", "--users", "4", "--prompt", "500", "--output", "50", "--length-cv", "0.3")
    assert refused.status == 2 and "uniform:900,1100" in refused.err

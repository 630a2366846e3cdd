"""`--step`: a step law of the user's own, read by its own grammar, against M/D/1, M/G/1, processor sharing and batch service."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

from headway.cli.main import main
from headway.core.errors import HeadwayError
from headway.simulation import results
from headway.simulation.simulate import simulate
from headway.simulation.step_law import parse
from headway.simulation.traffic.requests import Traffic
from reference.queueing import md1_wait_s, mg1_wait_s
from support.command import Cli
from support.simulated import RULES
from support.steady import BEAT, COUNT, FAST, play, random, response

SEATS, BUDGET, LONGEST = 64, 2048, 4096.0
STEP = {"decodes": 6.0, "prompts": 2.0, "prompt_tokens": 300.0, "context": 5000.0}  # one step, in whose terms the laws below are read


def of_step(text: str) -> float:
    return float(parse(text).time_s(STEP["decodes"], STEP["context"], STEP["prompt_tokens"], 0.0, STEP["prompts"]))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5ms", 0.005), ("5 ms + 0.1ms*n", 0.0058), ("0.1ms*n+5ms", 0.0058), ("2us*tokens", 612e-6), ("1us * context / 8", 625e-6),
        ("(1ms + 2ms)*prompts - 1ms", 0.005), ("10ms/2/5", 0.001), ("10ms/(2*5)", 0.001), ("1us*n**2", 64e-6),
        ("1us*n^0.5", math.sqrt(8) * 1e-6),
        ("-1ms + 2ms*decodes", 0.011), ("max(1ms, 1us*tokens, 2ms)", 0.002), ("min(1ms, 1us*tokens)", 306e-6),
        ("1ms*ceil(n/16)", 0.001),
        ("1ms*floor(tokens/100)", 0.003), ("1ms*sqrt(n+1)", 0.003), ("1ms*log(n)", math.log(8) * 1e-3), ("1ms*exp(0*n)", 0.001),
        ("1e-1ms*n", 8e-4),
        ("1ms*prompt_tokens/tokens", 0.3 / 306), ("1ns*2k*n", 16e-6), ("2**3*1ms", 0.008), ("1ms + .5ms", 0.0015),
    ],
)  # fmt: skip
def test_step_law__says_what_arithmetic_says(text: str, seconds: float) -> None:
    assert of_step(text) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "wants"),
    [
        ("5", "no unit of time"), ("0.1*n", "no unit of time"), ("5ms*2ms", "no time"), ("5ms + 0.1*n", "lacks its unit"),
        ("5ms + n", "lacks its unit"),
        ("3n*1ms", "3*n"), ("5ms + 0.1ms*m", "one of n, decodes"), ("cosh(n)*1ms", "one of max, min"), ("5ms n", "a sign between"),
        ("5ms +", "a time of a step"),
        ("(5ms", "closing bracket"), ("", "a time of a step"), ("1ms/(n-3)", "a division by a number"), ("1ms/0", "above 0"),
        ("1ms*n**-1", "a power above 0"),
        ("1ms*2**n", "a power above 0"), ("__import__('os').getcwd()", "a time of a step"), ("n.real*1ms", "a time of a step"),
        ("[5ms]", "a time of a step"), ("log(5ms)", "one count"),
        ("(" * 60 + "5ms" + ")" * 60, "levels of brackets"), ("5ms if n else 6ms", "a sign between"),
    ],
)  # fmt: skip
def test_step_law__refuses_what_is_no_time(text: str, wants: str) -> None:
    with pytest.raises(HeadwayError) as refused:
        parse(text)
    assert wants in str(refused.value)


@pytest.mark.parametrize("text", ["5ms - 0.1ms*n", "1ms*log(n)", "1ms*exp(n*2000)", "1ms*prompt_tokens", "1ms*sqrt(10-n)"])
def test_step_law__refuses_a_step_without_a_time(text: str) -> None:
    """None of these is above 0 in every step of up to 64 requests."""
    with pytest.raises(HeadwayError, match="above 0 of every step"):
        parse(text).pace(SEATS, BUDGET, LONGEST)


def test_step_law__compiled_equals_plain() -> None:
    if not FAST:
        pytest.skip("needs numba")
    pace = parse("max(1ms, 0.05ms*n + 1us*prompt_tokens + 1ns*context) + 0.1ms*ceil(n/8)").pace(SEATS, BUDGET, LONGEST)
    rng = np.random.default_rng(2)
    traffic = Traffic.of(random(300.0, 3, 2000), rng.integers(1, 400, 2000), rng.integers(1, 60, 2000))
    rules = RULES._replace(seats=SEATS, budget=BUDGET, chunk=256, capacity=10**6)
    runs = [simulate(traffic, pace, rules, how=how) for how in ("plain", "compiled")]
    assert np.array_equal(runs[0].finish, runs[1].finish)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_step_law__proportional_to_the_batch_is_processor_sharing(load: float) -> None:
    """M/G/1 processor sharing: the mean response is the mean service over 1 - load, whatever the services (Kleinrock 1967)."""
    each, mean, count = 1e-4, 300, COUNT // 6
    lengths = np.random.default_rng(5).choice([30, 30, 30, 1110], count) + 1  # the first token is the prompt's
    run = play(Traffic.of(random(load / (each * mean), 6, count), 1, lengths), parse("0.1ms*n").pace(2000, 10**6, 4096.0))
    spent = response(run)[count // 20 :]
    assert spent.mean() == pytest.approx(each * mean / (1 - load), rel=0.05 if FAST else 0.3)


@pytest.mark.parametrize("load", [0.4, 0.9])
def test_step_law__linear_batch_service(load: float) -> None:
    """Dynamic batching (Inoue 2021): a step of all who wait takes a + b n; batches are the chain of who comes during the last."""
    fixed, each, most = 0.004, 0.001, 120
    rate = load / each
    sizes = np.arange(1, most)
    mean = rate * (fixed + each * sizes)[:, None]
    came = np.exp(-mean + np.arange(most) * np.log(mean) - np.array([math.lgamma(k + 1) for k in range(most)]))
    change = came[:, 1:].copy()
    change[:, 0] += came[:, 0]  # after none came, the one who comes next
    share = np.linalg.matrix_power(change / change.sum(axis=1, keepdims=True), 4096)[0]
    run = play(Traffic.of(random(rate, 7, COUNT // 2), 1, 1), parse("4ms + 1ms*n").pace(2000, 10**6, 4096.0))
    assert results.batches(run)["mean_batch"] == pytest.approx(float(share @ sizes), rel=0.02 if FAST else 0.1)


# -- as a command ---------------------------------------------------------------------------------------------------------------

ONE = "sim --max-seqs 1 --prompt 1 --output 1 --requests 40000 --loop plain"


def test_command__one_server_without_a_model(cli: Cli) -> None:
    """M/D/1: utilisation, the share that waits and the mean wait."""
    rate, load = 40.0, 40.0 * BEAT
    [row] = cli.rows(f"{ONE} --step 20ms --rate {rate}")
    assert row["utilisation"] == pytest.approx(load, rel=0.01)
    assert row["wait_share"] == pytest.approx(load, abs=0.02)
    assert row["mean_queue_s"] == pytest.approx(float(md1_wait_s(rate, BEAT)), rel=0.1)
    assert (row["step_law"], row["replicas"], row["kv_tokens"]) == ("20ms", 1, None)
    assert "model" not in row and "usd_per_request" not in row


def test_command__varied_services(cli: Cli) -> None:
    """M/G/1: prompts of 1 to 399 tokens, a step in proportion."""
    rate, mean, cv = 25.0, 0.02, math.sqrt((399**2 - 1) / 12) / 200
    [row] = cli.rows(f"{ONE} --step 0.1ms*prompt_tokens+1ns --rate {rate} --prompt uniform:1,399".replace(" --prompt 1 ", " "))
    assert row["mean_queue_s"] == pytest.approx(float(mg1_wait_s(rate, mean, cv)), rel=0.1)


def test_command__law_in_place_of_the_model_of_a_machine(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    """Memory and price are the machine's, steps the law's: answers of 100 tokens one after another take 100 steps."""
    about = "sim llama-3.1-8b --on h100-sxm --users 1 --prompt 100 --output 100 --requests 20 --loop plain --request-overhead 0ms"
    [row], [usual] = cli.rows(f"{about} --step 7ms"), cli.rows(about)
    assert row["mean_tpot_s"] == pytest.approx(0.007) and row["mean_e2e_s"] == pytest.approx(0.7)
    assert row["kv_tokens"] == usual["kv_tokens"] and row["usd_per_request"] > 0
    assert main(f"{about} --step 7ms".split()) == 0
    assert "steps of 7ms" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "wants"),
    [
        ("--mfu 0.4", "MODEL --on MACHINE"), ("--tp 2", "MODEL --on MACHINE"), ("--prefix-cache hbm:9GB", "MODEL --on MACHINE"),
        ("--policy disaggregated", "MODEL --on MACHINE"), ("--preemption swap", "MODEL --on MACHINE"),
        ("--on h100-sxm", "MODEL --on MACHINE"),
        ("--set chip.hbm_bw=2TB/s", "MODEL --on MACHINE"), ("llama-3.1-8b --on h100-sxm --overlap full", "no --step"),
    ],
)  # fmt: skip
def test_command__refuses_what_a_law_says_nothing_with(capsys: pytest.CaptureFixture[str], flags: str, wants: str) -> None:
    assert main(f"sim {flags} --step 5ms --rate 3 --prompt 9 --output 9".split()) == 2
    assert wants in capsys.readouterr().err


def test_command__never_evaluates(capsys: pytest.CaptureFixture[str]) -> None:
    """A text that Python would run is refused before anything of it is."""
    before = set(sys.modules)
    assert main(["sim", "--step", "__import__('this')*5ms", "--rate", "3", "--prompt", "9", "--output", "9"]) == 2
    assert "this" not in set(sys.modules) - before
    assert "Traceback" not in capsys.readouterr().err

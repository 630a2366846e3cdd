"""`headway matmul`, `headway collective` and `solve` of any verb: hand-computed shares, rules of sharding, wrong input."""

from __future__ import annotations

import math

import pytest

from support.command import Cli

NUMBERS = ["--peak", "100T", "--from", "1TB/s"]


def collectives(rows: list[dict]) -> list[tuple[str, float]]:
    """Kind and bytes of each collective of a product."""
    return [(row["kind"], row["bytes"]) for row in rows if row["kind"] not in ("product", "total")]


def test_matmul__counts_flop_bytes_and_times_by_hand(cli: Cli) -> None:
    (row, _) = cli.rows("matmul", "bf16[B, D] [D, F]", "B=64", "D=1000", "F=2000", *NUMBERS)
    assert row["flop"] == 2 * 64 * 1000 * 2000
    assert row["bytes"] == 2 * (64 * 1000 + 1000 * 2000 + 64 * 2000)
    assert row["compute_s"] == pytest.approx(row["flop"] / 100e12, rel=1e-12)
    assert row["memory_s"] == pytest.approx(row["bytes"] / 1e12, rel=1e-12)
    assert (row["bound"], row["time_s"], row["network_s"]) == ("memory", row["memory_s"], None)
    assert row["serial_s"] == pytest.approx(row["compute_s"] + row["memory_s"], rel=1e-12)


# The four cases of How to Scale Your Model, chapter 3, with I = J = K = 4096 in bf16 over X = 4 and Y = 2.
SIZE = 2 * 4096 * 4096
CASES = {
    "A[I_X, J] B[J, K_Y]": [],
    "A[I, J_X] B[J, K]": [("all-gather", SIZE)],
    "A[I, J_X] B[J_X, K]": [("all-reduce", SIZE)],
    "A[I, J_X] B[J_X, K] -> C[I, K_X]": [("reduce-scatter", SIZE)],
    "A[I_X, J] B[J, K_X]": [("all-gather", SIZE)],
    "A[I_X, J] B[J_X, K] -> C[I_X, K]": [("all-gather", SIZE)],
    "A[I_X, J] B[J_X, K_Y] -> C[I_X, K_Y]": [("all-gather", SIZE / 2)],
    "A[I_X, J_Y] B[J_Y, K] -> C[I_X, K]": [("all-reduce", SIZE / 4)],
    "A[I_X, J] B[J, K] -> C[I, K_X]": [("all-to-all", SIZE)],
    "A[I_X, J] B[J, K] -> C[I, K]": [("all-gather", SIZE)],
    "In[I, J_Y] W1[J, K_Y] W2[K_Y, J] -> Out[I, J_Y]": [("all-gather", SIZE), ("reduce-scatter", SIZE)],
}


@pytest.mark.parametrize("product", CASES)
def test_matmul__sharding_needs_the_collectives_of_the_book(cli: Cli, product: str) -> None:
    sizes = [f"{name}=4096" for name in "IJK"]
    rows = cli.rows("matmul", product, *sizes, "--mesh", "X4,Y2", "--network", "ring", "--link-bw", "50GB/s", *NUMBERS)
    assert collectives(rows) == CASES[product]


def test_matmul__cut_and_reduce_is_the_other_strategy(cli: Cli) -> None:
    words = [
        "matmul",
        "A[B, D] W[D_X, F]",
        "B=128",
        "D=4096",
        "F=8192",
        "--mesh",
        "X4",
        "--network",
        "ring",
        "--link-bw",
        "50GB/s",
        *NUMBERS,
    ]
    gathered, reduced = cli.rows(*words), cli.rows(*words, "--strategy", "reduce")
    assert collectives(gathered) == [("all-gather", 2 * 4096 * 8192)]
    assert collectives(reduced) == [("all-reduce", 2 * 128 * 8192)]
    assert gathered[0]["flop"] == 4 * reduced[0]["flop"]


def counted(equation: str, sizes: dict[str, float]) -> float:
    """Value of an equation such as `2 B D / 4 + 2 D F`."""
    products = (part.partition(" / ") for part in equation.split(" + "))
    return sum(math.prod(sizes.get(word) or float(word) for word in above.split()) / float(below or 1) for above, _, below in products)


@pytest.mark.parametrize(
    ("product", "mesh", "equation", "copies"),
    [
        ("A[B_X, D] W[D, F_Y]", "X4,Y8", "2 B D F / 32", 1),
        ("A[B_X, D] W[D, F]", "X4,Y8", "2 B D F / 4", 8),  # the chips along Y do the same
        ("In[B, D_Y] W[D, F_Y] V[F_Y, D] -> Out[B, D_Y]", "Y8", "2 B D F / 8 + 2 B F D / 8", 1),
        ("bf16[B, D] int8[D, F]", "", "2 B D F", 1),
    ],
)
def test_matmul__equations_count_what_the_numbers_do(cli: Cli, product: str, mesh: str, equation: str, copies: int) -> None:
    sizes, flags = {"B": 64.0, "D": 1024.0, "F": 4096.0}, ["--mesh", mesh] if mesh else []
    links = ["--network", "ring", "--link-bw", "50GB/s"] if mesh else []
    rows = cli.rows("matmul", product, *(f"{name}={size:g}" for name, size in sizes.items()), *flags, *links, *NUMBERS)
    total = rows[0]
    assert total["flop_equation"] == equation
    assert counted(equation, sizes) == total["flop"] and counted(total["bytes_equation"], sizes) == total["bytes"]
    assert total["flop_all_chips"] == copies * math.prod(sizes.values()) * 2 * (1 + equation.count("+"))
    assert total["bytes_all_chips"] == total["bytes"] * total["chips"]
    symbols = cli.json("matmul", product, *flags)
    assert symbols["answer"] == f"Each chip computes {equation} FLOP."
    assert [row["bytes_equation"] for row in symbols["rows"]] == [row["bytes_equation"] for row in rows]


def test_matmul__square_sizes_in_numbers_meet_in_order(cli: Cli) -> None:
    by_number = cli.rows("matmul", "[64, 64] [64, 64]", *NUMBERS)[0]
    by_name = cli.rows("matmul", "[A, B] [B, C]", "A=64", "B=64", "C=64", *NUMBERS)[0]
    assert by_number["flop"] == by_name["flop"] == 2 * 64**3
    assert cli.rows("matmul", "[8, 128, 64] [8, 64, 32]", *NUMBERS)[0]["flop"] == 2 * 8 * 128 * 64 * 32


def test_matmul__sizes_in_numbers_are_multiplied(cli: Cli) -> None:
    total = cli.rows("matmul", "A[4096, 4096] W[4096, D]")[0]
    assert total["flop_equation"] == "33554432 D" and total["bytes_equation"] == "33554432 + 8192 D + 8192 D"


def test_matmul__needs_links_only_where_something_is_sent(cli: Cli) -> None:
    sizes = ("B=3", "D=64", "F=64", "--mesh", "X4,Y8", *NUMBERS)
    total = cli.json("matmul", "A[B_X, D] W[D, F_Y]", *sizes)
    assert total["rows"][0]["network_s"] is None and total["rows"][0]["flop"] == 2 * 3 * 64 * 64 / 32
    assert "B=3 is no multiple of the 4 chips along X: figures are of an even split, what runs pads it to 4" in total["notes"]
    assert "a machine, or --link-bw" in cli("matmul", "A[B, D_Y] W[D_Y, F]", *sizes).err


def test_matmul__balanced_rows_have_equal_times(cli: Cli) -> None:
    rows = cli.rows("matmul", "[B, D] int8[D, F]", "B=64", "D=4096", "F=4096", *NUMBERS)
    at = cli.rows("matmul", "[B, D] int8[D, F]", f"B={rows[0]['balanced']!r}", "D=4096", "F=4096", *NUMBERS)[0]
    assert at["compute_s"] == pytest.approx(at["memory_s"], rel=1e-9)


def test_collective__all_reduce_is_a_scatter_and_a_gather(cli: Cli) -> None:
    times = {
        name: cli.rows("collective", name, "1GB", "--mesh", "X8", "--on", "8xh100")[0]["time_s"]
        for name in ("all-gather", "reduce-scatter", "all-reduce")
    }
    assert times["all-gather"] == times["reduce-scatter"] == pytest.approx(1e9 * 7 / 8 / 450e9, rel=1e-12)
    assert times["all-reduce"] == pytest.approx(2 * times["all-gather"], rel=1e-12)


def test_collective__exact_share_goes_to_the_limit_on_long_rings(cli: Cli) -> None:
    shares = []
    for members in (2, 8, 4096):
        row = cli.rows("collective", "all-gather", "1TB", "--mesh", f"X{members}", "--network", "ring", "--link-bw", "50GB/s")[0]
        assert row["limit_s"] == pytest.approx(1e12 / 100e9, rel=1e-12)
        shares.append(row["exact_s"] / row["limit_s"])
    assert shares == pytest.approx([1 / 2, 7 / 8, 4095 / 4096], rel=1e-9)


def test_collective__send_takes_the_short_way_round_a_ring(cli: Cli) -> None:
    words = ["collective", "send", "1kB", "--mesh", "X16", "--link-bw", "45GB/s", "--hop", "1us", "--to", "13"]
    assert cli.rows(*words, "--network", "ring")[0]["latency_s"] == pytest.approx(3e-6, rel=1e-9)
    assert cli.rows(*words, "--network", "line")[0]["latency_s"] == pytest.approx(13e-6, rel=1e-9)


@pytest.mark.parametrize(
    ("words", "latency", "transfer"),
    [
        ("16777216 --mesh X4,Y4 --on tpu-v5e --link-bw 45GB/s --to 3,3", 6e-6, 16777216 / 90e9),
        ("540kB --mesh X4,Y4 --on tpu-v5e --link-bw 45GB/s --to 3,3", 6e-6, 6e-6),
        ("540kB --mesh X4,Y4 --on tpu-v5e --link-bw 45GB/s --to 3,3 --share limit", 6e-6, 6e-6),
        ("1GB --mesh X8 --network switch --link-bw 450GB/s --hop 3us --to 5", 3e-6, 1e9 / 450e9),
        ("1B --mesh X8 --network switch --link-bw 450GB/s --hop 3us --to 5", 3e-6, 1 / 450e9),
    ],
)  # fmt: skip
def test_collective__a_message_is_latency_plus_transfer(words: str, latency: float, transfer: float, cli: Cli) -> None:
    """The last byte leaves after the transfer and then has every hop before it: 192.4 us and 12 us, not the longer of the two."""
    (row,) = cli.rows("collective", "send", *words.split())
    assert (row["latency_s"], row["transfer_s"]) == pytest.approx((latency, transfer), rel=1e-6)
    assert row["time_s"] == pytest.approx(latency + transfer, rel=1e-9)
    assert row["bandwidth"] == pytest.approx(row["bytes"] / (latency + transfer), rel=1e-9)


def test_solve__any_verb_by_its_command(cli: Cli) -> None:
    (row,) = cli.rows("solve collective all-gather 34MB --mesh X4 --network line --link-bw 1GB/s --for link_bw --so-that time_s=1ms")
    assert row["solution"] == pytest.approx(34e6 * 3 / 4 / 1e-3, rel=1e-9)
    (row,) = cli.rows("solve scale --active 70B --for tokens --so-that flop=5.88e23")
    assert row["solution"] == pytest.approx(5.88e23 / 6 / 70e9, rel=1e-6)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["matmul", "bf17[B, 64] [64, 64]", "B=4", *NUMBERS], "bf16"),
        (["matmul", "A[B, D]"], "two arrays or more"),
        (["matmul", "A[B, D] W[E, F]", "B=1", "D=1", "E=1", "F=1", "--on", "h100"], "a dimension that both arrays have"),
        (["matmul", "A[B, D] W[D, F]", "B=1", "D=8", "--on", "h100"], "F=4096"),
        (["matmul", "A[B, D] W[D, F]", "B=1", "D=8", "F=8", "G=3", "--on", "h100"], "no dimension named 'G'"),
        (["matmul", "A[B_X, D] W[D, F]", "B=1", "D=8", "F=8", "--on", "h100"], "no mesh axis named 'X'"),
        (["matmul", "A[B_X, D_X] W[D, F]", "B=1", "D=8", "F=8", "--mesh", "X4", "--on", "h100"], "each mesh axis once"),
        (["matmul", "A[B, D] W[D, F]", "B=1", "D=8", "F=8"], "a chip or machine, or --peak"),
        (["matmul", "A[B, D] W[D, F] -> C[B, G]", "B=1", "D=8", "F=8", "--on", "h100"], "G is in none of them"),
        (["matmul", "A[B, D] W[D, F]", "B=x", "D=8", "F=8", "--on", "h100"], "a number, such as"),
        (["matmul", "A[B, D] W[D, B]"], "-> [B], or another name for one B"),
        (["matmul", "A[B, D] W[D, F]", "B=1", "D=8", "F=8", "--on", "h100", "--dtype", "fp7"], "no number format named 'fp7'"),
        (["collective", "all-gahter", "1GB", "--mesh", "X4", "--on", "tpu-v5e"], "did you mean all-gather"),
        (["collective", "all-gather", "1GB", "--on", "tpu-v5e"], "the axes of the chips"),
        (["collective", "all-gather", "1GB", "--mesh", "X4"], "a machine, or --link-bw"),
        (["collective", "all-gather", "1s", "--mesh", "X4", "--on", "tpu-v5e"], "a quantity in byte"),
        (["collective", "all-gather", "bf16[8_X, 8]", "--over", "Y", "--mesh", "X4,Y4", "--on", "tpu-v5e"], "is whole along Y"),
        (["collective", "all-gather", "1GB", "--mesh", "X4,Y4,Z4", "--on", "tpu-v5e"], "at most 2 axes"),
        (["collective", "send", "1GB", "--mesh", "X4", "--on", "tpu-v5e", "--to", "9"], "places from 0 to 3"),
        (["collective", "send", "1GB", "--mesh", "X4", "--on", "tpu-v5e"], "the chip that receives"),
        (["collective", "all-gather", "1GB", "--mesh", "4", "--on", "tpu-v5e"], "axes with their chips"),
        (["solve", "show", "--for", "a", "--so-that", "b=1"], "no verb to solve named 'show'"),
        (["solve", "scale", "--active", "70B", "--for", "speed", "--so-that", "flop=1"], "no input to solve for named 'speed'"),
        (["solve", "scale", "--active", "70B", "--for", "tokens", "--so-that", "speed=1"], "no output named 'speed'"),
    ],
)
def test_mesh__wrong_input_is_one_line(cli: Cli, words: list[str], part: str) -> None:
    answer = cli(*words)
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1), answer
    assert part in answer.err


@pytest.mark.parametrize(("machine", "mesh"), [("8xh100-sxm", "X8"), ("tpu-v5e-4x4", "X4,Y4"), ("tpu-v5p-4x4x8", "X4,Y4,Z8")])
def test_collective__is_over_the_whole_machine_without_a_mesh(cli: Cli, machine: str, mesh: str) -> None:
    plain = cli.json("collective", "all-gather", "1GB", "--on", machine)
    meshed = cli.json("collective", "all-gather", "1GB", "--on", machine, "--mesh", mesh)
    assert plain["rows"] == meshed["rows"]
    assert f"by default --mesh {mesh}: all chips of {machine}" in plain["notes"]


def test_collective__one_chip_has_no_mesh(cli: Cli) -> None:
    answer = cli("collective", "all-gather", "1GB", "--on", "h100")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err == "headway: --mesh: got 'nothing'; wants the axes of the chips, such as X4,Y8, or a machine of several chips\n"

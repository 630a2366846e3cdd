"""A model by numbers: stated totals are met, published models come back, and a wrong number is one line."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core import schema
from headway.core.errors import HeadwayError
from headway.core.formula import anonymous, replay
from headway.core.trace import record
from headway.models import totals
from headway.models.by_numbers import ByNumbers
from headway.models.config import model
from headway.models.numbers import KEYS
from support.command import Cli

BY_COUNTS = "(params=30B active=3B layers=48 kv_bytes=100kB)"


def counts(text: str) -> tuple[float, float, float]:
    found = model(text)
    return tuple(float(of(found)) for of in (totals.total_params, totals.active_params, totals.kv_bytes_per_token))  # type: ignore[return-value]


def test_numbers__stated_counts_are_met() -> None:
    assert counts("(params=70B layers=80 kv_bytes=327680)") == (70e9, 70e9, 327680)
    whole, active, cache = counts(BY_COUNTS)
    assert (whole, cache) == (30e9, 100e3) and active == pytest.approx(3e9, rel=1e-4)


def test_numbers__assumed_shape_is_that_of_published_models() -> None:
    deepseek = model("(params=671B active=37B layers=61 kv_bytes=70272)")
    assert (int(deepseek.hidden), int(deepseek.blocks[0].ffn.experts)) == (7168, 256)  # type: ignore[union-attr]
    assert int(model("(params=70B layers=80 kv_bytes=320kB)").hidden) == 8192  # Llama-3.1-70B
    qwen = model("(params=30.5B active=3.3B layers=48 kv_bytes=98304)")
    assert (int(qwen.hidden), int(qwen.blocks[0].ffn.experts)) == (2048, 128)  # type: ignore[union-attr]


def test_numbers__shape_of_llama_is_llama() -> None:
    llama = "(hidden=4096 layers=32 heads=32 kv_heads=8 intermediate=14336 vocab=128256)"
    assert counts(llama) == (8030261248, 8030261248, 131072)
    mixtral = "(hidden=4096, layers=32, intermediate=14336, vocab=32000, experts=8, experts_per_token=2)"
    assert counts(mixtral)[0] == 46702792704


def test_numbers__every_default_is_named() -> None:
    notes = " ".join(model("(hidden=4096 layers=32)").notes)
    assert all(word in notes for word in ("assumed", "heads=32", "kv_heads=8", "head_dim=128", "intermediate=11008", "vocab=128256"))
    assert "experts" in " ".join(model(BY_COUNTS).notes)


ASSUMED = [
    ("params=30B layers=48 kv_bytes=200kB", {"hidden": "4096", "heads": "32", "kv_heads": "4", "head_dim": "64"}),
    ("params=30B active=3B layers=48 kv_bytes=100kB", {"hidden": "3072", "heads": "8", "kv_heads": "2", "experts": "256"}),
    ("params=30B active=3B layers=48 kv_bytes=100kB experts=256", {"experts_per_token": "4", "kv_heads": "2"}),
    ("hidden=4096 layers=32", {"heads": "16", "kv_heads": "4", "head_dim": "64", "intermediate": "14336", "vocab": "32000"}),
    ("hidden=4096 layers=32 experts=16", {"experts_per_token": "4", "intermediate": "2048", "kv_heads": "1"}),
]


@pytest.mark.parametrize(("text", "others"), ASSUMED)
def test_numbers__every_assumption_that_moves_a_number_is_a_note(text: str, others: dict[str, str], cli: Cli) -> None:
    """Each dimension typed otherwise moves a step, a memory or the largest tp; the note then no longer names it, and did before."""
    machine = "16x(like=h100-sxm scale_up_domain=16)"

    def answers(extra: str) -> tuple[set[str], list[tuple[float, ...]]]:
        rows, names = [], set()
        for layout in ("1", "2", "4", "8"):
            answer = cli("serve", f"({text} {extra})", "--on", machine, "--tp", layout, "--batch", "8", "--context", "8k", "-o", "json")
            if answer.status:
                rows.append((0.0,))  # a layout that these heads do not allow
                continue
            assumed = [note.removeprefix("assumed: ") for note in answer.notes if note.startswith("assumed")]
            names = {word.partition("=")[0] for note in assumed for word in note.split(", ")}
            rows.append(tuple(answer.rows[0][key] for key in ("step_s", "ttft_s", "kv_bytes_chip")))
        return names, rows

    names, before = answers("")
    assert "weights in bf16 (--weights)" in names
    for name, value in others.items():
        after_names, after = answers(f"{name}={value}")
        assert name in names and name not in after_names, name
        assert after != before, f"{name} moves nothing: why is it noted?"


def test_numbers__the_assumed_kv_heads_of_the_report(cli: Cli) -> None:
    """48 layers of 200 kB hold 8 heads of 128: beyond tp 8 the cache of a chip no longer halves, which the note explains."""
    words = ["serve", "--params", "30B", "--layers", "48", "--kv-bytes", "200kB", "--hidden", "8192", "--on", "16xh100-sxm", "--batch", "8",
             "--context", "8k"]  # fmt: skip
    rows = [cli.json(*words, "--tp", tp) for tp in ("8", "16")]
    chip_bytes = [row["rows"][0]["kv_bytes_chip"] for row in rows]
    assert chip_bytes[1] == pytest.approx(chip_bytes[0]) and any("kv_heads=8" in note for note in rows[1]["notes"])
    stated = cli.json(*words, "--tp", "16", "--kv-heads", "16")
    assert stated["rows"][0]["kv_bytes_chip"] == pytest.approx(chip_bytes[0] / 2)


@given(params=st.integers(10**6, 10**13), share=st.floats(0.03, 1), layers=st.integers(1, 200), kv=st.floats(0, 1e6))
def test_numbers__totals_are_met_or_one_line(params: int, share: float, layers: int, kv: float) -> None:
    active = math.ceil(params * share)
    try:
        whole, used, cache = counts(f"(params={params} active={active} layers={layers} kv_bytes={kv:.6f})")
    except HeadwayError as error:
        assert "\n" not in str(error)
        return
    assert whole == params and 0 < used <= whole
    assert cache == pytest.approx(float(f"{kv:.6f}"), rel=1e-9)


def test_numbers__every_number_replays() -> None:
    found = model(BY_COUNTS)
    with record():
        answers = [totals.total_params(found), totals.active_params(found), totals.kv_bytes_per_token(found)]
    for answer in answers:
        assert anonymous(answer) == []
        assert float(replay(answer)) == pytest.approx(float(answer), rel=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        "()", "(", "(params)", "(params=)", "(params=30B)", "(params=30B layers=48)", "(layers=3)", "(hidden=4096)", "(foo=3)",
        "(params=x layers=3 kv_bytes=1)",
        "(params=30B params=30B)", "(params=30B active=40B layers=48 kv_bytes=1kB)", "(params=30B layers=48 kv_bytes=1kB intermediate=3)",
        "(params=30B layers=48 kv_bytes=1kB heads=32 kv_heads=5)",
        "(params=nan layers=3 kv_bytes=1)", "(params=-3B layers=3 kv_bytes=1)", "(params=30B layers=0 kv_bytes=1)",
        "(hidden=4096 layers=32 kv_bytes=3)",
        "(params=1M layers=2 kv_bytes=1GB)", "(params=1T active=1k layers=2 kv_bytes=1)", "(hidden=4096 layers=32 heads=32 kv_heads=5)",
        "(params=30B active=3B layers=48 kv_bytes=1kB experts=4)", "(hidden=4096 layers=32 experts_per_token=2)",
        "(params=30B layers=2 kv_bytes=3) x",
    ],
)  # fmt: skip
def test_numbers__wrong_grammar_is_one_line(text: str) -> None:
    with pytest.raises(HeadwayError) as caught:
        model(text)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


FLAGS = ("--params", "30B", "--active", "3B", "--layers", "48", "--kv-bytes", "100kB")


@pytest.mark.parametrize(
    "command",
    [
        ("show", "model", *FLAGS), ("serve", *FLAGS, "--on", "8xh100-sxm", "--tp", "8"),
        ("serve", "--on", "h100", "--hidden=4096", "--layers=32"),
        ("serve", BY_COUNTS, "--on", "h100"), ("serve", f"{BY_COUNTS},llama-3.1-8b:4layers", "--on", "h100"),
        ("solve", "serve", *FLAGS, "--on", "8xh100-sxm", "--tp", "8", "--context", "8k", "--for", "batch", "--so-that", "step_s=20ms"),
        ("train", "--params", "7B", "--layers", "32", "--kv-bytes", "128kB", "--on", "64xh100-sxm", "--tokens", "1T"),
        ("cache", *FLAGS, "--on", "8xh100-sxm", "--hold", "1h"),
        ("plan", *FLAGS, "--on", "8xh100-sxm", "--prompt", "4k", "--output", "600", "--tpot", "40ms"),
    ],
)  # fmt: skip
def test_numbers__wherever_a_model_is_asked_for(cli: Cli, command: tuple[str, ...]) -> None:
    answer = cli(*command, "-o", "json").json
    assert answer["rows"]
    if command[0] == "serve":
        assert any(note.startswith("assumed") for note in answer["notes"])


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("serve", "llama-3.1-8b", "--layers", "3", "--on", "h100"), "leave out 'llama-3.1-8b'"),
        (("serve", "--params", "--on", "h100"), "--params"),
        (("serve", *FLAGS, "--layers", "3", "--on", "h100"), "once"), (("serve", "--params", "a b", "--on", "h100"), "one number"),
        (("serve", "llama-3.1-8b", "--on", "h100", "--embedding", "fp3"), "--embedding"),
        (("serve", "llama-3.1-8b", "--on", "h100", "--as", "rnn"), "dense, moe"),
        (("serve", "llama-3.1-8b", "--on", "h100", "--key", "x"), "--key"), (("list", "models", "--params", "3"), "--params"),
        (("scale", "--as", "dense"), "--as"),
    ],
)  # fmt: skip
def test_numbers__wrong_flag_is_one_line(cli: Cli, command: tuple[str, ...], says: str) -> None:
    status, out, err = cli(*command)
    assert (status, out, err.count("\n")) == (2, "", 1) and says in err


def test_numbers__keys_are_the_flags() -> None:
    assert schema.fields(ByNumbers).keys() == KEYS.keys()


def test_numbers__launch_line_leaves_the_model_open(cli: Cli) -> None:
    answer = cli("plan", *FLAGS, "--on", "8xh100-sxm", "--prompt", "4k", "--output", "600", "--launch", "vllm", "-o", "json").json
    assert all("vllm serve $MODEL " in line for line in answer["launch"])


def test_embedding__format_changes_its_bytes_alone(cli: Cli) -> None:
    plain, narrow = (
        cli("serve", "llama-3.1-8b", "--on", "h100", *flags, "-o", "json").rows[0]["weights_bytes_chip"]
        for flags in ((), ("--embedding", "fp8"))
    )
    assert plain - narrow == 2 * 128256 * 4096

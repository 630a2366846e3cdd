"""What a layout divides and what it copies: a whole table, bytes of all chips that add up, sparse attention as others published it."""

from __future__ import annotations

import functools
import random

import pytest

from headway.core.catalog import lines
from headway.core.schema import defaults
from headway.hardware.system import System, system
from headway.laws.collectives.cost import collectives_s
from headway.laws.step.coefficients import IndexTerm, RankWork
from headway.laws.step.parts import index_kernels_s, kernels_s, place
from headway.laws.step.sparse import index_compute_s, index_s
from headway.models import config
from headway.models.precision import Precision
from headway.models.work import ModelWork, work_of
from headway.performance import splits as table
from headway.performance.assumptions import ENGINES, Assumptions
from headway.performance.compile import StepModel, cache, compile_layout
from headway.performance.formats import resolve
from headway.performance.layout import Layout, illegal, shape
from headway.serving.serve import serve
from support.command import Cli

SEED, DRAWS = 20261126, 60
MACHINE = "64xh200-sxm"
NAMES = sorted(line["name"] for line in lines("model_index.csv"))
SPARSE = ("deepseek-v3.2", "deepseek-v4-flash", "glm-5")


@functools.cache
def work(name: str) -> ModelWork:
    return work_of(config.model(name))


@functools.cache
def machine() -> System:
    return system(MACHINE)


def compiled(name: str, layout: Layout, engine: str = "vllm", weights: str = "bf16") -> StepModel:
    formats = resolve(work(name), machine().chip, Precision(weights=weights))
    return compile_layout(work(name), machine(), layout, defaults(Assumptions, {"engine": engine}), formats)


# -- the table ------------------------------------------------------------------------------------------------------------------


def operators(name: str, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Operators that compiling a model asks the table for."""
    found: set[str] = set()
    rules, shares = table.Splits.rule, table.Splits.share
    monkeypatch.setattr(table.Splits, "rule", lambda self, operator, axis: found.add(operator) or rules(self, operator, axis))
    monkeypatch.setattr(table.Splits, "share", lambda self, operator, *rest: found.add(operator) or shares(self, operator, *rest))
    compiled(name, Layout(tp=1), weights="")
    monkeypatch.undo()
    return found


def test_table__has_every_operator_of_every_model_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = set[str]().union(*(operators(name, monkeypatch) for name in NAMES))
    stated = {line["operator"] for line in lines(table.TABLE) if line["engine"] == table.DEFAULT}
    assert asked | {"vision_tower"} == stated == {line["operator"] for line in lines(table.TABLE)}


def test_table__says_known_words_with_a_source_and_a_date_each() -> None:
    keys = [(line["operator"], line["engine"], line["chips"]) for line in lines(table.TABLE)]
    assert len(set(keys)) == len(keys)
    for line in lines(table.TABLE):
        for axis, words in table.WORDS.items():
            assert line[axis] in words, line
        assert line["engine"] in (table.DEFAULT, *ENGINES), line
        assert line["source"] and line["date"] and line["about"], line
        assert (line["tp"] == table.BLOCKS) == bool(line["block"]), line


def test_list__prints_the_table(cli: Cli) -> None:
    rows = cli.rows("list splits")
    assert [row["operator"] for row in rows] == [line["operator"] for line in lines(table.TABLE)]
    assert {row["tp"] for row in rows if row["operator"] == "index_scan"} == {"copied"}


# -- weights --------------------------------------------------------------------------------------------------------------------


def test_weights__of_all_chips_less_the_copies_are_the_model() -> None:
    """Over tp: the weights of all chips exceed the model's by as many copies as there are other chips, of the same operators each time."""
    dice, checked = random.Random(SEED), 0
    for _ in range(DRAWS):
        name = dice.choice(NAMES)
        whole = float(compiled(name, Layout()).weights_bytes)
        heads = min((int(block.kv_heads) for block in work(name).blocks if block.mixer_kv_params), default=1 << 30)
        degrees = [tp for tp in (2, 4, 8) if tp <= heads and not illegal(Layout(tp=tp), shape(work(name).blocks, "bf16"))]
        if not degrees:
            continue
        copied = {tp: (float(compiled(name, Layout(tp=tp)).weights_bytes) * tp - whole) / (tp - 1) for tp in degrees}
        counts = [block.count for block in work(name).blocks]
        vectors = sum(float(block.other_params) * float(count) for block, count in zip(work(name).blocks, counts, strict=True))
        least = 2 * (vectors + float(work(name).vector_params))
        for size in copied.values():
            assert size == pytest.approx(copied[degrees[0]], rel=1e-6), (name, copied)
            assert least * (1 - 1e-6) <= size <= 0.2 * whole, (name, size, least, whole)
        checked += 1
    assert checked > DRAWS / 3


@pytest.mark.parametrize(
    ("name", "copied"),
    [
        ("llama-3.1-8b", 32 * 2 * 4096 + 4096),  # norms alone
        ("mixtral-8x7b", 32 * (2 * 4096 + 8 * 4096) + 4096),  # and routers
        # q_a and kv_a of 61 layers, gates of 58 with their 256 corrections, norms of the layers and of both latents
        ("deepseek-v3", 61 * (7168 * (1536 + 576) + 2 * 7168 + 1536 + 512) + 58 * (7168 * 256 + 256) + 7168),
    ],
)
def test_weights__copies_counted_by_hand(name: str, copied: int) -> None:
    sizes = [float(compiled(name, Layout(tp=tp, ep=tp if work(name).moes else 1)).weights_bytes) for tp in (1, 8)]
    assert (8 * sizes[1] - sizes[0]) / 7 / 2 == pytest.approx(copied, rel=1e-9)


def test_weights__of_a_rank_as_an_engine_logged_them() -> None:
    """DeepSeek-R1 in FP8 over 8 chips: 79.41 GiB a rank (HabanaAI/vllm-fork#809, a log of 2025-02-07)."""
    assert float(compiled("deepseek-r1", Layout(tp=8), weights="").weights_bytes) == pytest.approx(79.41 * 2**30, rel=0.01)


@pytest.mark.parametrize("name", ["deepseek-v3", "deepseek-v3.2", "gpt-oss-120b", "qwen3.5-397b-a17b"])
def test_weights__of_data_parallel_ranks_are_copies_of_all_but_the_experts(name: str) -> None:
    """And under SGLang of all but the head, too, which is divided over all chips."""
    ranks = float(compiled(name, Layout(dp=8, ep=8)).weights_bytes)
    routed = 2 * sum(float(block.count) * float(block.experts) * float(block.expert_params) for block in work(name).blocks if block.experts)
    whole = float(compiled(name, Layout()).weights_bytes)
    assert ranks == pytest.approx(whole - routed * 7 / 8, rel=1e-9)
    head = 2 * float(work(name).head_params) * 7 / 8
    assert float(compiled(name, Layout(dp=8, ep=8), "sglang").weights_bytes) == pytest.approx(ranks - head, rel=1e-9)


# -- caches and heads -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["llama-3.1-70b", "qwen3-235b-a22b", "deepseek-v3", "deepseek-v3.2"])
def test_caches__kv_heads_are_divided_as_far_as_they_go_and_latents_copied(name: str) -> None:
    steps = [compiled(name, Layout(tp=tp, ep=tp if work(name).moes else 1)) for tp in (1, 2, 8, 16)]
    one, *more = [float(sum(size for size, _ in step.stores)) for step in steps]
    heads = int(work(name).blocks[0].kv_heads)
    assert [one / size for size in more] == pytest.approx([min(tp, heads) for tp in (2, 8, 16)])
    assert cache(work(name).blocks[0], "kv") == ("latent_cache" if "deepseek" in name else "kv_cache")


def test_sparse_kernels__take_heads_in_whole_blocks() -> None:
    """DeepSeek-V3.2 has 128 heads: over 8 chips a kernel that takes 64 computes half of them on each, over 2 no more than its share."""
    for engine, chips, factor in (("vllm", 2, 1), ("vllm", 8, 4), ("sglang", 8, 4), ("vllm", 1, 1)):
        spans = [span for span in compiled("deepseek-v3.2", Layout(tp=chips), engine).step.spans if float(span.prefill_compute)]
        for span in spans:
            assert float(span.prefill_compute + span.prefill_filling) == pytest.approx(float(factor * span.prefill_compute))
            assert bool(float(span.prefill_slot)) == (engine == "sglang")
    dense = compiled("deepseek-v3", Layout(tp=8)).step.spans
    assert all(not float(span.prefill_filling) and not float(span.prefill_slot) for span in dense)


# -- index scans ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm", "other"])
@pytest.mark.parametrize("name", SPARSE)
def test_index_scan__is_on_every_tensor_parallel_chip_and_divided_by_context_parallelism(name: str, engine: str) -> None:
    one, eight, context = (compiled(name, layout, engine).step.indexes[0] for layout in (Layout(), Layout(tp=8), Layout(cp=8)))
    assert float(eight.compute) == float(one.compute) and float(eight.choice) == float(one.choice)
    assert float(context.compute) == pytest.approx(float(one.compute) / 8)
    assert not compiled("deepseek-v3", Layout(tp=8)).step.indexes


@pytest.mark.parametrize("key", ["ttft_s", "ttft_floor_s", "step_s", "step_floor_s"])
def test_index_scan__share_is_one_in_the_tree(cli: Cli, key: str) -> None:
    command = "serve deepseek-v3.2 --on 8xh200-sxm --tp 8 --engine vllm --prompt 8000 --output 100 --batch 8"
    assert "share = 1   (share of index scan on a chip" in cli(f"{command} --explain {key} --depth all").text


def index_term(name: str) -> IndexTerm:
    return compiled(name, Layout()).step.indexes[0]


@pytest.mark.parametrize(
    ("queries", "keys", "milliseconds"),
    [(2048, 4096, 0.103), (2048, 8192, 0.222), (2048, 16384, 0.458), (2048, 32768, 0.931)],
)
def test_index_scan__scores_take_the_time_of_the_published_kernel(queries: int, keys: int, milliseconds: float) -> None:
    """One layer of 64 heads of 128 on an H200, queries at the end of the keys (DeepGEMM's test, printed in sgl-project/sglang#11989)."""
    at = RankWork(
        sequences=0, context=0.0, prompt_tokens=queries, start=keys - queries, end=keys, tokens=queries, sampled=1.0, group_tokens=queries
    )  # fmt: skip
    rate = float(table.kernel_rate("index_scores", "hopper", "compute"))
    seconds = float(index_compute_s((index_term("deepseek-v3.2"),), at)) / 61 / rate
    assert seconds * 1e3 == pytest.approx(milliseconds, rel=0.1)


def test_index_scan__choice_reads_every_score_twice() -> None:
    """A prompt of a million tokens on DeepSeek-V4-Flash: 21 layers score a quarter of its pairs in 4 bytes each, on a card of 4.8 TB/s."""
    tokens = 1e6
    at = RankWork(sequences=0, context=0.0, prompt_tokens=tokens, start=0.0, end=tokens, tokens=tokens, sampled=1.0, group_tokens=tokens)
    term = index_term("deepseek-v4-flash")
    scores, free = 21 * tokens * tokens / 2 / 4, 1e9
    written_and_read = 3 * 4 * scores / 4.8e12
    assert float(index_s((term,), at, free, 1.0, 1.0)) == pytest.approx(written_and_read, rel=1e-6)


SLOW_EXPERTS = "10.9 %: routed experts in 4 bits are two thirds of a chunk, at the rate of the one weight-only kernel of vLLM ever measured"


@pytest.mark.xfail(strict=True, reason=SLOW_EXPERTS)
def test_index_scan__share_of_a_prompt_as_profiled() -> None:
    """DeepSeek-V4-Flash over 8 H100 under vLLM, 131,072 tokens in chunks of 8,192: 15.9 % of kernel time (vllm-project/vllm#53691)."""
    h100, chunk = system("8xh100-sxm"), 8192.0
    formats, assumptions = resolve(work("deepseek-v4-flash"), h100.chip, Precision()), defaults(Assumptions, {"engine": "vllm"})
    step = compile_layout(work("deepseek-v4-flash"), h100, Layout(tp=8), assumptions, formats).step
    scans = kernels = 0.0
    for done in range(16):
        at = place(step, 0, 0.0, chunk, chunk * (done + 0.5) * chunk)
        scans += float(index_kernels_s(step, at))
        kernels += float(kernels_s(step, at) + collectives_s(step.collectives, at.tokens))
    assert scans / kernels == pytest.approx(0.159, rel=0.3)


# -- what others published of sparse attention over layouts ---------------------------------------------------------------------


def prefill_rate(name: str, layout: Layout) -> float:
    """Prompts of 3,500 tokens a second under SGLang on 8 H200, of 64 that wait (sgl-project/sglang#14498)."""
    sglang = defaults(Assumptions, {"engine": "sglang"})
    return float(serve(name, "8xh200-sxm", layout, batch=64, prompt=3500, output=1, assumptions=sglang).row(0)["capacity_req_per_s"])


def test_deepseek_v32__data_parallel_attention_prefills_two_to_three_times_as_fast() -> None:
    ratio = prefill_rate("deepseek-v3.2", Layout(dp=8, ep=8)) / prefill_rate("deepseek-v3.2", Layout(tp=8))
    assert 2 < ratio < 3


def test_deepseek_v32__prefills_slower_than_v3_over_tensor_parallel_chips() -> None:
    """A third as fast by that report, 0.63 here: within a factor of 2, and slower."""
    ratio = prefill_rate("deepseek-v3.2", Layout(tp=8)) / prefill_rate("deepseek-v3", Layout(tp=8))
    assert 0.33 / 2 < ratio < 0.33 * 2


@pytest.mark.parametrize(("users", "queue"), [(2, 0.1 * 1.5 + 0.9), (8, 0.9 * 4.5)])
def test_long_prompts__of_as_many_users_as_ranks_have_a_rank_each(cli: Cli, users: int, queue: float) -> None:
    """By the fixed point as by the simulator: eight prompts on eight ranks take little longer than one; over tp they queue.

    A prompt is 25 chunks, an answer 63 steps: of two users only the first prompts meet, a tenth of a run; those of eight always queue.
    """
    about = "deepseek-v4-flash --on 8xb200-sxm --engine vllm --ep 8 --prompt 200000"
    asked, scattered = f"{about} --output 64", f"{about} --output uniform:57,71"  # the lengths that `serve` means, scattered by 6.4 %
    ranks, alone = (cli.rows(f"serve {asked} --dp 8 --batch {count}")[0]["ttft_s"] for count in (users, 1))
    assert alone * 0.99 < ranks < 1.25 * alone
    played = cli.rows(f"sim {scattered} --dp 8 --users {users}")[0]["mean_ttft_s"]
    assert ranks == pytest.approx(played, rel=0.1)
    queued, single = (cli.rows(f"serve {asked} --tp 8 --batch {count}")[0]["ttft_s"] for count in (users, 1))
    assert queued > queue * single

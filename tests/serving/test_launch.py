"""Launch lines: hand-written ones for known deployments, and every flag and value on every line held against the kept lists."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest

import headway as hw
from headway.core.errors import BadValue, UnknownName
from headway.models.model import Model
from headway.models.precision import CACHE, WEIGHTS, Precision
from headway.performance.layout import Layout, illegal
from headway.performance.workload import Load
from headway.report.start_log import ENGINES as STARTS
from headway.serving.launch.launch import ENGINES, Launch, flags, launch
from headway.serving.launch.needs import Speculation

pytestmark = pytest.mark.slow

LLAMA, DEEPSEEK, QWEN = hw.model("llama-3.1-70b"), hw.model("deepseek-v3"), hw.model("qwen3-235b-a22b")
CHAT = Load(batch=64, prompt=4096, output=1024)
LONG = Load(batch=4608, context=8192)
ROLES = {"prefill": "kv_producer", "decode": "kv_consumer"}
VARIABLE = re.compile(r"\b(VLLM_NIXL_\w+)=")
FLAG = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")


def line(engine: str, model: Model, layout: Layout, *rest: object, **more: object) -> str:
    """The one line of an answer that has one."""
    made = launch(engine, model, layout, *rest, **more)  # type: ignore[arg-type]
    assert made.unsupported == "" and len(made.lines) == 1, made
    return made.lines[0]


def words(text: str) -> dict[str, str]:
    """Flag -> value, "" for a switch, of one line."""
    parts = re.findall(r"\$\(\(.*?\)\)|\S+", text)
    found = {}
    for at, part in enumerate(parts):
        if FLAG.fullmatch(part) and part not in ("-m", "-c"):
            after = parts[at + 1] if at + 1 < len(parts) else ""
            assert part not in found, f"{part} twice in {text}"
            found[part] = "" if after.startswith("-") else after
    return found


# -- what a person would type ------------------------------------------------------------------------------------------------------


def test_launch_vllm__dense_over_eight_chips() -> None:
    assert line("vllm", LLAMA, Layout(tp=8), Precision(), CHAT, memory=0.9) == (
        "vllm serve meta-llama/Meta-Llama-3.1-70B --tensor-parallel-size 8"
        " --max-num-seqs 64 --max-model-len 5632 --gpu-memory-utilization 0.9"
    )


def test_launch_sglang__dense_over_eight_chips() -> None:
    assert line("sglang", LLAMA, Layout(tp=8), Precision(), CHAT, memory=0.9) == (
        "python3 -m sglang.launch_server --model-path meta-llama/Meta-Llama-3.1-70B --tp-size 8"
        " --max-running-requests 64 --context-length 5632 --mem-fraction-static 0.9"
    )


def test_launch_trtllm__dense_over_eight_chips() -> None:
    assert line("trtllm", LLAMA, Layout(tp=8), Precision(), CHAT, memory=0.9) == (
        "trtllm-serve meta-llama/Meta-Llama-3.1-70B --tp_size 8"
        " --max_batch_size 64 --max_seq_len 5632 --kv_cache_free_gpu_memory_fraction 0.9"
    )


def test_launch_vllm__wide_expert_parallel_counts_sequences_per_rank() -> None:
    assert line("vllm", DEEPSEEK, Layout(dp=72, ep=72), Precision(), LONG) == (
        "vllm serve deepseek-ai/DeepSeek-V3 --tensor-parallel-size 1 --data-parallel-size 72 --enable-expert-parallel"
        " --max-num-seqs 64 --max-model-len 8192"
    )


def test_launch_vllm__eighteen_hosts_of_four_chips() -> None:
    first, others = launch("vllm", DEEPSEEK, Layout(dp=72, ep=72), chips_per_host=4).lines
    shared = (
        "vllm serve deepseek-ai/DeepSeek-V3 --tensor-parallel-size 1 --data-parallel-size 72 --enable-expert-parallel"
        " --data-parallel-size-local 4 --data-parallel-address $HEAD --data-parallel-rpc-port 13345"
    )
    assert first == shared
    assert others == shared + " --headless --data-parallel-start-rank $((4 * NODE))"


def test_launch_sglang__tensor_and_expert_parallel() -> None:
    assert line("sglang", DEEPSEEK, Layout(tp=8, ep=8)) == (
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --tp-size 8 --ep-size 8"
    )


def test_launch_sglang__tp_size_counts_every_chip_of_a_stage() -> None:
    """And 256 experts over 72 chips need 4 slots on each, 288 in all: 32 copies."""
    assert line("sglang", DEEPSEEK, Layout(dp=72, ep=72), Precision(), LONG) == (
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --tp-size 72 --attn-dp-size 72 --ep-size 72"
        " --ep-num-redundant-experts 32 --moe-dense-tp-size 1 --max-running-requests 4608 --context-length 8192"
    )
    assert words(line("sglang", DEEPSEEK, Layout(tp=4, dp=8, ep=16)))["--tp-size"] == "32"


def test_launch_trtllm__attention_data_parallel_in_the_options_file() -> None:
    options, serve = launch("trtllm", DEEPSEEK, Layout(dp=72, ep=72), Precision(kv="fp8"), LONG).lines
    assert options == (
        "printf 'enable_attention_dp: true\\nmoe_config:\\n  load_balancer:\\n    num_slots: 288\\n    layer_updates_per_iter: 1\\n"
        "kv_cache_config:\\n  dtype: fp8\\n  free_gpu_memory_fraction: 0.9\\n' > trtllm.yaml"
    )
    assert serve == (
        "trtllm-serve deepseek-ai/DeepSeek-V3 --tp_size 72 --ep_size 72 --max_batch_size 64 --max_seq_len 8192"
        " --extra_llm_api_options trtllm.yaml"
    )


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        ("vllm", "--tensor-parallel-size 4 --pipeline-parallel-size 2 --max-num-seqs 64"),
        ("sglang", "--tp-size 4 --pp-size 2 --max-running-requests 64"),
        ("trtllm", "--tp_size 4 --pp_size 2 --max_batch_size 32"),  # its batch is one micro-batch
    ],
)
def test_launch__two_pipeline_stages(engine: str, expected: str) -> None:
    assert expected in line(engine, LLAMA, Layout(tp=4, pp=2), Precision(), Load(batch=64))


def test_launch__weight_and_kv_formats() -> None:
    low = Precision(weights="fp8", kv="fp8")
    assert "--quantization fp8_per_tensor --kv-cache-dtype fp8" in line("vllm", LLAMA, Layout(tp=8), low)
    assert "--quantization fp8 --kv-cache-dtype fp8_e4m3" in line("sglang", LLAMA, Layout(tp=8), low)
    assert "--quantization" not in line("vllm", DEEPSEEK, Layout(tp=8), low), "its checkpoint is stored in fp8"
    assert "stored in bf16 into fp8" in launch("trtllm", LLAMA, Layout(tp=8), low).unsupported
    assert "stored in fp8 into bf16" in launch("vllm", DEEPSEEK, Layout(tp=8), Precision(weights="bf16")).unsupported
    assert "int4 KV cache; it has bf16, fp8, fp4" in launch("sglang", LLAMA, Layout(tp=8), Precision(kv="int4")).unsupported


def test_launch__one_port_per_replica() -> None:
    made = launch("vllm", LLAMA, Layout(tp=4, replicas=3))
    assert made.lines == ("vllm serve meta-llama/Meta-Llama-3.1-70B --tensor-parallel-size 4 --port $((8000 + REPLICA))",)
    assert any("REPLICA=0..2" in note and "its own 4 chips" in note for note in made.notes)


def test_launch__config_file_is_served_from_its_folder() -> None:
    at = Layout(tp=8)
    assert line("vllm", replace(LLAMA, source="/models/my llama/config.json"), at).startswith("vllm serve '/models/my llama' ")
    assert line("vllm", replace(LLAMA, source="lone.json"), at).startswith("vllm serve $MODEL ")


@pytest.mark.parametrize("engine", ENGINES)
def test_launch__id_asked_for_is_the_id_served(engine: str) -> None:
    asked = "meta-llama/Llama-3.1-70B-Instruct"
    exact = launch(engine, LLAMA, Layout(tp=8), checkpoint=asked)
    assert f" {asked} " in exact.lines[0] and not any("is served as" in note for note in exact.notes)
    alias = launch(engine, LLAMA, Layout(tp=8), checkpoint="llama-3.1-70b")
    assert " meta-llama/Meta-Llama-3.1-70B " in alias.lines[0]
    assert any(note.startswith("llama-3.1-70b is served as meta-llama/Meta-Llama-3.1-70B;") for note in alias.notes)


def test_launch__length_has_room_up_to_what_the_model_holds() -> None:
    """Llama-3.1 holds 131,072 tokens: 130,000 has no tenth of room left, and 140,000 is left for the engine to refuse."""
    lengths = [Load(prompt=prompt, output=1000) for prompt in (3000, 129_000, 139_000)]
    found = [words(line("vllm", LLAMA, Layout(tp=8), Precision(), load))["--max-model-len"] for load in lengths]
    assert found == ["4608", "131072", "140000"]


def test_launch__sequences_of_a_replica_replace_the_users_of_the_load() -> None:
    rate = Load(rate=3.0, prompt=4096, output=1024)
    assert "--max-num-seqs" not in words(line("vllm", LLAMA, Layout(tp=8), Precision(), rate))
    assert words(line("vllm", LLAMA, Layout(tp=8), Precision(), rate, sequences=48))["--max-num-seqs"] == "48"
    assert words(line("vllm", DEEPSEEK, Layout(dp=8, ep=8), Precision(), CHAT, sequences=100))["--max-num-seqs"] == "13"


def test_launch__pools_of_a_split_deployment() -> None:
    """Roles as the engines' documentation has them; ports differ, so that both pools may share a host."""
    lines = {
        (engine, role): launch(engine, LLAMA, Layout(tp=4), Precision(), CHAT, role=role).lines for engine in ENGINES for role in ROLES
    }
    for role, name in ROLES.items():
        assert f'"kv_connector":"NixlConnector","kv_role":"{name}"' in lines["vllm", role][0]
        assert f"--disaggregation-mode {role} --disaggregation-transfer-backend nixl" in lines["sglang", role][0]
        assert "cache_transceiver_config:\\n  backend: NIXL" in lines["trtllm", role][0]
    assert "disable_overlap_scheduler: true" in lines["trtllm", "prefill"][0] and "overlap" not in lines["trtllm", "decode"][0]
    for engine in ENGINES:
        assert words(lines[engine, "prefill"][-1])["--port"] != words(lines[engine, "decode"][-1])["--port"]


# -- what an engine cannot do ------------------------------------------------------------------------------------------------------


def test_launch_vllm__expert_parallel_is_all_or_none() -> None:
    made = launch("vllm", DEEPSEEK, Layout(tp=8, ep=4))
    assert made.lines == () and made.nearest == Layout(tp=8, ep=8)
    assert made.unsupported == ("vLLM: expert parallelism is off (ep=1) or over all tp*cp*dp = 8 chips, not 4; nearest it can: tp=8 ep=8")
    assert words(line("sglang", DEEPSEEK, Layout(tp=8, ep=4)))["--ep-size"] == "4"
    assert words(line("trtllm", DEEPSEEK, Layout(tp=8, ep=4)))["--ep_size"] == "4"


def test_launch_trtllm__attention_has_one_kind_of_parallelism() -> None:
    assert launch("trtllm", DEEPSEEK, Layout(tp=4, dp=8, ep=16)).nearest == Layout(dp=32, ep=16)
    assert launch("trtllm", LLAMA, Layout(tp=8, cp=2)).nearest == Layout(tp=16)


@pytest.mark.parametrize("engine", ENGINES)
def test_launch__ranks_of_a_dense_model_are_replicas(engine: str) -> None:
    ranks, copies = (launch(engine, LLAMA, layout, load=Load(prompt=1000, output=100, batch=batch))
                     for layout, batch in ((Layout(tp=4, dp=2), 64), (Layout(tp=4, replicas=2), 32)))  # fmt: skip
    assert ranks == copies and ranks.lines


@pytest.mark.parametrize("engine", ENGINES)
def test_launch__context_parallel_layout_is_not_what_engines_hold(engine: str) -> None:
    """What is priced is what is launched: engines split weights over context-parallel chips too, the laws do not."""
    made = launch(engine, LLAMA, Layout(tp=4, cp=2))
    assert made.lines == () and "also splits the weights" in made.unsupported
    assert made.nearest is not None and made.nearest.cp == 1 and launch(engine, LLAMA, made.nearest).lines


def test_launch__expert_width_must_divide_over_its_chips() -> None:
    """DeepSeek-V3's experts are 2,048 wide, in blocks of 128 that share a scale: 72 chips cannot share one, nor 64, but 16 can."""
    made = launch("vllm", DEEPSEEK, Layout(dp=72, ep=1))
    assert "do not divide an expert's width 2048" in made.unsupported and made.nearest == Layout(dp=72, ep=72)
    assert "blocks of 128" in launch("vllm", DEEPSEEK, Layout(dp=64, ep=1)).unsupported
    assert launch("vllm", DEEPSEEK, Layout(dp=16, ep=1)).unsupported == ""


def test_launch__bad_input_is_a_typed_error() -> None:
    with pytest.raises(UnknownName, match="did you mean sglang"):
        launch("sglan", LLAMA, Layout(tp=8))
    with pytest.raises(BadValue, match="tp"):
        launch("vllm", LLAMA, Layout(tp=(4, 8)))
    with pytest.raises(BadValue, match="memory"):
        launch("vllm", LLAMA, Layout(tp=8), memory=90)
    with pytest.raises(BadValue, match="chips_per_host"):
        launch("vllm", LLAMA, Layout(tp=8), chips_per_host=0)


# -- every flag was seen in a source -----------------------------------------------------------------------------------------------

WAYS = (1, 8, 16, 72)
LAYOUTS = [
    Layout(tp=tp, dp=dp, ep=ep, pp=pp, cp=cp, replicas=replicas)
    for tp, dp, ep, (pp, cp, replicas) in itertools.product((1, 2, 8), WAYS, WAYS, ((1, 1, 3), (2, 1, 1), (1, 2, 1), (2, 8, 1)))
]


def answers(engine: str) -> list[Launch]:
    """Every layout with every format, limits or none, one host or many."""
    found = []
    for model in (LLAMA, DEEPSEEK, QWEN):
        shape = _shape(model)
        for layout in LAYOUTS:
            if not illegal(layout, shape):
                found.append(launch(engine, model, layout, Precision(), CHAT, memory=0.85))
                found.append(launch(engine, model, layout, Precision(kv="fp8"), chips_per_host=8))
                found.append(launch(engine, model, layout, Precision(), CHAT, eager=True, host_bytes=5e9 if shape.experts else None))
                for drafts in (Speculation.of("mtp", 1, None), Speculation.of("eagle", 3, None), Speculation.of("model", 4, QWEN)):
                    found.append(launch(engine, model, layout, Precision(), CHAT, speculation=drafts))
                found += [launch(engine, model, layout, Precision(), CHAT, role=role) for role in ("prefill", "decode")]
        for weights, kv in itertools.product(("", *WEIGHTS), ("", *CACHE)):
            found.append(launch(engine, model, Layout(tp=8), Precision(weights=weights, kv=kv)))
    return found


def _shape(model: Model):
    from headway.serving.launch.needs import ask

    return ask(model, Layout(), Precision(), None, None, None).needs.shape


@pytest.fixture(scope="module", params=ENGINES)
def every(request: pytest.FixtureRequest) -> tuple[str, list[Launch]]:
    return request.param, answers(request.param)


def test_launch__lines_or_a_reason_for_every_layout(every: tuple[str, list[Launch]]) -> None:
    engine, found = every
    assert all(bool(made.lines) != bool(made.unsupported) for made in found)
    assert sum(bool(made.lines) for made in found) > 100 and sum(bool(made.unsupported) for made in found) > 20, engine


def test_serve_flags__every_flag_and_value_is_on_record(every: tuple[str, list[Launch]]) -> None:
    engine, found = every
    kept = flags(engine).flags
    for made in found:
        for text in (one for one in made.lines if not one.startswith("printf")):
            for flag, value in words(text).items():
                assert flag in kept, f"{flag} in {text}"
                assert not kept[flag].values or value in kept[flag].values, f"{flag} {value}"
            assert set(VARIABLE.findall(text)) <= flags(engine).variables.keys(), text
        for text in (*made.notes, made.unsupported):
            assert set(FLAG.findall(text)) - {"-m", "--chips-per-host"} <= kept.keys(), text


def test_serve_flags__every_key_of_the_options_file_is_on_record(every: tuple[str, list[Launch]]) -> None:
    engine, found = every
    kept, seen = flags(engine).keys, set()
    for made in found:
        for text in (one for one in made.lines if one.startswith("printf")):
            path: list[str] = []
            for row in text.split("'")[1].split("\\n")[:-1]:
                key, _, value = row.strip().partition(":")
                path = [*path[: (len(row) - len(row.lstrip())) // 2], key]
                if value:
                    name = ".".join(path)
                    assert name in kept, name
                    assert not kept[name].values or value.strip() in kept[name].values, row
                    seen.add(name)
    assert seen == kept.keys() or seen | {"dtype"} == kept.keys()


def test_serve_flags__every_recorded_flag_is_used(every: tuple[str, list[Launch]]) -> None:
    engine, found = every
    used = {flag for made in found for text in (*made.lines, *made.notes) for flag in FLAG.findall(text)}
    if engine == "vllm":
        used |= set(FLAG.findall(" ".join(launch(engine, DEEPSEEK, Layout(tp=16, dp=2), chips_per_host=8).lines)))
    used.add(STARTS[engine][1].tokens)  # of the line on a start's flags
    unused = flags(engine).flags.keys() - used - {"--dtype"}  # --dtype: only where fp16 is asked of a bf16 checkpoint
    assert unused == set()


@pytest.mark.parametrize("engine", ENGINES)
def test_serve_flags__source_and_date_of_every_flag(engine: str) -> None:
    kept = flags(engine)
    assert kept.version and all("http" in source for source in kept.sources.values())
    for name, flag in {**kept.flags, **kept.keys, **kept.variables}.items():
        assert flag.source in kept.sources, name
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", flag.date), name
    assert {flag.source for flag in {**kept.flags, **kept.keys}.values()} == kept.sources.keys()


def test_nearest_layout__is_supported_by_the_engine(every: tuple[str, list[Launch]]) -> None:
    engine, found = every
    offers = {made.nearest for made in found if made.nearest}
    assert offers
    for model in (LLAMA, DEEPSEEK, QWEN):
        own = [layout for layout in offers if not illegal(layout, _shape(model))]
        assert own
    for layout in (Layout(tp=8, ep=4), Layout(tp=4, dp=8, ep=16), Layout(tp=2, dp=3, cp=2, ep=6)):
        nearest = launch(engine, DEEPSEEK, layout).nearest
        assert nearest is None or launch(engine, DEEPSEEK, nearest).unsupported == ""


def test_launch__redundant_experts_are_written_or_refused() -> None:
    layout = Layout(dp=8, ep=8, redundant=32)
    assert "--ep-num-redundant-experts 32" in launch("sglang", DEEPSEEK, layout).lines[0]
    refused = launch("vllm", DEEPSEEK, layout)
    assert "copies of experts (32)" in refused.unsupported
    assert refused.nearest is not None and refused.nearest.redundant == 0

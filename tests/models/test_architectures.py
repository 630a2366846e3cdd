"""Public architectures beyond the catalogue: read to their published counts, or refused with the key that matters."""

from __future__ import annotations

import csv
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from headway.core.errors import BadFile, BadValue, HeadwayError, UnknownName, UnsupportedModel
from headway.models import totals
from headway.models.config import catalogue_index, from_data, model
from headway.models.model import MoE
from headway.models.readers.families import READERS, REFUSED
from headway.models.readers.read import harmless_reason
from headway.models.reading import reading, shortened
from headway.models.weights import header
from support.command import Cli
from support.paths import DATA, ROOT, SOURCE

ROWS = {name: row for name, row in json.loads((DATA / "architectures.json").read_text()).items() if name != "_about"}
SERVED = list(csv.DictReader((DATA / "served_architectures.csv").read_text().splitlines()))
LLAMA = json.loads((SOURCE / "data" / "models" / "meta-llama--Meta-Llama-3.1-8B.json").read_text())
TINY = {
    "model_type": "llama", "hidden_size": 8, "num_hidden_layers": 2, "intermediate_size": 16, "num_attention_heads": 2,
    "num_key_value_heads": 1, "vocab_size": 10, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip


def total(config: dict[str, Any], **more: Any) -> int:
    return int(float(totals.total_params(from_data(config | more, "x", "x"))))


def test_architectures__sixty_more_with_sources() -> None:
    assert len(ROWS) >= 60 and sum("total_params" in row or "with_tower" in row for row in ROWS.values()) >= 60
    assert [name for name, row in ROWS.items() if not row["source"] or not row["date"]] == []


@pytest.mark.parametrize("name", ROWS)
def test_architectures__published_count_or_the_key_that_matters(name: str) -> None:
    row = ROWS[name]
    if "refused" in row:
        with pytest.raises(UnsupportedModel, match=row["refused"]):
            from_data(row["config"], name, name)
        return
    found = from_data(row["config"], name, name)
    counted = float(totals.total_params(found))
    assert [note for note in found.notes if note.startswith("assumed: key")] == []
    if "total_params" in row:
        assert counted == row["total_params"]
    if "with_tower" in row:
        assert counted + int(found.tower.params) == row["with_tower"]
    if "text_share_at_least" in row:
        assert row["text_share_at_least"] * row["rounded_params"] < counted < row["rounded_params"]
    elif "rounded_params" in row:
        assert counted == pytest.approx(row["rounded_params"], rel=0.01)
    if "rounded_active" in row:
        assert float(totals.active_params(found)) == pytest.approx(row["rounded_active"], rel=0.05)


def test_architectures__list_of_a_serving_engine_says_which_are_read() -> None:
    assert len(SERVED) >= 100
    assert [row["model_type"] for row in SERVED if (row["read"] == "yes") != (row["model_type"] in READERS)] == []
    assert sum(row["read"] == "yes" for row in SERVED) >= 0.8 * len(SERVED)
    assert not READERS.keys() & REFUSED.keys()


def test_indexer__shared_layers_keep_no_index_keys() -> None:
    whole, shared = (from_data(ROWS[name]["config"], name, name) for name in ("glm-5", "glm-5.2"))
    # 78 layers of one 128-wide key in 2 bytes; with sharing 21 of them: the first three, then every fourth.
    assert float(totals.index_bytes_per_token(whole)) == 78 * 132
    assert float(totals.index_bytes_per_token(shared)) == 21 * 132
    assert float(totals.kv_bytes_per_token(whole)) == float(totals.kv_bytes_per_token(shared)) == 78 * 576 * 2
    spelled = ROWS["glm-5"]["config"] | {"indexer_types": ["shared" if max(i - 2, 0) % 4 else "full" for i in range(78)]}
    assert float(totals.total_params(from_data(spelled, "x", "x"))) == float(totals.total_params(shared))


def test_gemma3__integer_pattern_equals_its_list() -> None:
    config = {"model_type": "gemma3_text", "num_hidden_layers": 12, "sliding_window": 512}
    types = ["full_attention" if (layer + 1) % 6 == 0 else "sliding_attention" for layer in range(12)]
    listed, counted = from_data(config | {"layer_types": types}, "x", "x"), from_data(config | {"sliding_window_pattern": 6}, "x", "x")
    assert listed.blocks == counted.blocks
    assert float(totals.kv_bytes_per_token(counted)) == 2 * 2 * 4 * 256 * 2


def test_nemotron_nas__layers_of_llama_are_llama_and_each_part_can_be_left_out() -> None:
    whole = {"attention": {"n_heads_in_group": 4, "no_op": False}, "ffn": {"ffn_mult": 5.25, "no_op": False}}
    config = {"model_type": "nemotron-nas", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 128256}
    assert total(config, block_configs=[whole] * 32) == 8030261248  # Llama-3.1-8B
    no_attention = whole | {"attention": {"no_op": True}}
    attention, norm = 4096 * 4096 * 2 + 4096 * 1024 * 2, 4096
    assert total(config, block_configs=[whole] * 31 + [no_attention]) == 8030261248 - attention - norm
    with pytest.raises(BadValue, match="replace_with_linear"):
        total(config, block_configs=[whole | {"attention": {"replace_with_linear": True}}] * 32)


def test_nemotron_puzzle__layers_state_their_own_experts() -> None:
    base = {name: value for name, value in ROWS["nemotron-3-super"]["config"].items() if name != "hybrid_override_pattern"}
    parts = [{"block_type": "moe", "moe_intermediate_size": width, "num_experts_per_tok": 4} for width in (1280, 2688)]
    narrow, wide = (
        total(base, num_hidden_layers=1, layers_block_type=["moe"], block_configs=[part], model_type="nemotron_h_puzzle") for part in parts
    )
    assert wide - narrow == 512 * 2 * 1024 * (2688 - 1280)


def test_falcon_h1__both_mixers_answer_for_cache_and_state() -> None:
    found = from_data(ROWS["falcon-h1-7b"]["config"], "x", "x")
    assert int(totals.layers(found)) == 44
    assert float(totals.kv_bytes_per_token(found)) == 44 * 2 * 2 * 128 * 2
    assert float(totals.state_bytes_per_sequence(found)) == 44 * (24 * 128 * 256 + 3 * (24 * 128 + 2 * 256)) * 2


# -- keys -----------------------------------------------------------------------------------------------------------------------


def test_keys__unknown_is_a_note_and_an_error_only_when_strict() -> None:
    data = LLAMA | {"frobnication": 3}
    (note,) = (note for note in from_data(data, "x", "x").notes if note.startswith("assumed"))
    assert note.startswith("assumed: key frobnication is not read; at most:")
    assert total(data) == total(LLAMA)
    with pytest.raises(UnsupportedModel, match=r"frobnication.*--strict"):
        from_data(data, "x", "x", reading(strict=True))
    assert from_data(LLAMA, "x", "x", reading(strict=True)).notes == ()


@pytest.mark.parametrize(
    "key", ["engram_dim", "num_memory_layers", "n_extra_heads", "adapter_rank", "mixer_width", "use_gated_attention", "swa_head_count"]
)
def test_keys__unread_size_is_a_note_with_its_largest_change(key: str) -> None:
    found = from_data(LLAMA | {key: 4}, "x", "x")
    assert [note for note in found.notes if key in note and "at most:" in note] and total(LLAMA | {key: 4}) == total(LLAMA)
    with pytest.raises(UnsupportedModel, match=key):
        from_data(LLAMA | {key: 4}, "x", "x", reading(strict=True))


@pytest.mark.parametrize(("key", "value", "share"), [("adapter_rank", 1024, 3 * 1024 * 4096 * 32 / 8030261248), ("mixer_width", 0, 0)])
def test_keys__largest_change_is_three_matrices_a_layer(key: str, value: int, share: float) -> None:
    """A gated network of that width in every layer: 5 % of Llama-3.1-8B for a width of 1,024; a key of value 0 changes nothing."""
    told = [note for note in from_data(LLAMA | {key: value}, "x", "x").notes if key in note]
    assert not told if not value else f"{share:.2g} of the parameters" in told[0]


CASES = {
    "interleaved rotation": ("deepseek-v3.2", {"indexer_rope_interleave": True}),
    "bias that the family has": ("qwen2.5-7b", {"attention_bias": True}),
    "pattern beside the list": (
        "gemma-3-27b", {"sliding_window_pattern": 6, "layer_types": ["sliding_attention"] * 5 + ["full_attention"]},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_keys__given_by_another_key_never_refuse(name: str) -> None:
    stem, more = CASES[name]
    file = next(row["file"] for row in catalogue_index() if row["name"] == stem)
    config = json.loads((SOURCE / "data" / "models" / file).read_text())
    inner = config.get("text_config", config)
    plain = from_data(config, "x", "x")
    if "layer_types" in more:
        more = more | {"layer_types": (more["layer_types"] * 100)[: inner.get("num_hidden_layers", 26)]}
    changed = config | {"text_config": inner | more} if "text_config" in config else config | more
    found = from_data(changed, "x", "x")
    assert float(totals.total_params(found)) == float(totals.total_params(plain))
    assert [note for note in found.notes if "assumed: key" in note] == []


def test_type__of_a_text_decoder_that_states_none() -> None:
    text = {key: value for key, value in LLAMA.items() if key not in ("model_type", "_family")}
    for outer in ("llama_vl", "llama_text", "llama"):
        found = from_data({"model_type": outer, "text_config": text}, "x", "x")
        assert float(totals.total_params(found)) == total(LLAMA) and any("is not stated, is llama" in note for note in found.notes)


GENERAL = {
    "list of layers": ({"layer_types": ["full_attention", "sliding_attention"] * 16, "sliding_window": 512}, 16),
    "chunks": ({"attention_chunk_size": 8192, "no_rope_layer_interval": 4}, 8),
    "chunks by list": ({"attention_chunk_size": 8192, "no_rope_layers": [1, 1, 1, 0] * 8}, 8),
    "pattern": ({"sliding_window": 512, "sliding_window_pattern": 4}, 8),
    "window in upper layers": ({"sliding_window": 512, "use_sliding_window": True, "max_window_layers": 20}, 20),
    "shared caches": ({"num_kv_shared_layers": 12}, 20),
    "linear attention": (
        {"layer_types": ["linear_attention"] * 24 + ["full_attention"] * 8, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
         "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4}, 8,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GENERAL)
@pytest.mark.parametrize("mechanism", ["dense", "moe"])
def test_general_reader__layers_that_keep_a_cache(name: str, mechanism: str) -> None:
    """The lasting cache is that of the layers with full attention and a cache of their own: 2 x 8 x 128 x 2 bytes each."""
    keys, full = GENERAL[name]
    experts = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 1024} if mechanism == "moe" else {}
    found = from_data(LLAMA | keys | experts | {"model_type": "new"}, "x", "x", reading(mechanism=mechanism))
    assert float(totals.kv_bytes_per_token(found)) == full * 2 * 8 * 128 * 2
    assert not any("does not change" in note for note in found.notes)


@pytest.mark.parametrize(("keys", "routed"), [
    ({"first_k_dense_replace": 3}, 29), ({"decoder_sparse_step": 2}, 16), ({"mlp_only_layers": [0, 1]}, 30),
    ({"interleave_moe_layer_step": 4}, 8), ({"moe_layer_freq": [0] * 2 + [1] * 30}, 30), ({"moe_layer_freq": 2}, 16), ({}, 32),
])  # fmt: skip
def test_general_reader__layers_with_experts(keys: dict[str, Any], routed: int) -> None:
    experts = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 1024, "model_type": "new"}
    found = from_data(LLAMA | keys | experts, "x", "x", reading(mechanism="moe"))
    assert sum(int(block.count) for block in found.blocks if isinstance(block.ffn, MoE)) == routed


def test_keys__harmless_have_a_reason_and_never_name_experts_or_heads() -> None:
    assert harmless_reason("rope_theta") and harmless_reason("transformers_version") and harmless_reason("attention_dropout")
    shape = (
        "num_experts",
        "head_dim",
        "layer_types",
        "kv_lora_rank",
        "num_hidden_layers",
        "vocab_size",
        "intermediate_size",
        "hidden_size",
    )
    assert [key for key in shape if harmless_reason(key)] == []


def test_keys__many_unknown_are_a_few_notes(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(LLAMA | {f"odd{number}": number + 1 for number in range(40)}))
    notes = [note for note in cli("serve", str(path), "--on", "h100", "-o", "json").json["notes"] if note.startswith("assumed")]
    assert len(notes) == 6 and "35 further" in notes[-1]
    status, _, err = cli("serve", str(path), "--on", "h100", "--strict")
    assert status == 2 and "odd0" in err


# -- mechanisms and keys by hand ------------------------------------------------------------------------------------------------


def test_mechanism__unknown_architecture_is_read_as_asked_and_labelled() -> None:
    strange = LLAMA | {"model_type": "perceiver", "engram_dim": 4}
    found = from_data(strange, "x", "x", reading(mechanism="dense"))
    assert float(totals.total_params(found)) == 8030261248
    assert any("--as" in note for note in found.notes) and any("engram_dim" in note and "at most" in note for note in found.notes)
    with pytest.raises(UnsupportedModel, match="engram_dim"):
        from_data(strange, "x", "x", reading(mechanism="dense", strict=True))


def test_mechanism__moe_and_mla_equal_the_architectures_they_are_named_for() -> None:
    mixtral = json.loads((SOURCE / "data" / "models" / "mistralai--Mixtral-8x7B-v0.1.json").read_text())
    deepseek = json.loads((SOURCE / "data" / "models" / "deepseek-ai--DeepSeek-V3.json").read_text())
    for config, kind in ((mixtral, "moe"), (deepseek, "mla")):
        assert float(totals.total_params(from_data(config | {"model_type": "new"}, "x", "x", reading(mechanism=kind)))) == total(config)


def test_mechanism__keys_by_hand_replace_those_of_the_file() -> None:
    found = from_data(LLAMA, "x", "x", reading(keys=("num_hidden_layers=16", "vocab_size=32k")))
    assert (int(totals.layers(found)), int(found.vocab), found.vocab.kind) == (16, 32000, "input")
    assert [note for note in found.notes if note.startswith("assumed: vocab_size")] != []


@pytest.mark.parametrize(("mechanism", "keys"), [("rnn", ()), ("", ("x",)), ("", ("=3",)), ("", ("a=",)), ("", ("9=1",))])
def test_mechanism__bad_request_is_one_line(mechanism: str, keys: tuple[str, ...]) -> None:
    with pytest.raises((UnknownName, BadValue)) as caught:
        reading(mechanism=mechanism, keys=keys)
    assert "\n" not in str(caught.value)


# -- fewer layers ---------------------------------------------------------------------------------------------------------------


def test_cut__first_layers_alone() -> None:
    assert int(totals.layers(model("llama-3.1-70b:12layers"))) == 12
    assert model("gemma-3-27b:7layers").name == "gemma-3-27b:7layers"
    kept = [int(block.count) for block in model("gemma-3-27b:7layers").blocks]
    assert kept == [6, 1]  # five windows and a full layer, then a window: six windows in all
    assert float(totals.total_params(model("deepseek-v3:61layers"))) == float(totals.total_params(model("deepseek-v3")))
    dense_only = float(totals.total_params(model("deepseek-v3:3layers")))  # its three leading layers have no experts
    assert dense_only == 2 * 129280 * 7168 + 7168 + 3 * (187105280 + 3 * 7168 * 18432 + 2 * 7168 + 1536 + 512)


@pytest.mark.parametrize("text", ["llama-3.1-70b:0layers", "llama-3.1-70b:81layers", "lama:3layers", "llama-3.1-70b:xlayers"])
def test_cut__wrong_count_is_one_line(text: str) -> None:
    with pytest.raises(HeadwayError) as caught:
        model(text)
    assert "\n" not in str(caught.value)


def test_cut__lists_of_layers_are_cut_with_it() -> None:
    config = {"model_type": "nemotron_h", "num_hidden_layers": 10, "hybrid_override_pattern": "M-M-M-M*M-"}
    assert shortened(config, 4, "x")["hybrid_override_pattern"] == "M-M-"


# -- weights --------------------------------------------------------------------------------------------------------------------


def shapes(config: dict[str, Any]) -> dict[str, list[int]]:
    """Tensors of a Llama checkpoint."""
    h, i, kv, v = config["hidden_size"], config["intermediate_size"], 4, config["vocab_size"]
    tensors = {"model.embed_tokens.weight": [v, h], "lm_head.weight": [v, h], "model.norm.weight": [h]}
    for layer in range(config["num_hidden_layers"]):
        stem = f"model.layers.{layer}."
        tensors |= {stem + f"self_attn.{name}_proj.weight": [h if name in "qo" else kv, h] for name in "qkvo"}
        tensors |= {stem + f"mlp.{name}_proj.weight": [i, h] for name in ("gate", "up", "down")}
        tensors |= {stem + f"{name}_layernorm.weight": [h] for name in ("input", "post_attention")}
    return tensors


def write(path: Path, tensors: dict[str, list[int]], dtype: str = "BF16") -> None:
    text = json.dumps({name: {"dtype": dtype, "shape": shape, "data_offsets": [0, 0]} for name, shape in tensors.items()}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)


def notes(folder: Path) -> list[str]:
    return [note for note in model(folder).notes if note.startswith(("weights", "model.safetensors"))]


def test_weights__headers_agree_or_the_difference_is_told(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(TINY))
    tensors = shapes(TINY)
    names = sorted(tensors)
    for number, part in enumerate((names[::2], names[1::2])):  # two shards
        write(tmp_path / f"model-{number}.safetensors", {name: tensors[name] for name in part})
    count = total(TINY)
    assert notes(tmp_path) == [f"weights agree: {count:,} parameters by the headers of the safetensors files"]
    write(
        tmp_path / "model-2.safetensors", {"model.layers.0.self_attn.extra.weight": [3, 5], "visual.patch.weight": [7], "mtp.x.weight": [2]}
    )
    assert notes(tmp_path) == [
        f"weights differ: {count + 15:,} parameters by the headers of the safetensors files, {count:,} by config.json "
        f"({15 / count:+.2%}); 9 further numbers are apart from the text decoder"
    ]


def test_weights__packed_types_are_not_counted(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(TINY))
    write(tmp_path / "model.safetensors", shapes(TINY), "I32")
    assert notes(tmp_path)[0].startswith("weights beside the config are packed (I32)")


@pytest.mark.parametrize(("more", "word"), [(0, "agree"), (2, "differ")])
def test_weights__index_is_compared_where_no_file_is(tmp_path: Path, more: int, word: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(TINY))
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": 2 * total(TINY) + more}}))
    assert notes(tmp_path)[0].startswith(f"weights {word}")


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 8, struct.pack("<Q", 4) + b"null", struct.pack("<Q", 9) + b'{"a": 1}', b"\x02" + b"\0" * 7 + b"{"]
)
def test_weights__broken_header_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(BadFile, match="safetensors") as caught:
        header(path)
    assert "\n" not in str(caught.value)


def test_page__lists_every_reader_and_every_refusal() -> None:
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    assert [name for name in (*READERS, *REFUSED) if f"`{name}`" not in page] == []

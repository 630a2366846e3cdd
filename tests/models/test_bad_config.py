"""A wrong config.json is one clear typed error: never a traceback of another kind, a hang, a NaN or a negative number."""

from __future__ import annotations

import copy
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.core.errors import BadFile, BadValue, HeadwayError, UnsupportedModel
from headway.models import totals as whole
from headway.models.config import from_data, model
from headway.models.describe import about_model
from headway.models.readers.families import READERS
from support.paths import DATA, SOURCE
from support.work import bounded

CONFIGS = {path.name: json.loads(path.read_text()) for path in sorted((SOURCE / "data" / "models").glob("*.json"))}
RELATIVES = json.loads((DATA / "published_counts.json").read_text())
FURTHER = json.loads((DATA / "architectures.json").read_text())
EVERY = CONFIGS | {name: row["config"] for name, row in (RELATIVES | FURTHER).items() if name != "_about"}
LLAMA = CONFIGS["meta-llama--Meta-Llama-3.1-8B.json"]


def one_line(error: HeadwayError) -> None:
    text = str(error)
    assert text and "\n" not in text and len(text) < 2500, text


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("cut.json", '{"model_type":"llama","hidden_size":40', "not valid JSON"),
        ("empty.json", "", "empty"),
        ("blank.json", "  \n", "empty"),
        ("deep.json", "[" * 100_000, "nested too deeply|not valid JSON"),
        ("deep_object.json", '{"a":' * 100_000, "nested too deeply|not valid JSON"),
        ("list.json", "[1, 2]", "JSON object"),
        ("number.json", "3", "JSON object"),
        ("null.json", "null", "JSON object"),
        ("not.json", "<html></html>", "not valid JSON"),
    ],
)
def test_config__broken_file_is_one_line(tmp_path: Path, name: str, text: str, says: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(BadFile, match=says) as caught:
        model(path)
    one_line(caught.value)


def test_config__binary_absent_and_empty_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00\x01" * 100)
    with pytest.raises(BadFile, match="UTF-8"):
        model(tmp_path / "binary.json")
    with pytest.raises(BadFile, match="cannot be read"):
        model(tmp_path / "absent.json")
    with pytest.raises(BadFile, match="cannot be read"):
        model(tmp_path)  # a folder without config.json


def test_config__pipe_and_device_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(BadFile, match="not a file"):
        model(tmp_path / "pipe.json")
    with pytest.raises(BadFile, match="not a file"):
        model("/dev/zero")


@pytest.mark.parametrize(
    "text", ["", " ", "\0", "x" * 300, "x" * 5000, "a/b/c", "~/", "~nobody/x", "é" * 200, "..", "/", "-", "nan", "/x/config.json"]
)
def test_model__invalid_name_is_one_line(text: str) -> None:
    with pytest.raises(HeadwayError) as caught:
        model(text)
    one_line(caught.value)


def test_config__hundred_megabytes_are_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with path.open("wb") as out:
        out.truncate(100_000_000)
    with pytest.raises(BadFile, match="above 8 MiB"):
        model(path)


def test_config__huge_integer_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "llama", "hidden_size": ' + "9" * 10_000 + "}")
    with pytest.raises(HeadwayError) as caught:
        model(path)
    one_line(caught.value)


DIMENSIONS = ["hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"]


@pytest.mark.parametrize("key", [*DIMENSIONS, "num_key_value_heads"])
@pytest.mark.parametrize("value", ["many", "4096", True, [4096], {}, float("nan"), float("inf"), -1, 0, 1.5, 10**10, 1e300])
def test_config__wrong_count_names_its_key(key: str, value: Any) -> None:
    with pytest.raises((BadValue, UnsupportedModel), match=key) as caught:
        from_data(LLAMA | {key: value}, "x", "x")
    one_line(caught.value)


@pytest.mark.parametrize("key", [*DIMENSIONS, "model_type"])
def test_config__missing_key_is_named(key: str) -> None:
    with pytest.raises((BadValue, UnsupportedModel), match=key):
        from_data({name: value for name, value in LLAMA.items() if name != key}, "x", "x")


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ({"model_type": "perceiver"}, "--as dense, moe or mla"),
        ({"model_type": ["llama"]}, "model_type"),
        ({"num_attention_heads": 7}, "head_dim|num_key_value_heads"),
        ({"num_key_value_heads": 5}, "num_key_value_heads"),
        ({"num_local_experts": 8}, "num_local_experts"),
        ({"kv_lora_rank": 512}, "kv_lora_rank"),
        ({"layer_types": ["full_attention"] * 31 + ["moon_attention"]}, "layer_types"),
        ({"layer_types": ["full_attention"]}, "layer_types"),
        ({"index_topk": 2048}, "index_topk"),
        ({"num_kv_shared_layers": 4}, "num_kv_shared_layers"),
        ({"quantization_config": {"quant_method": "unheard-of"}}, "quant_method"),
        ({"quantization_config": "fp8"}, "quantization_config"),
        ({"torch_dtype": "float128"}, "torch_dtype"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
    ],
)
def test_config__keys_that_change_arithmetic_are_never_ignored(extra: dict[str, Any], says: str) -> None:
    with pytest.raises((BadValue, UnsupportedModel), match=says) as caught:
        from_data(LLAMA | extra, "x", "x")
    one_line(caught.value)


def test_config__keys_without_effect_are_ignored() -> None:
    extra = {"attention_dropout": 0.1, "rope_scaling": {"factor": 8.0}, "eos_token_id": 2, "auto_map": {"x": "y"}, "use_cache": True}
    assert float(whole.total_params(from_data(LLAMA | extra, "x", "x"))) == 8030261248


def test_config__remote_code_is_never_run() -> None:
    extra = {"auto_map": {"AutoConfig": "configuration_evil.Evil"}, "model_type": "evil"}
    with pytest.raises(UnsupportedModel):
        from_data(LLAMA | extra, "x", "x")


def sound(found: Any) -> None:
    """Every number of an accepted model is finite, none is negative, and it has parameters."""
    row = about_model(found, 4096)
    per_token = ("kv_bytes_per_token", "index_bytes_per_token", "kv_read_bytes_per_token", "state_bytes_per_sequence")
    for key in ("total_params", "active_params", "matmul_params", *per_token):
        value = float(getattr(row, key))
        assert math.isfinite(value) and value >= 0, (key, value)
    assert float(row.active_params) <= float(row.total_params) and float(row.matmul_params) > 0
    assert all(float(value) >= 0 for value in row.params.values())


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 5), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.integers(0, 3), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2), st.sampled_from([10**9, 10**9 + 1, 10**400, 1e308, 7, 128, 4096]),
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    """A real config with a few keys changed, dropped, or brought in from another one."""
    config = copy.deepcopy(EVERY[draw(st.sampled_from(sorted(EVERY)))])
    inner = config.get("text_config", config)
    for _ in range(draw(st.integers(1, 3))):
        change, key = draw(st.sampled_from(("junk", "drop", "swap", "kind"))), draw(st.sampled_from(sorted(inner)))
        if change == "junk":
            inner[key] = draw(JUNK)
        elif change == "drop":
            inner.pop(key, None)
        elif change == "kind":
            inner["model_type"] = draw(st.sampled_from(sorted(READERS)))
        else:
            inner |= {key: value for key, value in EVERY[draw(st.sampled_from(sorted(EVERY)))].items() if draw(st.booleans())}
        if not inner:
            break
    return config


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(mutated())
def test_config__mutation_is_a_sound_model_or_one_line(config: dict[str, Any]) -> None:
    try:
        found = bounded(lambda: from_data(config, "mutant", "mutant"))
    except HeadwayError as error:
        one_line(error)
        return
    sound(found)


@settings(max_examples=100)
@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.floats(), st.text(max_size=4)), lambda inner: st.lists(inner, max_size=3), max_leaves=6
    )
)
def test_quantization_config__any_value_is_a_sound_model_or_one_line(value: Any) -> None:
    for config in (LLAMA | {"quantization_config": value}, LLAMA | {"quantization_config": {"quant_method": value, "ignore": value}}):
        try:
            sound(from_data(config, "mutant", "mutant"))
        except HeadwayError as error:
            one_line(error)

"""Bytes of weights against what engines and model pages print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headway.models import totals
from headway.models.config import from_file, model

GIB = 2**30


# Start logs of vLLM: vllm-project/vllm#10927, #10517, #12569. Beside the weights stand rotary tables, of 8B 33 MB.
@pytest.mark.parametrize(("name", "weights", "size"), [
    ("deepseek-v2-lite", "bf16", 29.301), ("llama-3.1-8b", "bf16", 14.989), ("llama-3.1-70b", "int8", 67.723),
])  # fmt: skip
def test_weights__are_as_logged(name: str, weights: str, size: float) -> None:
    assert float(totals.loaded_bytes(model(name), weights)) / GIB == pytest.approx(size, rel=0.003)


def test_weights__of_kimi_k3_are_its_checkpoint(tmp_path: Path) -> None:
    """1,560 GB on disk (lyogavin/airllm#316): routed experts in groups of 32 with a byte of scale, all else in 16 bits."""
    config = json.loads((Path(__file__).parents[1] / "data" / "architectures.json").read_text())["kimi-k3"]["config"]
    scheme = {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32, "scale_dtype": "torch.uint8", "symmetric": True}
    config["quantization_config"] = {
        "quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized",
        "config_groups": {"group_0": {"format": "mxfp4-pack-quantized", "targets": ["Linear"], "weights": scheme}},
        "ignore": ["re:.*self_attn.*", "re:.*shared_experts.*", "re:.*mlp\\.(gate|up|down)_proj.*", "re:.*lm_head.*"],
    }  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    found = from_file(path)
    assert found.precision.expert == "mxfp4" and found.precision.mixer == "bf16"
    assert float(totals.stored_bytes(found)) / 1e9 == pytest.approx(1560, rel=0.01)

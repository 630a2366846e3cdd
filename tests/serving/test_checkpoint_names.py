"""The checkpoint named is the checkpoint launched, and what is computed with another's shapes says so."""

from __future__ import annotations

import pytest

from headway.models.config import checkpoints, model, spellings
from support.command import Cli

LOAD = "--on 8xb200-sxm --prompt 1k --output 100"


@pytest.mark.parametrize(("name", "launched"), [
    ("llama-3.3-70b", "meta-llama/Llama-3.3-70B-Instruct"), ("meta-llama/Llama-3.3-70B-Instruct", "meta-llama/Llama-3.3-70B-Instruct"),
    ("qwen2.5-vl-72b", "Qwen/Qwen2.5-VL-72B-Instruct"), ("qwen3-vl-235b-a22b", "Qwen/Qwen3-VL-235B-A22B-Instruct"),
    ("llama-3.1-70b-instruct", "meta-llama/Llama-3.1-70B-Instruct"),
])  # fmt: skip
def test_launch__serves_the_checkpoint_that_was_named(cli: Cli, name: str, launched: str) -> None:
    document = cli.json(f"plan {name} {LOAD} --launch vllm")
    assert any(launched in line for line in document["launch"])
    assert any(launched in note and "shapes of" in note for note in document["notes"])
    assert any("vision tower" in note for note in document["notes"]) == ("vl" in name)


def test_checkpoints__each_is_a_name_of_a_catalogue_model_of_its_size() -> None:
    for row in checkpoints().values():
        assert row["name"] in spellings() and model(row["name"]).notes[-1].startswith(f"assumed: {row['hf_id']}"), row

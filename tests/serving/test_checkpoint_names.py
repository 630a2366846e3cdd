"""The checkpoint named is the checkpoint answered and launched, and what is computed with another's shapes says so."""

from __future__ import annotations

import re

import pytest

from headway.core.catalog import fold
from headway.models.checkpoints import catalogue_checkpoints, checkpoint
from headway.models.config import catalogue_index, model, spellings
from support.command import Cli

LOAD = "--on 8xb200-sxm --prompt 1k --output 100"
MAKERS = {"hf", "meta", "nvidia"}  # words that makers add to the name of a checkpoint, or leave out
# Other spellings of a checkpoint, with words that neither its catalogue name nor its Hugging Face id has.
PLAIN = {
    "code-llama-34b", "deepseek-r1-671b", "deepseek-v3-671b", "deepseekv3", "dsv3", "deepseek-67b", "glam-1.2t", "gpt2-small",
    "gptj", "gptj-6b", "gptoss-120b", "gptoss-20b", "llama-1-7b", "llama1-7b", "llama-1-13b", "llama1-13b", "llama-1-30b", "llama-1-33b",
    "llama-33b", "llama-1-65b", "llama-3-405b", "llama-3.1-8b-base", "llama31-405b", "llama31-70b", "llama31-8b", "mistral-large-123b",
    "mistral-large-2-123b", "mistral-small-3", "mistral-small-3-24b", "phi-3-medium-14b", "phi-4-14b",
    "qwen3.5-vl-35b-a3b", "qwen3.5-vl-397b-a17b",  # Megatron's names: every Qwen3.5 has a vision tower
}  # fmt: skip
# Families whose id without an ending is the pretrained model (-base says so), or the tuned one (-instruct says so).
PRETRAINED, TUNED = ("qwen2.5-",), ("qwen3-",)


def words(text: str) -> set[str]:
    """Letters and numbers of a name, versions whole: qwen2.5-7b is qwen, 2.5, 7, b."""
    return set(re.findall(r"[a-z]+|\d+(?:\.\d+)*", text.lower()))


def is_mere_spelling(spelling: str, name: str, hf_id: str) -> bool:
    """Whether a spelling has no word that the catalogue model's own name and id lack."""
    publisher, _, tail = hf_id.partition("/")
    bare = spelling.removeprefix(fold(publisher) + "/")
    ending = {"base"} if name.startswith(PRETRAINED) else {"instruct"} if name.startswith(TUNED) else set()
    known = words(name) | words(re.sub(r"(\d)_(\d)", r"\1.\2", tail)) | MAKERS | ending
    dashes = [match.start() for match in re.finditer(r"(?<=\d)-(?=\d)", bare)]  # one may stand for a dot, as in internlm2-1-8b
    dotted = [bare[:at] + "." + bare[at + 1:] for at in dashes]
    return spelling in PLAIN or any(words(text) <= known for text in (bare, *dotted))


def test_spellings__each_is_one_of_its_model_or_a_checkpoint_that_is_noted() -> None:
    rows = {row["file"]: row for row in catalogue_index()}
    silent = []
    for spelling, file in spellings().items():
        row, answer = rows[file], model(spelling)
        if is_mere_spelling(spelling, row["name"], row["hf_id"]) and checkpoint(spelling) is None:
            continue
        tune = checkpoint(spelling)
        subject = "" if tune is None else tune.hf_id or tune.name
        of_tower = tune is not None and tune.name == row["name"]
        noted = of_tower or (answer.notes[-1:] and answer.notes[-1].startswith(f"assumed: {subject} has the shapes of {row['name']}"))
        if tune is None or not noted or (fold(answer.name) not in (spelling, fold(subject)) and not of_tower):
            silent.append((spelling, row["name"], answer.name, answer.notes))
    assert silent == []


def test_checkpoints__each_has_the_shapes_of_a_catalogue_model() -> None:
    by_name = {row["name"]: row["file"] for row in catalogue_index()}
    wrong = [row for row in catalogue_checkpoints() if spellings()[fold(row.name)] != by_name[row.model] or not row.source]
    assert wrong == []


@pytest.mark.parametrize(("name", "key", "value"), [
    ("mistral-7b-instruct-v0.2", "vocab", 32_000), ("mistralai/Mixtral-8x22B-Instruct-v0.1", "vocab", 32_768),
    ("codellama/CodeLlama-7b-hf", "vocab", 32_016), ("vicuna-13b-v1.5", "max_context", 4_096), ("vicuna-13b-v1.3", "max_context", 2_048),
    ("qwen3-30b-a3b-instruct-2507", "max_context", 262_144), ("deepseek-r1-distill-qwen-1.5b", "tied", False),
])  # fmt: skip
def test_checkpoint__differs_from_its_model_in_the_keys_that_its_config_has(name: str, key: str, value: float) -> None:
    assert getattr(model(name), key) == value


@pytest.mark.parametrize(("name", "launched"), [
    ("llama-3.3-70b", "meta-llama/Llama-3.3-70B-Instruct"), ("meta-llama/Llama-3.3-70B-Instruct", "meta-llama/Llama-3.3-70B-Instruct"),
    ("qwen2.5-vl-72b", "Qwen/Qwen2.5-VL-72B-Instruct"), ("Qwen/Qwen2.5-VL-72B-Instruct", "Qwen/Qwen2.5-VL-72B-Instruct"),
    ("qwen3-vl-235b-a22b", "Qwen/Qwen3-VL-235B-A22B-Instruct"), ("llama-3.1-70b-instruct", "meta-llama/Llama-3.1-70B-Instruct"),
    ("glm-4.6", "zai-org/GLM-4.6"), ("Qwen/Qwen2.5-Coder-32B", "Qwen/Qwen2.5-Coder-32B"),
])  # fmt: skip
def test_launch__serves_the_checkpoint_that_was_named(cli: Cli, name: str, launched: str) -> None:
    document = cli.json(f"plan {name} {LOAD} --launch vllm")
    assert any(launched in line for line in document["launch"])
    assert any(launched in note and "shapes of" in note for note in document["notes"])
    assert any("vision tower" in note for note in document["notes"]) == ("vl" in name.lower())
    assert {row["model"] for row in document["rows"]} == {name}


@pytest.mark.parametrize("name", ["meta-llama/Llama-3.3-70B-Instruct", "pixtral-12b", "llama-3.3-70b:12layers"])
def test_sentence__names_the_model_that_was_named(cli: Cli, name: str) -> None:
    assert cli(f"serve {name} --on 8xh200 --batch 4 --context 4k").out.startswith(name + " ")

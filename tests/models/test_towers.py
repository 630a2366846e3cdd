"""Vision towers: counts of checkpoints as published, work of an image, and what both do to memory and latency."""

from __future__ import annotations

import pytest

from headway.laws.step.parts import image_flop
from headway.models import totals
from headway.models.checkpoints import UNKNOWN, catalogue_checkpoints
from headway.models.config import from_data, model
from headway.models.readers.towers import catalogue_tower
from support.command import Cli

# Parameters of all tensors of a checkpoint, as its page on the Hugging Face hub states them: decoder, tower and projector.
PUBLISHED = {
    "qwen2-vl-2b": 2_208_985_600, "qwen2-vl-7b": 8_291_375_616, "qwen2-vl-72b": 73_405_560_320, "qwen2.5-vl-3b": 3_754_622_976,
    "qwen2.5-vl-7b": 8_292_166_656, "qwen2.5-vl-32b": 33_452_718_336, "qwen2.5-vl-72b": 73_410_777_344, "qwen3-vl-2b": 2_127_532_032,
    "qwen3-vl-4b": 4_437_815_808, "qwen3-vl-8b": 8_767_123_696, "qwen3-vl-30b-a3b": 31_070_754_032, "gemma-3-4b": 4_300_079_472,
    "gemma-3-12b": 12_187_325_040, "gemma-3-27b": 27_432_406_640, "mistral-small-3.1-24b": 24_011_361_280,
    "llama-4-scout-17b-16e": 108_641_793_536, "llama-4-maverick-17b-128e": 401_583_781_376,
}  # fmt: skip
LOAD = "--prompt 4k --output 300 --batch 8"


@pytest.mark.parametrize("name", PUBLISHED)
def test_decoder_and_tower__are_the_published_count(name: str) -> None:
    found = model(name)
    assert found.tower is not None
    assert int(totals.total_params(found)) + int(found.tower.params) == PUBLISHED[name]


def test_every_tower_that_a_checkpoint_names__is_read() -> None:
    for row in catalogue_checkpoints():
        if row.tower not in ("", UNKNOWN):
            tower = catalogue_tower(row.tower, 4096)
            assert int(tower.params) > 1e8 and int(tower.image_tokens) > 0


def test_work_of_an_image__is_the_sum_over_its_layers() -> None:
    hidden, width, layers, patches, text = 1152, 4304, 27, 4096, 5376  # the tower of Gemma 3, before its decoder of 27B
    tower = catalogue_tower("gemma3", text)
    per_layer = 2 * patches * (4 * hidden**2 + 2 * hidden * width) + 2 * 2 * patches**2 * hidden
    least = layers * per_layer + 2 * patches * 3 * 14**2 * hidden + 2 * 256 * hidden * text
    said = image_flop(
        tower.encoder_params, tower.projector_params, tower.hidden, tower.full_layers, tower.window_layers, tower.window, patches, 256
    )
    assert least < float(said) < 1.001 * least  # biases and norms count as if they were matmuls


def test_windows__cost_less_than_full_attention() -> None:
    tower = catalogue_tower("qwen2_5_vl", 3584)
    parts = (float(tower.encoder_params), float(tower.projector_params), 1280)
    patches = 4 * 1369
    windowed = float(image_flop(*parts, 4, 28, 64, patches, 1369))
    assert windowed == pytest.approx(float(image_flop(*parts, 32, 0, 1, patches, 1369)) - 4 * 1280 * 28 * patches * (patches - 64))


@pytest.mark.parametrize("tp", [1, 2])
def test_images__add_their_work_to_the_floor_of_a_prompt(cli: Cli, tp: int) -> None:
    command = f"serve qwen3-vl-8b --on {tp}xh100-sxm --tp {tp} {LOAD}"
    rows = [cli.json(f"{command} --images {count}")["rows"][0] for count in (1, 3)]
    tower = catalogue_tower("qwen3_vl_1152", 4096)
    flop = image_flop(tower.encoder_params, tower.projector_params, tower.hidden, 27, 0, 1, 4096, 1024)
    assert rows[1]["ttft_floor_s"] - rows[0]["ttft_floor_s"] == pytest.approx(2 * float(flop) / 989.4e12 / tp, rel=1e-6)
    assert rows[1]["ttft_s"] > rows[0]["ttft_s"] and rows[1]["step_s"] == rows[0]["step_s"]


def test_half_the_prompt_in_images__weighs_as_its_chunks_do(cli: Cli) -> None:
    alone, images = (cli.json(f"sim qwen3-vl-8b --on 1xh100-sxm --rate 2 --prompt 4k --output 100 --requests 400 {more}")["rows"][0]
                     for more in ("", "--images 2"))  # fmt: skip
    assert images["mean_ttft_s"] > 1.1 * alone["mean_ttft_s"]


def test_the_bytes_of_a_tower__are_on_the_chips(cli: Cli) -> None:
    for tp in (1, 4):
        text, vision = (cli.json(f"serve {name} --on {tp}xh100-sxm --tp {tp} {LOAD}")["rows"][0] for name in ("qwen3-8b", "qwen3-vl-8b"))
        assert vision["weights_bytes_chip"] - text["weights_bytes_chip"] == pytest.approx(2 * 576_388_336 / tp, rel=1e-9)
    text, vision = (cli.json(f"capacity {name} --on 1xh100-sxm")["rows"][0] for name in ("qwen3-8b", "qwen3-vl-8b"))
    assert vision["weights_bytes"] - text["weights_bytes"] == pytest.approx(2 * 576_388_336, rel=1e-9)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("serve qwen3-8b --images 1", "a model whose vision tower is known"),
        ("serve kimi-k2.5 --images 1", "a model whose vision tower is known"),
        ("serve qwen3-vl-8b --images 9", "one of 4000 tokens does not"),
        ("serve qwen3-vl-8b --image-tokens 500", "it changes no number"),
        ("serve qwen3-vl-8b --images -1", "at least 0"),
        ("serve qwen3-vl-8b --images nan", "finite"),
        ("serve qwen3-vl-8b --images 1 --image-tokens 0", "at least 1"),
    ],
)
def test_images_that_cannot_be__are_refused_in_one_line(cli: Cli, command: str, says: str) -> None:
    answer = cli(f"{command} --on 8xh100-sxm --tp 8 {LOAD}")
    assert answer.status == 2 and says in answer.err and answer.err.count("\n") == 1


@pytest.mark.parametrize("broken", [{"deepstack_visual_indexes": 3}, {"depth": "many"}, {"hidden_size": 0}, {"spatial_merge_size": None}])
def test_a_broken_tower__never_keeps_a_decoder_from_being_read(broken: dict[str, object]) -> None:
    vision = {"model_type": "qwen3_vl", **broken}
    text = {"model_type": "qwen3_vl_text", "hidden_size": 4096, "num_hidden_layers": 2, "intermediate_size": 512, "num_attention_heads": 32,
            "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 1000, "tie_word_embeddings": False}  # fmt: skip
    found = from_data({"model_type": "qwen3_vl", "vision_config": vision, "text_config": text, "torch_dtype": "bfloat16"}, "x", "x")
    assert int(totals.total_params(found)) > 8e6
    assert (found.tower is None) == ("spatial_merge_size" not in broken)

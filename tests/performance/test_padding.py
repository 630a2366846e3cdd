"""What an allocator adds to weights, against start logs."""

from __future__ import annotations

from typing import Any

import pytest

from headway.hardware.system import system
from headway.models.config import model
from headway.models.precision import Precision
from headway.models.work import work_of
from headway.performance.assumptions import Assumptions
from headway.performance.compile import layout_bytes
from headway.performance.formats import resolve
from headway.performance.layout import Layout
from headway.performance.padding import padding_bytes
from headway.performance.splits import splits

GIB = 2**30


def case_of(name: str, on: str, **layout: Any) -> tuple[Any, ...]:
    """A model's work, a chip, a layout, assumptions and formats, in 16 bits."""
    work, chip = work_of(model(name)), system(on).chip
    return work, chip, Layout(**layout), Assumptions(), resolve(work, chip, Precision(weights="bf16"))


def test_padding__of_an_allocator_is_what_a_card_holds_beyond_the_weights() -> None:
    """Qwen2.5-14B on two cards: 14.976 GB of each as vLLM logged it (vllm-project/vllm#13061), 14.77 GB of them parameters."""
    case = case_of("qwen2.5-14b", "2xrtx4090", tp=2)
    padding = padding_bytes(case[0], case[2], case[4], splits("vllm", "other"))
    weights = float(layout_bytes(*case).weights_bytes)
    assert weights / 1e9 == pytest.approx(14.77, abs=0.01)
    assert (weights + float(padding)) / 1e9 == pytest.approx(14.976, rel=0.003)


def test_padding__is_none_where_all_matrices_are_whole() -> None:
    """Llama-3.1-8B on one card: 48, 32, 224 and 112 MiB; its log exceeds the weights by a table of 131,072 rotations, 32 MiB."""
    case = case_of("llama-3.1-8b", "1xrtx3090")
    assert float(padding_bytes(case[0], case[2], case[4], splits("vllm", "other"))) == 0
    assert float(layout_bytes(*case).weights_bytes) / GIB + 2**-5 == pytest.approx(14.989, abs=0.001)

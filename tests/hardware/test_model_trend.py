"""Models by release date: facts that papers print, and what follows from them."""

from __future__ import annotations

import re

import pytest

from headway.core.formula import anonymous
from headway.core.trace import record
from headway.hardware.trend import trend_models
from headway.models.config import catalogue_index
from headway.models.describe import releases
from support.command import Cli

ROWS = {row.model: row for row in trend_models()}
# Month and tokens as the papers' abstracts print them.
PRINTED = {"gpt3-175b": ("2020-05", 300e9),
           "palm-540b": ("2022-04", 780e9), "llama-2-70b": ("2023-07", 2e12), "deepseek-v3": ("2024-12", 14.8e12),
           "qwen3-235b-a22b": ("2025-04", 36e12), "kimi-k2": ("2025-07", 15.5e12)}  # fmt: skip


@pytest.mark.parametrize("name", PRINTED)
def test_release__month_and_tokens_as_printed(name: str) -> None:
    assert (releases()[name].month, float(releases()[name].training_tokens)) == PRINTED[name]


def test_releases__are_of_catalogue_models_with_source_and_status() -> None:
    names = {row["name"] for row in catalogue_index()}
    assert names >= releases().keys() and len(names) - len(releases()) <= 5
    for release in releases().values():
        assert re.fullmatch(r"20(1[89]|2\d)-(0[1-9]|1[0-2])", release.month), release.name
        assert release.source and release.status in ("checked", "unverified"), release.name
        cited = re.search(r"arXiv:(\d\d)(\d\d)\.", release.source)
        if cited:  # a paper is at most half a year older than its model, and a year younger
            paper = int(cited[1]) * 12 + int(cited[2])
            model = (int(release.month[:4]) - 2000) * 12 + int(release.month[5:])
            assert -1 <= paper - model <= 12 or release.name == "deepseek-r1", release.name


def test_trend_models__by_date_with_the_domain_of_the_year_before() -> None:
    months = [row.released for row in trend_models()]
    assert months == sorted(months) and len(months) > 140
    assert ROWS["llama-2-70b"].scale_up_domain == 8 and ROWS["llama-2-70b"].domain_hbm == 8 * 80e9  # 2023: boxes of 8 H100
    assert ROWS["kimi-k2"].scale_up_domain == 72 and ROWS["kimi-k2"].fits is True  # 2025: GB200 NVL72
    assert ROWS["gpt3-175b"].domain_chip is None and ROWS["gpt3-175b"].fits is None  # before the first A100 box


def test_trend_models__over_training_by_hand() -> None:
    assert ROWS["llama-3-8b"].tokens_per_active == pytest.approx(15e12 / 8.030e9, rel=1e-3)
    assert ROWS["deepseek-v3"].sparsity == pytest.approx(671 / 37.55, rel=1e-3)
    assert ROWS["mistral-large-2"].tokens_per_active is None


def test_trend_models__every_number_has_an_origin() -> None:
    with record():
        row = next(entry for entry in trend_models() if entry.model == "deepseek-v3")
    keys = ("total_params", "active_params", "sparsity", "kv_bytes_per_token", "tokens_per_active", "domain_hbm", "weights_bytes", "year")
    assert {key: anonymous(getattr(row, key)) for key in keys} == {key: [] for key in keys}


def test_trend_models__weights_are_the_published_checkpoint_of_kimi_k2_5() -> None:
    """594 GB: INT4 with a 16-bit scale per 32 for routed experts, BF16 for the rest (Hugging Face file list, from memory, unverified)."""
    assert float(ROWS["kimi-k2.5"].weights_bytes) == pytest.approx(594e9, rel=0.01)


def test_trend_models__words_say_what_is_unverified(cli: Cli) -> None:
    text = cli("trend", "models", "--where", "year >= 2025").text
    assert "unverified" in text and "Largest model: 2025 1.03T (kimi-k2), 2026 1.03T (kimi-k2.5)." in text
    assert cli("trend", "boats").status == 2


def test_trend_models__five_notes_hold_size_and_the_plateau_of_context(cli: Cli) -> None:
    """By hand from the configurations: medians of 2024 and 2025 are both 131,072, of 2026 262,144; 8 H100 hold 640 GB, 72 GB200 13.4 TB."""
    notes = [line.removeprefix("note: ") for line in cli("trend", "models").text.splitlines() if line.startswith("note: ")]
    assert len(notes) == 5
    context = next(line for line in notes if line.startswith("Median context: "))
    assert context.endswith("2023 4,096, 2024 32,768, 2025 131,072, 2026 262,144.")
    domain = next(line for line in notes if line.startswith("Memory of the largest scale-up domain on sale: "))
    assert "2023 640 GB (h100_sxm)" in domain and "2025 13.4 TB (gb200)" in domain
    size = next(line for line in notes if line.startswith("Largest model: "))
    assert "2022 540B (palm-540b), 2023 180B (falcon-180b)" in size

"""Every test: an environment of its own, no time limits, and `cli`."""

from __future__ import annotations

import functools
import gc

import pytest
from hypothesis import HealthCheck, settings

from support.environment import settle

settle()  # before numpy is imported

from support.command import Cli  # noqa: E402

# A slow machine is no failure, and `cli` keeps nothing from one example to the next.
settings.register_profile("headway", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
settings.load_profile("headway")


@pytest.fixture
def cli() -> Cli:
    """The command line: `cli("serve", ...)`."""
    return Cli()


@pytest.fixture
def proposals_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `score` proposes is simulated once for a command, however often a test scores the same runs."""
    from headway.answers import score

    monkeypatch.setattr(score, "simulated", functools.cache(score.simulated))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The file whose fixture asks every documented command comes first: a worker takes from the end of another's, and would ask again."""
    items.sort(key=lambda item: item.path.name != "test_words.py")


def pytest_collection_finish() -> None:
    """What was imported and collected stays: the garbage collector need not look at it again."""
    gc.collect()
    gc.freeze()

"""Every test: an environment without the user's own settings, no time limits, and `cli`."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from support.command import Cli

# What a user may have set changes answers or their colours.
OWN_SETTINGS = (
    "HEADWAY_CATALOG", "HEADWAY_DEBUG", "FORCE_COLOR", "CLICOLOR_FORCE", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS",
    "LINES",
)  # fmt: skip
for name in OWN_SETTINGS:
    os.environ.pop(name, None)
os.environ["XDG_CONFIG_HOME"] = os.devnull  # no catalogue of the user's own

# A slow machine is no failure, and `cli` keeps nothing from one example to the next.
settings.register_profile("headway", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
settings.load_profile("headway")


@pytest.fixture
def cli() -> Cli:
    """The command line: `cli("serve", ...)`."""
    return Cli()

"""Two machines side by side: ratios of facts as they are, per dollar and per watt, and chips at equal cost or power."""

from __future__ import annotations

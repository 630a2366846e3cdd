"""The search for the best layout: problem -> space -> candidates -> search -> choice -> group; plan puts them together.

`disaggregate` pairs a prefill pool with a decode pool, `sensitivity` says what would help. Entry: `plan.plan`.
"""

from __future__ import annotations

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)

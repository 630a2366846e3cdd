"""`plan` of one pool, which brute force over layouts is compared with: prefill apart has tests of its own."""

from __future__ import annotations

import functools

from headway.serving.plan.plan import plan as both_ways

plan = functools.partial(both_ways, disaggregate="never")

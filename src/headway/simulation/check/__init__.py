"""Whether a deployment keeps its latency limits under traffic, by simulation, and how sure that is.

`limits` (limits on means and percentiles, from flags), `offered` (rate, users or trace), `plays` (a candidate, how many requests, in which
form, and one play with every step longer by a factor), `latencies` (statistics with their sampling error), `check` (all of it, for one
candidate or several: the largest factor at which every limit holds, as a probability), `plan_at_load` (a plan that is checked).
"""

from __future__ import annotations

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)

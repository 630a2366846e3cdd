"""Laws of queueing: closed loops of users, and batches that depart like trains.

`closed_loop` (the fixed point of N users or of Poisson arrivals, on one pool or two), `users` (the parts of that loop), `handed`
(a replica that only decodes, under arrivals), `drafts` (loops
with drafts beside those without), `departures` (waits for a batch that leaves at fixed times or when it is full).
"""

from __future__ import annotations

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)

"""Laws of collectives: placement and topology, algorithm cost, expert-parallel dispatch and combine.

`topology` (where a group of chips sits, what each algorithm sends), `cost` (alpha + slope * tokens, the fastest algorithm is used),
`expert_parallel` (experts a batch meets, dispatch and combine). Used by performance and training.
"""

from __future__ import annotations

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)

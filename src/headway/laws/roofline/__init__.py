"""Laws of the roofline: balanced batch, decode step of a whole model, memory capacity and drain time.

`balance` (where compute and memory, attention and the rest, links and chips take equal time; what fits, drain time; one matmul),
`batch_step` (a step by batch and context), `sharding` (copies of split arrays, which way sends less, how far decode splits).
The step of a real layout is `laws.step`.
"""

from __future__ import annotations

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)

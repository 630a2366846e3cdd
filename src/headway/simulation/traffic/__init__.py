"""Traffic: requests that were recorded (Azure, BurstGPT, Mooncake and other formats) or drawn from distributions.

`requests.Traffic` is the record; `read` fills it from files, `generate` from a seed and `distributions` of arrivals and lengths.
"""

from __future__ import annotations

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)

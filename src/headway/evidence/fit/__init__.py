"""Common parts of the kernel, engine and training fits: priors, robust loss, errors, interval widths, the file of fitted numbers.

`result` (priors, numbers and their lines, efficiency.toml), `statistics` (losses, errors by source and by cluster); of serving alone:
`widths` (of intervals), `nearest` (data/evidence.csv).
"""

from __future__ import annotations

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)

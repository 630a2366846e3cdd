"""Measured serving runs: predictions of rows, scores, and the fit of engine overheads.

`machines` (setups as arrays, times by kind of task) -> `predict` (with intervals) -> `score`; `runs`, `causes`, `remedies` (one run);
`engine_fit`, `refit` (numbers), `folds` (clusters left out: intervals), `page`.
"""

from __future__ import annotations

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)

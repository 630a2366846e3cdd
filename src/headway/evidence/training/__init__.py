"""Measured training runs: rows, their models and layouts, predictions, and the fit of training efficiencies.

`row` -> `setup` (values that a row does not state) -> `predict`; `fit`, `crossval`, `refit`.
"""

from __future__ import annotations

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)

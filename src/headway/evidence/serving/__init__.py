"""Measured serving runs: predictions of rows, scores, and the fit of what engines add to kernels.

`machines` (setups side by side) -> `quantities` (times by kind of task) -> `predict` (with intervals) -> `score`; `engine_fit`, `refit`.
"""

"""Measured serving runs: predictions of rows, scores, and the fit of engine overheads.

`machines` (setups as arrays) -> `quantities` (times by kind of task) -> `predict` (with intervals) -> `score`; `engine_fit`, `refit`.
"""

"""Measured training runs: rows, what they say of their model and layout, predictions beside them, the fit of what training reaches.

`row` -> `setup`, `shape` and `layouts` (what a row leaves open) -> `predict`; `fit`, `crossval`, `refit`.
"""

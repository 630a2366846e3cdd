"""Measured training runs: rows, their models and layouts, predictions, and the fit of training efficiencies.

`row` -> `setup` (values that a row does not state) -> `predict`; `fit`, `crossval`, `refit`.
"""

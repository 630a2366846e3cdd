"""Common parts of the kernel, engine and training fits: residuals, cross-validation, interval widths, the file of fitted numbers.

`residuals` (errors by group), `crossval`, `result` (writes efficiency.toml), `nearest` (data/evidence.csv).
"""

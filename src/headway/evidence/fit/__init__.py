"""What fits of kernels, engines and training share: residuals, folds left out, interval widths, the file of fitted numbers.

`residuals` (errors by group), `crossval`, `result` (writes efficiency.toml), `nearest` (data/evidence.csv).
"""

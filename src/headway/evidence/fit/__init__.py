"""Common parts of the kernel, engine and training fits: priors, robust loss, folds, errors, interval widths, the file of fitted numbers.

`priors` (numbers and their lines), `robust` (losses, standard errors by source), `folds` and `weighted` (classes left out, statistics by
cluster), `result` (efficiency.toml, widths); of serving alone: `crossval`, `residuals`, `class_scores`, `nearest` (data/evidence.csv).
"""

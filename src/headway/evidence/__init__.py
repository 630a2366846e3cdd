"""Measurements and claims compared with predictions: measured rows, readers of benchmark output, fits, errors, the lecture's claims.

Holds        rows/ (measured rows and their defaults), readers/ (output of benchmark tools), kernels/ (fit of kernels), serving/ (predict,
             score and fit engines), training/ (predict and fit training runs), calibration/ (rows as what
             a calibration learns from), fit/ (priors, statistics, intervals), claims/ (the
             lecture's ledger), lecture/ (its chapters, search, other inputs, card, bridge, flashcards), pages (generated
             documentation), questions (score, predict, fit, lecture, show).
Import       rows.row.read_rows, rows.tasks.tasks, serving.predict.predict, serving.score.score, serving.refit.refit, training.refit.refit,
             serving.score.residuals, serving.folds.cross_validate, claims.claim.claims, lecture.chapters.chapters, lecture.search.find.
May import   reality, economics, simulation, training, serving, performance, hardware, models, laws, core. Its users: report, answers, cli.
Reads        data/claims/*.toml (claims/claim.py), data/lecture/*.toml (lecture/chapters.py,
             lecture/inputs.py); `headway fit` writes data/efficiency.toml, data/evidence.csv and data/training/efficiency.toml,
             which performance and training read.
"""

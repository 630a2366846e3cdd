"""Training: what a layout needs in memory, how long its step takes, what a run costs, and which layout is best.

Holds        recipe (layout, number formats, run), work (FLOP and bytes by layer), pipeline (a case, a layout placed on it, what lives on
             each chip), memory, achieved (fitted rates), step_time (and its collectives), own_runs (what the user's own runs say of
             them), estimate (one layout), search (the legal layouts, the best of them), run (a request's case, best layouts; days,
             money, failures, chances), sizing (how many chips a deadline and a budget want), helps (what would help, searched
             again), train (the verb's rows), timeline and dualpipe (schedules played), questions (train,
             scale); scaling/ (scaling laws put to use).
Import       train.listing, recipe.TrainingLayout, recipe.Recipe, estimate.estimate, pipeline.TrainingCase, step_time.step_time,
             work.model_flop, recipe.TrainingReach, scaling.scale.listing.
May import   performance (assumptions, efficiency, layout, formats, topology, collectives), hardware, models, laws, core. Its users:
             evidence, report, answers, cli.
Reads        data/training/efficiency.toml (achieved.py), data/training/optimizers.toml (recipe.py), data/scaling/*.toml
             (scaling/fits.py).
"""

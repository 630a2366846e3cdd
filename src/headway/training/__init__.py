"""Training: what a layout needs in memory, how long its step takes, what a run costs, and which layout is best.

Holds        recipe (layout, number formats, run), layouts (the legal ones), work (FLOP and bytes by layer), chip_contents (what lives on
             a chip), memory, pipeline, timeline, dualpipe (its timeline), communication, achieved (fitted rates), step_time, estimate
             (one layout), search, sizing (how large a machine), run (days, money, failures), train (the verb's answer), questions
             (train, scale), columns; scaling/ (scaling laws put to use).
Import       train.train, recipe.TrainingLayout, recipe.Recipe, estimate.estimate, step_time.step_time, work.model_flop,
             recipe.TrainingReach, scaling.scale.scale.
May import   performance (assumptions, efficiency, layout, formats, topology, collectives), hardware, models, laws, core. Its users:
             evidence, report, answers, cli.
Reads        data/training/efficiency.toml (achieved.py), data/training/optimizers.toml (recipe.py), data/scaling/*.toml
             (scaling/fits.py).
"""

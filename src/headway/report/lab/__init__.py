"""Words of `headway lab`: the frame of every experiment (`words`), and a module for each experiment.

Asked first: words.described, words.drawing, words.contents; of an experiment its headline(run, rows) and below(run, rows).
"""

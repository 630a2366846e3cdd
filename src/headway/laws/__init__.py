"""The laws: pure formulas, SI in and SI out, scalar or array alike, each with its source and an example that is run as a test.

Holds        architecture (parameters, KV, score FLOP), roofline (one step of a whole model by hand), step (the step law of a layout),
             collectives, serving (from steps to requests), queueing, training, scaling, card and tiers (memory), economics, rack, sample;
             calibration (runs of one's own); coupling (ciphers, reversible layers); arithmetic (sums as laws).
Import       any function marked @formula, from its module: laws.step.step.step_s, laws.serving.request.tpot_s,
             laws.economics.cost.usd_per_mtok_out.
May import   core. Its users: every package above.
Reads        no file.
"""

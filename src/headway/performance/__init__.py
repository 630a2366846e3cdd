"""How fast a model runs on a machine in one layout: the step, and the request built on it.

Holds        layout (tp, cp, dp, ep, pp), divisibility (what engines split), token_cost (money of each kind of token), workload (load
             and limits), assumptions, formats, efficiency (fitted numbers), achieved (the rates that follow), topology and collectives,
             compile (model x machine x layout to a step model), server (a compiled layout with its engine), request (TTFT, TPOT and
             capacity at a load), estimate (every quantity of a row), law (any law by name, with facts), mesh (sharded matrix products
             and collectives), capacity (what fits, split evenly), images (towers), questions (law, matmul, collective,
             capacity), columns.
Import       layout.Layout, workload.Load, workload.SLO, assumptions.Assumptions, formats.resolve, efficiency.efficiencies,
             compile.compile_layout, compile.StepModel, estimate.Deployment, estimate.estimate.
May import   hardware, models, laws, core. Its users: serving, training, simulation, economics, evidence and above.
Reads        data/efficiency.toml and data/families.toml (efficiency.py).
"""

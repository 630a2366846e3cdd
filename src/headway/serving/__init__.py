"""Serving questions: what a layout gives, which layout is best, which input meets an output, and the line that starts the engine.

Holds        serve (a resolved deployment, a grid of points as one table, what would help a point), fits (which models
             run on a machine), solve, pools (prefill and decode apart), curves (the lecture's figures of a layout), plan/, launch/,
             questions (serve, fits, solve).
Import       serve.serve, serve.deployment, fits.best, fits.all_formats, plan.plan.plan, plan.space.domain_of, solve.solve, solve.scan,
             pools.estimate_pools, curves.curves, launch.launch.launch, launch.kubernetes.manifests.
May import   performance, hardware, models, laws, core. Its users: simulation, economics, evidence, answers, cli.
Reads        data/engines/*.toml (launch/launch.py, launch/kubernetes.py).
"""

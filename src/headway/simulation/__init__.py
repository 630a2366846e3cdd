"""Serving over time: traffic, the continuous-batching loop that answers it, its policies and caches, the report, and checked plans.

Holds        traffic/ (recorded or drawn), simulate (a run), loop (iterations), events (one request), state, step_time (the step law,
             flat), policy, routing, blocks and kv_pools (KV memory), prefix_cache, prefix_tiers, hit_rates, capacity, fleet, run,
             results, question (what `sim` is asked), timetable; machine code: compiled, compiled_loop, machine_code.
             check/: limits kept under traffic, and the question `plan`.
Import       run.Trial, fleet.fleet, policy.Policy, simulate.simulate, results.measured, hit_rates.curve, capacity.highest,
             traffic.read.read_trace, traffic.generate.generate, check.check.check.
May import   serving, performance, hardware, models, laws, core. Its users: economics, report, cli.
Reads        no file of data/ itself: scheduling numbers of an engine come through performance.achieved; traces are the user's.
"""

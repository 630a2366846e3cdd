"""Serving over time: traffic, the continuous-batching loop that answers it, its policies and caches, the report, and checked plans.

Holds        traffic/ (recorded or drawn), simulate (a run), loop (iterations), events (one request), state, step_time (the step law,
             flat), step_law (one of the user's own), routing, blocks and kv_pools (KV memory, found prefixes), prefix_tiers,
             hit_rates, settled, capacity, fleet, run, users_of_pools, results, streamed, tally and sketch (runs that keep no requests),
             memory_need, questions (`sim` and `plan`), timetable; machine code: compiled, machine_code.
             check/: limits kept under traffic.
Import       run.Trial, fleet.fleet, questions.Policy, simulate.simulate, results.measured, hit_rates.curve, capacity.highest,
             traffic.read.read_trace, traffic.generate.generate, check.check.check.
May import   serving, performance, hardware, models, laws, core. Its users: economics, report, cli.
Reads        no file of data/ itself: scheduling numbers of an engine come through performance.achieved; traces are the user's.
"""

from __future__ import annotations

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)

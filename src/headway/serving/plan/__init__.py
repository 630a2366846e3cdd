"""The search for the best layout: problem -> space -> search -> choice, frontier and sensitivity; plan puts them together.

`disaggregate` pairs a prefill pool with a decode pool, `infeasible` says what misses by least. Entry: `plan.plan`.
"""

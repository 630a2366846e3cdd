"""Where a KV cache should live: memory tiers by drain time, cost, wear and recomputing; provider fees; a trace's bill.

`problem.cache` is the entry, `placement` judges tiers (also a map of them, and fees), `tiers` says what each costs, `records`, `trace`.
"""

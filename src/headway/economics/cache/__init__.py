"""Where a KV cache should live: memory tiers by drain time, cost, wear and recomputing; provider fees; a trace's bill.

`problem.cache` is the entry, `placement` judges tiers, `tiers` says what each costs, `records` has the requests and rows, `fees`, `trace`.
"""

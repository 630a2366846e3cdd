"""Laws of memory tiers: which device a KV cache should live in, and whether to load a prefix or compute it again.

`tiers` (holding cost, drain, wear, devices needed), `reload` (load against recompute, in time and in cost). The HBM that one step needs is
`laws.step.memory`.
"""

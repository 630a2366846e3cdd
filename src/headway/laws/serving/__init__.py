"""Laws from steps to requests: TPOT over a growing context, prefill, prefix hits, drafts, replicas, pipelines.

`request` (tpot_s, the steady state, cache hits; parts of a measured TTFT and TPOT; probability of the factor between truth and estimate),
`replicas` (how many a rate needs, two pools), `pipeline` (stages and hops).
"""

"""Scaling laws put to use: the best split of compute, how far to over-train for what is served, what experts are worth.

`fits` reads the published laws, `compute` answers at one point, `scale` gives every law's answer with intervals. Entry: `scale.listing`.
"""

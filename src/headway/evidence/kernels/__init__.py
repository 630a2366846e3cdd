"""Microbenchmarks of kernels, and the efficiencies fitted to them: matmuls, experts, attention, elementwise, collectives.

`rows` (sound rows, as work at peak), `classes` (law and parameters of each class, collectives too), `efficiency` (the fit).
"""

"""Kernels measured alone, and the efficiencies fitted to them: matmuls, experts, attention, elementwise, collectives.

`rows` (which rows are sound, as work at peak), `classes` (which law and which numbers), `efficiency` (the fit), `collectives`.
"""

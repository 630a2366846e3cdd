"""The step law of a layout: one decode step, prefill step or mixed step, on the fullest chip.

`step` (step_s and its floor), `parts` (each part at peak rates, kernels by class, a vision tower's work), `layer_terms` (a layer's share
on one chip), `coefficients` (the record a layout compiles to), `memory` (bytes on the fullest chip).
"""

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)

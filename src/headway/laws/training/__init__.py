"""Laws of a training step: activations and states in memory, collectives, the step with its bubble, the run.

`step`, `memory` (activations, states, reversible layers), `communication`, `run` (FLOP conventions,
failures, money, energy). Used by training.
"""

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)

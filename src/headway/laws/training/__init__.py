"""Laws of a training step: activations and states in memory, collectives, the step with its bubble, the run.

`step`, `memory` (activations, states, reversible layers), `communication`, `run` (FLOP conventions,
failures, money, energy). Used by training.
"""

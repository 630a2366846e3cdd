"""Laws of model architecture: parameters, KV cache elements and attention FLOP of a layer and of a whole model.

`params` by kind of mixer and FFN, `kv` (cache stored and read, fixed states), `attention` (score FLOP). Used by models.
"""

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)

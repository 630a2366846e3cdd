"""What prices of models whose size is known say of markup, size and sparsity: ten numbers, each with a meaning of its own.

The cost laws are not touched: only by how much list prices exceed what the laws give, how that varies between models, and which
sizes and sparsities are sold. Each family of models has one vote.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway.catalog import Catalog
from headway.inversion.draws import reference_log_cost
from headway.inversion.priors import Priors, reference

SPARSE = 1.5  # total over active from which a model counts as sparse
LEARNED = (
    "markup_input", "markup_output", "markup_input_spread", "markup_output_spread", "markup_correlation", "active_middle", "active_spread",
    "dense_share", "sparsity_middle", "sparsity_spread",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A model whose size is published, and what it is sold at."""

    model: str
    family: str
    active: float
    total: float
    input: float  # USD/token
    output: float


def calibrated(priors: Priors, examples: Sequence[Example], catalog: Catalog | None = None) -> Priors:
    """The priors with the learned ones from these examples."""
    shares = _votes(examples)
    active, total = (np.array([getattr(example, key) for example in examples]) for key in ("active", "total"))
    families = len({example.family for example in examples})
    unbiased = (families + 1) / (families - 1)  # one mean is taken out, and it is uncertain itself
    costs = reference_log_cost(priors, reference(catalog), active, total / active)[:2].T
    markup = np.log([[example.input, example.output] for example in examples]) - costs
    middle = shares @ markup
    spread = (shares[:, None] * (markup - middle)).T @ (markup - middle) * unbiased
    sd = np.sqrt(spread.diagonal())
    sparse = total > SPARSE * active
    sparse_middle, sparse_spread = _moments(np.log(total / active)[sparse], shares[sparse], unbiased)
    active_middle, active_spread = _moments(np.log(active), shares, unbiased)
    learned = dict(zip(LEARNED, map(float, (
        np.exp(middle[0]), np.exp(middle[1]), sd[0], sd[1], spread[0, 1] / (sd[0] * sd[1]), np.exp(active_middle), active_spread,
        1 - shares @ sparse, np.exp(sparse_middle), sparse_spread,
    )), strict=True))  # fmt: skip
    return dataclasses.replace(priors, **learned)


def _votes(examples: Sequence[Example]) -> np.ndarray:
    counts = Counter(example.family for example in examples)
    return np.array([1 / counts[example.family] for example in examples]) / len(counts)


def _moments(values: np.ndarray, shares: np.ndarray, unbiased: float) -> tuple[float, float]:
    """Mean and spread."""
    share = shares / shares.sum()
    middle = share @ values
    return middle, np.sqrt(share @ (values - middle) ** 2 * unbiased)

"""How plain a layout is: among layouts of nearly equal objective a plan takes the plainest."""

from __future__ import annotations

from typing import Any

import numpy as np

from headway.serving.plan.candidates import Candidates

PLAIN_WITHIN = 0.03  # of the best objective: layouts so near to it are compared by how plain they are


def oddness(w: Candidates) -> Any:
    """How many rules of plain layouts each layout breaks, (n, 1).

    The rules: a replica divides its node or takes whole nodes, so that no chips idle; each degree is a power of two or the whole node;
    no pipeline; experts divide by ep.
    """
    layout, domain = w.layout, int(w.query.system.scale_up_domain)
    degrees = [np.asarray(getattr(layout, name), dtype=np.int64) for name in ("tp", "ep", "dp", "pp", "cp")]
    count = np.zeros((w.count, 1), dtype=np.int64)
    for degree in degrees:
        count = count + (((degree & (degree - 1)) != 0) & (degree != domain))
    chips = np.asarray(w.compiled.chips, dtype=np.int64)
    count = count + (np.maximum(domain, chips) % np.minimum(domain, chips) != 0) + (degrees[3] > 1)
    for block in w.query.work.blocks:
        if block.experts:
            return count + (int(block.experts) % degrees[1] != 0)
    return count

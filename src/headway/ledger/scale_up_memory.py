"""Claims on what a scale-up domain holds (FS)."""

from __future__ import annotations

from typing import Any

from headway.laws.capacity import bytes_beside_weights, domain_bytes
from headway.laws.memory import parameter_bytes
from headway.ledger.register import Parts, recomputes


@recomputes("FS-01")
def hopper_box(inputs: Any) -> Parts:
    """Eight Hoppers."""
    return {"8 H100": domain_bytes(inputs.chips, inputs.hbm)}


@recomputes("FS-02")
def blackwell_rack(inputs: Any) -> Parts:
    """Both Blackwell racks."""
    return {"GB200 NVL72": domain_bytes(inputs.chips, inputs.hbm), "GB300 NVL72": domain_bytes(inputs.chips, inputs.later_hbm)}


@recomputes("FS-03")
def five_trillion(inputs: Any) -> Parts:
    """Weights of the model by format, and what is left beside the widest."""
    wide = parameter_bytes(inputs.total, inputs.bf16)
    return {
        "left for KV beside bf16 weights": bytes_beside_weights(domain_bytes(inputs.chips, inputs.hbm), wide),
        "fp4 weights": parameter_bytes(inputs.total, inputs.fp4),
        "fp8 weights": parameter_bytes(inputs.total, inputs.fp8),
        "bf16 weights": wide,
    }

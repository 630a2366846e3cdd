"""Measured rows as what a calibration learns from, and rows that are predicted under it.

`observe` (rows to observations), `linear` (how quantities follow from factors), `apply` (servers and widths of rows under runs), `runs`,
`training` and `engine_logs` (what each kind of run says), `filed` (runs to a profile and back), `deployments` (what `calibrate` tells),
`contradictions`, `validity` (where a profile holds no longer), `advise` and `load_generators` (the run to make next).
"""

from __future__ import annotations

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)

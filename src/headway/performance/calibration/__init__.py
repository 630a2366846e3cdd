"""What a user's own runs say of a deployment: the third layer, after the laws and what the world's runs leave.

`factors` (on a server), `key` (what makes two runs alike), `observation` (a run beside its prediction), `posterior` (what runs say of
factors), `clashes` (profiles that contradict each other), `start` (what an engine logged), `profile` (the file), `facts` (under it),
`flag` (--calibration), `in_force` (the profiles of an answer), `uptake` (what a deployment takes from them).
"""

from __future__ import annotations

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)

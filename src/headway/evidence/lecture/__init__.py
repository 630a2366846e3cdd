"""The lecture as chapters: prose, search, points that summaries dispute, other inputs, a model's card, its bridge, flashcards.

Reads data/lecture; every figure comes from `evidence.claims` or straight from laws. `chapters` is where to begin.
"""

from __future__ import annotations

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)

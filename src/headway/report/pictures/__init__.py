"""Pictures: one family a file; each takes rows that the laws computed and answers with a `frame.Picture`, a Vega-Lite specification.

palette (colours by meaning), lettering (widths of text), placing (labels that do not collide), scale (axes and their ticks), marks
(layers), frame (what a picture is, how it is put together), file (PNG, SVG, HTML), names (what each verb draws). No arithmetic
on answers here.
"""

from __future__ import annotations

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)

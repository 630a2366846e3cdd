"""Pictures: their kinds, each a declaration of what is drawn and one routine that makes a panel of it. No arithmetic on answers here.

Kinds: plot (curves, points, spans and boxes over two axes, their labels placed), grid (a table's columns along an input) and years (along
time), which make plots, bars (made of parts), dots (numbers with intervals), blocks (a timeline), sketch (a drawing of things). Below
them: palette (colours by meaning), lettering (widths of text), scale (axes and their ticks), marks (layers), frame (what a picture is,
how panels become a Vega-Lite specification), file (PNG, SVG, HTML). What each verb draws is declared in its module of report.
"""

from __future__ import annotations

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)

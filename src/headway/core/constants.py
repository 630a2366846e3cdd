"""Numbers that give a count its unit."""

from __future__ import annotations

from headway.core.units import Token

ONE_TOKEN: Token = 1.0  # a decode step makes one token per sequence; divided by, it makes tokens a plain count

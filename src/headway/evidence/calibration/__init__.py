"""Measured rows as what a calibration learns from, and rows that are predicted under it.

`observe` (rows to observations), `linear` (how quantities follow from factors), `apply` (servers and widths of rows under runs).
"""

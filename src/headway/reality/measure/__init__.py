"""This machine measured: how fast it multiplies, reads and starts work, as a record, as a chip's file, and as predictions.

timing (a time until it no longer scatters), record (what was measured), processor (by numpy alone), card (by torch, where it is there),
child (the process that measures, with its threads fixed), run (a measurement from the outside).
"""

"""The verbs as functions of Python: typed keywords named as the flags, values as numbers in SI or as text with units.

call (keywords to a command, and its Result), flags (types of the keywords), then a module per subject: serving, evidence, training,
money, machines. Every function answers with `report/result.py: Result`. Users: `headway/__init__.py` alone.
"""

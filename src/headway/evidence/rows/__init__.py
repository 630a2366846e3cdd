"""A table of measured serving runs: its rows, spellings of names, defaults for missing fields, and the setup and task of each row.

`row.read_rows` -> `tasks.tasks` (quantity, load, and setup: model, machine, layout, formats); rules: docs/measured_rows.md.
"""

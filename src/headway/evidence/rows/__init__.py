"""A table of measured serving runs: its rows, spellings of names, defaults of silent rows, and the setup and task of each.

`row.read_rows` -> `tasks.tasks` (what is predicted under which load) -> `setup` (what runs); rules: docs/measured_rows.md.
"""

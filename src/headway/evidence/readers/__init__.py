"""Readers of the output of public benchmark tools, a file per tool; each returns measured rows.

A reader has `read(path, user_input)`; `files` holds their common parts. The flags are in evidence/questions.py (TOOLS).
"""

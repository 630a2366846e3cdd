"""Measured rows from the output of public benchmark tools; each file is named for its tool.

A reader has `read(path, user_input)`; `files` holds what readers share. The flags are in cli/score.py (TOOLS).
"""

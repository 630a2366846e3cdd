"""Measured rows from the output of public benchmark tools; each file is named for its tool."""

"""Measured training runs: rows, what they say about their model and layout, predictions beside them, and the fit of what training reaches."""

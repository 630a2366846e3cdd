"""The laws: pure formulas, SI in and SI out, scalar or array alike. One idea per file."""

"""A price sheet read backwards: what it implies about the model and the machine behind it, by intervals, and what it does not.

`priors` (stated, data/inversion.toml) -> `samples` (models and machines drawn) -> `features` of the sheet -> `posterior` ->
`answer.invert`; `calibration` scores it on models of known size.
"""

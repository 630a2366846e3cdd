"""A price sheet read backwards: what it implies about the model and the machine behind it, by intervals, and what it does not.

`priors` (stated, data/inversion.toml; models and machines drawn) -> `features` of the sheet, by which draws are weighted ->
`answer.invert`; `calibration` scores it on models of known size, `ladders` (data/known_ladders.csv) on ladders of open models.
"""

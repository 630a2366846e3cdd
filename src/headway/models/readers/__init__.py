"""Readers of Hugging Face config.json: raw JSON to Model, a file per kind of architecture; remote code never runs.

`families.READERS` maps each model_type to its reader; `standard` holds the parts common to most decoders, `read.Config` records the
keys read.
"""

"""Readers of Hugging Face config.json: raw JSON to Model, one file for each kind of architecture; no remote code is ever run.

`families.READERS` maps each model_type to its reader; `standard` holds what most decoders share, `read.Config` remembers every key that was
read.
"""

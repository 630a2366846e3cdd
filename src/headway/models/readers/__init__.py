"""Readers of Hugging Face config.json: raw JSON to Model, one file per family of architectures; no remote code is ever run."""

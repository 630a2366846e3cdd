"""headway: the math of training and serving large language models."""

__version__ = "0.1.0"

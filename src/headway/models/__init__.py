"""What a language model is: layers of attention and FFN, read from config.json, and what they ask of a machine.

Holds        model (the records, a vision tower with them), attention/ (attention kinds), config (a model by name or file), readers/
             (config.json by architecture), hub (config.json from Hugging Face), checkpoints (names of tunes, formats stated beside a
             config), work (what one layer asks), totals (the whole model: KV bytes per token, parameters), precision (number formats),
             stored (the format of each part, mixtures of llama.cpp's files), variants (what if), reading (strictly, as a mechanism,
             cut), drafter (a head that drafts, as a model), model_class (structure and size), numbers and
             by_numbers (a model by numbers, and its flags), weights (headers of safetensors files), describe (with
             releases: dates, training tokens).
Import       config.model, model.Model and the feed-forward kinds beside it, attention kinds from their files, precision.Precision,
             precision.formats, totals.kv_bytes_per_token, totals.total_params, totals.active_params, work.work_of, variants.override,
             describe.about_model.
May import   laws, core. Its users: hardware (what fits in a rack), performance and every package above.
Reads        data/models/*.json, data/model_index.csv, data/aliases/models.txt (config.py), data/checkpoints.csv (checkpoints.py),
             data/towers.toml (readers/towers.py), data/dtypes.toml (precision.py), data/gguf.toml (stored.py), data/model_releases.csv
             (describe.py).
"""

from __future__ import annotations

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)

"""Public configurations read without --strict: how many, of which families, and what keeps the others from being read.

    python bench/read_configs.py FOLDER              reads every *.json under FOLDER and prints a table
    python bench/read_configs.py --write FOLDER      first writes the defaults of transformers' text configurations there

Writing needs `transformers` (without torch) in the interpreter that runs it; reading needs nothing but headway.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

WANTED = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")


def write(folder: Path) -> int:
    """Writes `to_dict()` of every configuration class that describes a decoder; returns how many."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # type: ignore[import-not-found]

    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for kind in sorted(CONFIG_MAPPING.keys()):
        try:
            data = CONFIG_MAPPING[kind]().to_dict()
        except Exception as error:  # a class may want further packages, or values
            print(f"{kind}: {type(error).__name__}", file=sys.stderr)
            continue
        text = data.get("text_config") if isinstance(data.get("text_config"), dict) else data
        if "vocab_size" in text and any(key in text for key in WANTED):
            (folder / f"{kind}.json").write_text(json.dumps(data, default=str, indent=1), encoding="utf-8")
            count += 1
    return count


def read(path: Path) -> tuple[str, str, Any]:
    """(model_type, why it is not read or "", the model)."""
    from headway.core.errors import HeadwayError
    from headway.models.config import from_file
    from headway.models.reading import decoder

    data = json.loads(path.read_text(encoding="utf-8"))
    kind = str(decoder(data).get("model_type") or data.get("model_type"))
    try:
        return kind, "", from_file(path)
    except HeadwayError as error:
        return kind, str(error), None


def main(arguments: list[str]) -> None:
    from headway.models.readers.families import READERS, REFUSED
    from headway.models.totals import kv_bytes_per_token, total_params

    paths = sorted(Path(arguments[-1]).rglob("*.json"))
    counts: Counter[str] = Counter()
    for path in paths:
        kind, why, model = read(path)
        family = "known" if kind in READERS else "stated as not modelled" if kind in REFUSED else "unknown"
        counts[f"{family}: {'read' if model else 'refused'}"] += 1
        if model is None:
            print(f"- {path.stem} ({family}): {why[:200]}")
        else:
            unread = [note for note in model.notes if note.startswith("assumed")]
            size = float(total_params(model))
            print(f"+ {path.stem}: {size / 1e9:.4g}B, {float(kv_bytes_per_token(model)):.6g} B/token", *unread, sep="\n    ")
    print(dict(counts), f"{len(paths)} configurations")


if __name__ == "__main__":
    if "--write" in sys.argv:
        print(write(Path(sys.argv[-1])), "written")
    else:
        main(sys.argv[1:])

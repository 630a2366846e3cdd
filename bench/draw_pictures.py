"""Draw the files of docs/pictures/ again, each by the command that docs/pictures.md prints above it."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "pictures.md"
WIDTH, COLOURS = 900, 128  # px and palette of a picture on the page
INPUTS = {"bench.json": "tests/data/readers/vllm_serve.json", "my_runs.csv": "tests/contract/golden/inputs/my_runs.csv"}  # files of a user


def commands() -> dict[str, list[str]]:
    """Name of each picture and its command, without `--plot`."""
    lines = re.findall(r"^\$ headway (.*) --plot ([\w-]+)\.png$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: [str(ROOT / INPUTS[word]) if word in INPUTS else word for word in shlex.split(line)] for line, name in lines}


def shrink(path: Path) -> None:
    """Write a picture again with few colours, as small as its lines and letters need."""
    from PIL import Image

    image = Image.open(path).convert("RGB")
    size = (WIDTH, round(image.height * WIDTH / image.width))
    image.resize(size, Image.Resampling.LANCZOS).quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        path, optimize=True
    )


def main(names: list[str]) -> None:
    """Draw the named pictures, or all."""
    from headway.cli.main import main as headway

    for name, argv in commands().items():
        if not names or name in names:
            path = ROOT / "docs" / "pictures" / f"{name}.png"
            status = headway([*argv, "--plot", str(path), "-o", "csv"])
            shrink(path)
            sys.stderr.write(f"{name}: {path.stat().st_size // 1000} kB\n" if status == 0 else f"{name}: exit {status}\n")


if __name__ == "__main__":
    main(sys.argv[1:])

"""`headway new chip NAME`: writes a catalogue file to fill in."""

from __future__ import annotations

import re
from pathlib import Path

from headway.answers import arguments
from headway.core.columns import Column
from headway.core.errors import BadFile, BadValue, check_known
from headway.core.listing import Listing
from headway.hardware.chip import empty_toml
from headway.hardware.questions import New
from headway.report import output

KINDS = ("chip",)
COLUMNS = {"file": Column("", "the file that was written"), "next": Column("", "what to do with it")}


def run(args: New) -> output.Answer:
    """Answer with the file that was written."""
    check_known("kind of file to write", args.what, KINDS)
    name = args.called.strip().lower().replace("-", "_")
    if not re.fullmatch(r"[a-z0-9][a-z0-9_.]{0,60}", name):
        raise BadValue("name", args.called, "letters, digits and dashes, such as zeta-1")
    if arguments.catalog(args).find("chips", name):
        raise BadValue("name", args.called, f"a name that no chip has; `headway show chip {args.called} -o toml` prints that one")
    folder = Path(args.catalog[0]) / "chips" if args.catalog else Path()
    path = folder / f"{name}.toml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(empty_toml(name))
    except FileExistsError:
        raise BadFile(path, "exists; it was left as it is") from None
    except OSError as error:
        raise BadFile(path, f"cannot be written ({error.strerror or error})") from None
    home = "--catalog " + args.catalog[0] if args.catalog else "--catalog DIR, with the file in DIR/chips"
    todo = f"fill in its facts, then name it: headway show chip {name.replace('_', '-')} {home}"
    return output.Answer(Listing([{"file": str(path), "next": todo}]), output.Summary(f"{path} is written: {todo}"), columns=COLUMNS)

"""Price sheets from files: the project's own schema, and readers of other published formats.

`sheet.PriceSheet` is the record, `catalogue.sheet` finds one by name, `schema` reads TOML and JSON, `table` CSV; `litellm`, `models_dev`
and `genai` read foreign files, `history` compares dates. `packages`
makes the sheets of data/sheets from installed packages, `documents` writes and compares them, `update` keeps the user's own, `tables` says
of which table and day an answer's are. Reads data/sheets, sheet_sources.csv and sheet_additions.toml.
"""

from __future__ import annotations

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)

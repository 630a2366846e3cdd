"""How a fact of the catalogue says when it was true."""

from __future__ import annotations

import re

DATE = re.compile(r"undated|unverified|\d{4}(-\d\d){0,2}((\.\.|-)(\d\d|\d{4}(-\d\d){0,2}))?")

"""A published trace of conversations, its beginning stored here, and the hit rates that were published for the whole of it."""

from __future__ import annotations

import os

from support.paths import DATA

TRACE = DATA / "kvcache" / "conversations.jsonl"
CONVERSATION = "HEADWAY_MOONCAKE_CONVERSATION"  # the path of mooncake's FAST25 conversation_trace.jsonl, as it is or gzipped
WHOLE = os.environ.get(CONVERSATION, "")
PUBLISHED = {None: 0.3664, 1000: 0.0445, 5000: 0.1104, 10_000: 0.2112, 30_000: 0.3257, 50_000: 0.3546, 100_000: 0.3637}

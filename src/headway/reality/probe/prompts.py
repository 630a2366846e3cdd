"""Prompts of a chosen length that are unlike each other from their first word on, so that no prefix cache answers."""

from __future__ import annotations

import random

COMMON = "time year people way day man thing life child world school state family group country problem hand part place case week company"
WORDS = COMMON.split()
FRAME = 64  # tokens that a chat template and special tokens may add to a prompt


class Prompts:
    """Drawn prompts, and what a word costs in tokens: at most its bytes, until the server has counted some."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self.tokens_per_word: float | None = None

    def text(self, words: int) -> str:
        """A prompt of so many words; its first ones are numbers that no other prompt begins with."""
        start = [str(self._draw.randrange(10**6, 10**7))] if words > 1 else []
        return " ".join([*start, *self._draw.choices(WORDS, k=max(words - len(start), 1))])

    def words(self, tokens: int) -> int:
        """Words of a prompt of about so many tokens."""
        return max(round(tokens / (self.tokens_per_word or 1.3)), 1)

    def most_tokens(self, text: str) -> int:
        """Tokens that a prompt may be at most: by what the server counted and a tenth more, before that its bytes (no token is empty)."""
        if self.tokens_per_word is None:
            return len(text.encode()) + FRAME
        return round(1.1 * self.tokens_per_word * (text.count(" ") + 1)) + FRAME

    def learn(self, text: str, tokens: int) -> None:
        """Take the server's count of a prompt's tokens; the most of all that were counted is gone by."""
        share = tokens / (text.count(" ") + 1)
        self.tokens_per_word = max(share, self.tokens_per_word or 0.0)

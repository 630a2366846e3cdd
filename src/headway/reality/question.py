"""The question of `feistel`: ciphers and reversible networks, run and counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from headway.core.question import FlagGroup, Question, field
from headway.core.schema import Field

MOST_TRIALS = 1_000_000
SUBJECTS = ("vectors", "avalanche", "differential", "coupling")
# field -> the subjects that it applies to
APPLIES = {
    "cipher": ("vectors", "avalanche", "differential"),
    "cipher_key": ("avalanche", "differential"),
    "rounds": ("avalanche", "differential"),
    "layers": ("coupling",),
    "trials": ("avalanche",),
    "pairs": ("differential",),
    "epsilon": ("differential",),
    "seed": ("avalanche", "differential", "coupling"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FeistelRun:
    """How much is drawn and counted."""

    rounds: Annotated[Any, Field(integer=True, low=1, open_low=False, high=64, help="rounds that are run")] = None
    layers: Annotated[Any, Field(integer=True, low=1, open_low=False, high=256, help="couplings, forward and back")] = None
    trials: Annotated[Any, Field(integer=True, low=1, open_low=False, high=MOST_TRIALS, help="pairs with one bit flipped")] = 2000
    pairs: Annotated[Any, Field(integer=True, low=256, open_low=False, high=2**22, help="pairs per counted difference")] = 131072
    epsilon: Annotated[Any, Field(high=10, help="size of the network's attack, in standard deviations")] = 0.5
    seed: Annotated[Any, Field(integer=True, open_low=False, high=2**31, help="seed of what is drawn")] = 0


class Feistel(Question):
    """Feistel ciphers and reversible networks: vectors, avalanche, differentials, couplings undone."""

    verb, answered_by = "feistel", "headway.answers.feistel"
    example = "feistel avalanche"
    refresh = "on release"
    pictures = (
        ("step", "a Feistel step forward and back"),
        ("avalanche", "changed bits by round"),
    )
    groups = (FlagGroup(FeistelRun, "what is drawn and counted"),)
    subjects = ("what",)
    edits = ()
    no_edits = "a verb about a machine or a model; feistel has neither"
    progress = "differences tried"
    what = field(choices=SUBJECTS, place="?", default="vectors")
    cipher = field(kind="word", word="NAME", help="des, tea, simon32, simon64; several with commas (default all; simon32)")
    cipher_key = field(kind="word", word="HEX", help="key in hexadecimal (default that of the first published vector)")

    def idle(self) -> dict[str, str]:
        """What is of another demonstration."""
        return {name: f"headway feistel {' or '.join(subjects)}" for name, subjects in APPLIES.items() if self.what not in subjects}

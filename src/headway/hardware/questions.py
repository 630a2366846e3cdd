"""Questions about machines and the catalogue: `rack`, `compare`, `list`, `trend`, `new`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from headway.core.question import SHIPPED, FlagGroup, Question, declared, field
from headway.core.schema import Field
from headway.hardware.rack_facts import RackFacts
from headway.hardware.system import MOST_CHIPS

MOST = 1e12  # tokens
MODEL = "deepseek-v3"
CATALOGUES = ("models", "chips", "systems", "tiers", "sheets", "laws", "sources", "evidence", "splits", "calibrations")
OF_FOLDERS = ("chips", "systems", "tiers", "sheets", "sources", "calibrations")  # those that a user's folder adds to


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainRequest:
    """Size of a domain, and the load that it is judged by."""

    chips: Annotated[
        Any,
        Field(integer=True, low=1, open_low=False, high=MOST_CHIPS, help="chips in one scale-up domain (default: the system's)"),
    ] = None
    batch: Annotated[
        Any,
        Field("token", integer=True, low=1, open_low=False, high=MOST, help="tokens per step of the whole domain, for the all-to-all"),
    ] = 2400
    context: Annotated[
        Any, Field("token", integer=True, low=1, open_low=False, high=MOST, help="context of the one sequence that must fit")
    ] = 8192


class Rack(Question):
    """Cables, power, weight and bandwidth of a scale-up domain of any size; or the domains of every system, by year."""

    verb, answered_by = "rack", "headway.answers.rack"
    probes = None
    example = "rack gb200-nvl72 --chips 72,144,576"
    refresh = "at once"
    pictures = (
        ("wiring", "cables of a mesh, a switch star and a hierarchy"),
        ("experts", "a mixture-of-experts layer on a rack: who sends to whom"),
        ("sizes", "cables and all-to-all along the size of the domain"),
        ("years", "of --by-year: what grew from year to year"),
    )
    groups = (
        FlagGroup(DomainRequest, "domain"),
        FlagGroup(RackFacts, "facts of the rack to assume (default: what is published)"),
    )
    subjects = ("system", "chips")
    system = field(kind="machine", place="?", help="the known rack: gb200-nvl72, 8xh100-sxm, tpu-v7-pod")
    model = field(kind="model", word="NAME", help=f"model for the all-to-all and the floor (default {MODEL})", default=MODEL)
    by_year = field(kind="switch", help="domains of every system of the catalogue instead, by year and vendor", default=False)


class Compare(Question):
    """Machines or models side by side, the first as the reference."""

    verb, answered_by = "compare", "headway.answers.compare"
    probes = None
    example = "compare gb200-nvl72,8xh200"
    refresh = "at once"
    pictures = (("figures", "the main figures of each as bars, with the ratios to the first"),)
    subjects = ("names",)
    names = field(kind="subject", word="NAME", place="+", help="machines (h100-sxm, gb200-nvl72) or models, the first is the reference")
    per = field(choices=("chip", "machine", "usd", "watt"), help="basis of the ratios (default chip)", default="chip")
    cost = field("USD/s", bare="USD/h", word="USD/h", help="budget: how many chips of each it rents; ratios are at equal cost")
    power = field("W", word="W", help="budget: how many chips of each it feeds; ratios are at equal power")


class List(Question):
    """All models, chips, systems, memory tiers, price sheets, laws, sources or calibrations: a row per entry; laws about some words."""

    verb, answered_by = "list", "headway.answers.list"
    example = "list models"
    refresh = "at once"
    pictures = (
        ("evidence", "of list evidence: how far off predictions were, by what was measured"),
    )
    subjects = ("what",)
    edits = ("catalog",)
    what = field(choices=CATALOGUES, place="1")
    words = field(kind="text", word="WORDS", place="*", help="of laws: those about these words, the nearest first", default=())
    shipped = declared(SHIPPED, default=False)

    def idle(self) -> dict[str, str]:
        """The user's folders, of what they add nothing to."""
        folders = {} if self.what in OF_FOLDERS else {"catalog": f"one of {', '.join(OF_FOLDERS)}, which a folder adds to"}
        folders |= {} if self.what == "laws" else {"words": "list laws WORDS; --where filters other lists, find WORDS searches all"}
        return folders if self.what == "sheets" else {"shipped": "list sheets"} | folders


class Trend(Question):
    """Chips by year (FLOP/byte, drain time, latency floor), or models by release date."""

    verb, answered_by = "trend", "headway.answers.trend"
    probes = None
    example = "trend chips"
    refresh = "at once"
    pictures = (
        ("years", "what grew from year to year, with names"),
    )
    subjects = ("what",)
    edits = ("catalog",)
    what = field(choices=("chips", "models"), place="1")


class New(Question):
    """A catalogue file of a chip of your own, to fill in."""

    verb, answered_by = "new", "headway.answers.new"
    example = "new chip zeta-1"
    no_page = "it writes a file; the page compare edits every fact of a chip and gives you its file"
    subjects = ("what", "called")
    edits = ("catalog",)
    no_edits = "a verb about a model or a machine; new only writes a file"
    what = field(kind="text", word="chip", place="1", help="what it is of")
    called = field(
        kind="output", word="NAME", place="1",
        help="name of the chip, such as zeta-1; the file goes to DIR/chips of --catalog DIR, else here",
    )  # fmt: skip

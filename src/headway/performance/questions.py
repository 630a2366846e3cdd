"""Questions of one law, one product, one collective, and of what fits on a machine: `law`, `matmul`, `collective`, `capacity`."""

from __future__ import annotations

from headway.core.question import MACHINES, MODELS, REQUIRED, SWITCH, FlagGroup, FlagRecord, Question, declared, field
from headway.core.schema import Field
from headway.models.by_numbers import BY_NUMBERS
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.calibration.flag import OWN_RUNS
from headway.performance.layout import Layout
from headway.performance.workload import Load


class LawBackwards(FlagRecord):
    """A law solved for one of its arguments."""

    for_ = field(kind="text", word="KEY", help="the argument to solve for; KEY=1..100 gives its range")
    so_that = field(kind="text", word="VALUE", help="the result that it should give, such as 20ms")


class LawQuestion(Question):
    """One law: its equation and arguments, or its result for numbers, lists, ranges and facts; what it lacks, other laws give."""

    verb, answered_by = "law", "headway.answers.law"
    example = "law hardware_ratio weight_byte=2 peak_flops=h100.peak_bf16 mem_bw=h100.hbm_bw"
    refresh = "at once"
    pictures = (("values", "its values along the argument that has the most"),)
    groups = (FlagGroup(LawBackwards, "question"),)
    subjects = ("law", "values")
    edits = ("catalog",)
    no_edits = "a verb about a model or a machine"
    law = field(kind="word", word="LAW", place="?", help="name of a law, such as hardware_ratio; alone: what it takes", default="")
    values = field(
        kind="pairs", word="key=value", place="*", help="its arguments: 3.35TB/s, 1,2,4, 1..512*2, h100.hbm_bw, 72*b200.hbm_bw", default=()
    )
    zip = field(kind=SWITCH, help="pair the members of lists, the first with the first, instead of every combination", default=False)
    find = field(kind="text", word="WORDS", help="laws about this, in your own words, the nearest first")

    def idle(self) -> dict[str, str]:
        """Pairs, where nothing has values."""
        return {} if self.values else {"zip": "lists of values, such as batch=4,256 context=8192,1024"}


class Mesh(FlagRecord):
    """A mesh of chips and its links, by machine or by numbers."""

    mesh = field(kind="word", word="X4,Y8", help="axes and their chips (default: all of the machine, where it is split)", default="")
    on = field(kind="machine", word="MACHINE", help="chip or machine: peak, memory, links, which axes close to a ring")
    network = field(kind="word", word="KIND", help="torus, ring, line, switch or mesh, instead of the machine's")
    link_bw = field("byte/s", word="byte/s", help="bandwidth of a torus link, or of a chip's links to a switch; one direction")
    out_bw = field("byte/s", word="byte/s", help="scale-out bandwidth of a chip, one direction")
    domain = field(word="N", integer=True, low=1, open_low=False, help="chips below one switch; groups beyond them go over scale-out")
    rings = field(kind="word", word="X,Y", help="axes that close to a ring: names, all or none (default by the machine's rule)")
    hop = field("s", word="s", open_low=False, help="latency of a hop or round (default: the machine's, else 1 us)")


SIZES = Field(kind="pairs", word="DIM=SIZE", place="*", help="sizes of the dimensions: B=128 D=8Ki; lists and ranges too")
MESH = FlagGroup(Mesh, "mesh: axes of chips, the last axis innermost")
LINKS = ("network", "link_bw", "out_bw", "domain", "rings", "hop")


class ProductRate(FlagRecord):
    """Formats of a product, and the rates that it runs at."""

    dtype = field(kind="word", word="NAME", help="format of arrays (default bf16); int8[D, F] sets one", default="bf16")
    compute = field(kind="word", word="NAME", help="format of the multiplication (default the widest of the two arrays)", rare=True)
    peak = field("flop/s", word="FLOP/s", help="peak of a chip, instead of the machine's")
    from_ = field(kind="word", word="hbm|host|byte/s", help="where arrays are read: hbm, host or a bandwidth", default="hbm")
    strategy = field(
        choices=("gather", "reduce"),
        help="a contracted dimension that one array splits: gather it (default), or cut the other and reduce",
        default="gather",
    )


class MeshQuestion(Question):
    """What `matmul` and `collective` share: a mesh whose machine may be edited, and links that count where there is one."""

    edits = ("set", "catalog")
    no_edits = "a verb about a model"

    def idle(self) -> dict[str, str]:
        """Edits, without a machine to edit."""
        return {} if self.on else {"set": "a machine to edit: give --on", "catalog": ""}


class MatmulQuestion(MeshQuestion):
    """A matrix product by shape and sharding: its totals, and its steps for a single point."""

    verb, answered_by = "matmul", "headway.answers.matmul"
    probes = None
    example = 'matmul "bf16[B, 4096] int8[4096, 4096]" B=128 --peak 197T --from 820GB/s'
    refresh = "at once"
    groups = (MESH, FlagGroup(ProductRate, "rates and formats"))
    subjects = ("product", "values")
    product = field(
        kind="text", word="PRODUCT", place="1", help='arrays in brackets: "A[B_X, D] W[D, F_Y] -> C[B_X, F_Y]"; sizes by name or number'
    )
    values = declared(SIZES, default=())

    def idle(self) -> dict[str, str]:
        """Links too, where no array is split over a mesh."""
        is_whole = not self.mesh and (not self.on or "_" not in str(self.product))
        return {**super().idle(), **(dict.fromkeys(LINKS, "") if is_whole else {})}


class CollectiveShape(FlagRecord):
    """What a collective runs over, and how it is counted."""

    over = field(kind="word", word="X,Y", help="mesh axes of the group (default those of OPERATION, else all)")
    share = field(
        choices=("exact", "limit"), help="exact: (n-1)/n of the array moves (default); limit: a long ring, all of it", default="exact"
    )
    dtype = field(kind="word", word="NAME", help="format of an array without one (default bf16)", default="bf16")
    in_switch = field(kind="switch", help="the switch adds (NVLink SHARP): half of an all-reduce's bytes", default=False)
    active = field(
        word="K", integer=True, low=1, open_low=False, help="all-to-all: parts that each chip fills, of as many as the group has chips"
    )
    from_ = field(kind="word", word="0,0", help="send: the chip by its place along each axis (default the first)")
    to = field(kind="number", word="3,3", help="send: the chip that receives")


class CollectiveQuestion(MeshQuestion):
    """Time of a collective or a message over axes of a torus, ring or switch."""

    verb, answered_by = "collective", "headway.answers.collective"
    probes = None
    example = "collective all-gather 1GB --mesh X8 --on 8xh100"
    refresh = "at once"
    groups = (MESH, FlagGroup(CollectiveShape, "collective"))
    subjects = ("operation", "what", "values")
    operation = field(
        kind="word",
        word="OPERATION",
        place="1",
        help="all-gather, reduce-scatter, all-reduce, all-to-all or send; AllGather_X names the axes",
    )
    what = field(
        kind="text", word="BYTES|ARRAY", place="1", help='bytes of the gathered array, 34MB or a list; or the array, "bf16[E_Y, F]"'
    )
    values = declared(SIZES, default=())

    def idle(self) -> dict[str, str]:
        """The ends of a message, of any other operation; the format of arrays, of a number of bytes."""
        is_message, is_array = str(self.operation).lower().startswith("send"), "[" in str(self.what)
        names = (*(() if is_message else ("from_", "to")), *(() if is_array else ("dtype",)))
        return {**super().idle(), **dict.fromkeys(names, "")}


OF_ENGINE = "layout whose memory an engine sets up (default: as much tensor parallelism as is legal)"


class CapacityQuestion(Question):
    """What fits on a machine before any layout: chips, largest batch and context, room."""

    verb, answered_by = "capacity", "headway.answers.capacity"
    probes = None
    example = "capacity deepseek-v3 --on 8xh200 --context 8k"
    refresh = "at once"
    groups = (
        FlagGroup(Load, "load: lists and ranges too (default batch 1, context 8,192)", only=("batch", "context")),
        FlagGroup(Precision, "number formats", skip=("compute",), is_brief=True),
        FlagGroup(Layout, OF_ENGINE, skip=("redundant",), searched=("tp", "replicas"), is_brief=True),
        FlagGroup(Assumptions, "assumption", only=("engine", "eager", "offload"), is_brief=True),
        OWN_RUNS,
        BY_NUMBERS,
    )
    model = declared(MODELS)
    on = declared(MACHINES, default=REQUIRED)
    hbm_utilization = field(high=1, help="share of a card that an engine may use, vLLM's gpu_memory_utilization (default 0.9)")

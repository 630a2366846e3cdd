"""`headway matmul "A[B_X, D] W[D, F_Y]" --mesh X4,Y8 --on CHIP B=128 ...`: a matrix product on the roofline, sharded or not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from headway.answers import collective
from headway.core.errors import BadValue, UnknownName
from headway.core.listing import Listing, traced_listing
from headway.core.schema import Field
from headway.core.trace import record
from headway.laws.arithmetic import times
from headway.models.precision import formats
from headway.performance import mesh as notation
from headway.performance.product import Chain, ProductRates, bounds
from headway.performance.questions import MatmulQuestion
from headway.report import mesh as words
from headway.report import output

if TYPE_CHECKING:
    from headway.hardware.system import System

STRATEGIES = ("gather", "reduce")
MEMORIES = ("hbm", "host")
PEAK = Field("flop/s", "")


def run(args: MatmulQuestion) -> output.Answer:
    """Answer with the totals of each point; for a single point, its steps too."""
    system = collective.machine(args)
    axes = notation.mesh(args.mesh or (collective.whole_machine(system) if notation.is_sharded(args.product) else ""))
    texts, result_text = notation.product(args.product)
    number_format = _format(args.dtype, "--dtype")
    typed: dict[str, Any] = {}
    arrays = notation.joined([notation.array(text, axes, number_format, typed) for text in texts], typed)
    result = notation.result_of(notation.array(result_text, axes, number_format, typed), arrays, typed) if result_text else None
    names = list(dict.fromkeys(dim.name for sharded in arrays for dim in sharded.dims))
    extra = [dim.name for dim in result.dims if dim.name not in names] if result else []
    if extra:
        raise BadValue("product", args.product, f"a result of the arrays' dimensions; {', '.join(extra)} is in none of them")
    if not args.values and any(not name[0].isdigit() for name in names):
        return _in_symbols(args, axes, arrays, result, typed | {name: 1 for name in names if name not in typed})
    links = collective.links_of(args, system, axes)
    points, varying = collective.grid(args, names)
    context = (args, system, links, arrays, result)
    with record():
        evaluated = [_evaluated(point | typed, context) for point in points]
    traced = [row for rows in evaluated for row in (rows if len(points) == 1 else rows[:1])]
    return output.Answer(traced_listing(traced), describe=lambda rows: words.product(rows, varying), columns=words.sizes(names), most=1000)


def _in_symbols(args: MatmulQuestion, axes: tuple[Any, ...], arrays: list[Any], result: Any, sizes: dict[str, Any]) -> output.Answer:
    """The product without sizes: FLOP and bytes of a chip in the names of its dimensions."""
    links = notation.by_numbers("ring", axes, 1.0) if axes else None  # no time is told
    chain = _multiplied(Chain(links, sizes, ProductRates(peak=1.0, bandwidth=1.0), args.strategy), arrays, result)
    steps = [chain.sums(), *chain.steps]
    rows = [{"kind": step.kind, "what": step.what or args.product, "flop_equation": step.flop_equation or None,
             "bytes_equation": step.bytes_equation} for step in steps]  # fmt: skip
    return output.Answer(Listing(rows), describe=words.symbols)


def _format(text: str, flag: str) -> str:
    if text.lower() not in formats():
        raise UnknownName("number format", text, formats(), f"{flag} takes {', '.join(list(formats())[:8])}, ...")
    return text.lower()


def _evaluated(sizes: dict[str, Any], context: Any) -> list[dict[str, Any]]:
    """Row of the whole chain, then a row for each step."""
    args, system, network, arrays, result = context
    notation.note_uneven([*arrays, *([result] if result else [])], network.axes if network else (), sizes)
    chain = _multiplied(Chain(network, sizes, _rates(args, system, arrays), args.strategy), arrays, result)
    total = chain.sums()
    least, most, attained, bound = bounds(total)
    head = {"time_s": least, "serial_s": most, "bound": bound, "attained_flops": attained, "flop": total.flop, "bytes": total.bytes}
    head |= {"intensity": total.intensity, "compute_s": total.compute_s, "memory_s": total.memory_s, "network_s": total.network_s}
    letters = {name: size for name, size in sizes.items() if not name[0].isdigit()}
    chips = math.prod(axis.size for axis in network.axes) if network else 1
    head |= {"flop_equation": total.flop_equation, "bytes_equation": total.bytes_equation, "chips": chips}
    head |= {"flop_all_chips": times(total.flop, chips), "bytes_all_chips": times(total.bytes, chips)}
    rows = [{"kind": "total", "what": args.product, **letters, **head, "balanced": total.balanced}]
    steps = ({"kind": step.kind, "what": step.what, "flop": step.flop, "bytes": step.bytes, "intensity": step.intensity,
              "compute_s": step.compute_s, "memory_s": step.memory_s, "network_s": step.network_s, "balanced": step.balanced,
              "flop_equation": step.flop_equation or None, "bytes_equation": step.bytes_equation}
             for step in chain.steps)  # fmt: skip
    return [*rows, *steps]


def _multiplied(chain: Chain, arrays: list[Any], result: Any) -> Chain:
    """The chain with the steps of all its products."""
    current = arrays[0]
    for index, sharded in enumerate(arrays[1:], 2):
        last = index == len(arrays)
        current = chain.multiply(current, sharded, result if last else None, (result if last and result else arrays[0]).number_format)
        current = chain.finish(current, result if last else None) if last else chain.finish(current, None) if current.unreduced else current
    return chain


def _rates(args: MatmulQuestion, system: System, arrays: list[Any]) -> Any:
    """Peak and memory bandwidth: typed, or the machine's."""
    table = formats()
    widest = max((sharded.number_format for sharded in arrays), key=lambda name: float(table[name].bytes))
    compute = _format(args.compute, "--compute") if args.compute else widest
    peak = collective.scalar(args.peak, PEAK, "--peak")
    if peak is None:
        if system is None:
            raise BadValue("--on", "nothing", "a chip or machine, or --peak 197TFLOPS with --from 820GB/s")
        peak = system.chip.peak(table[compute].peak)
        peak = system.chip.need("peak_bf16") if peak is None else peak
    if args.from_ not in MEMORIES:
        return ProductRates(peak=peak, bandwidth=collective.scalar(args.from_, collective.RATE, "--from"))
    if system is None:
        raise BadValue("--from", args.from_, "a bandwidth such as 820GB/s, or a machine with --on")
    return ProductRates(peak=peak, bandwidth=system.chip.need("hbm_bw" if args.from_ == "hbm" else "host_link_bw"))

"""`headway.scale(flop=1e25)`: chooses the question from the inputs and answers it as rows with explanations and notes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from headway.core import schema
from headway.core.errors import BadValue, UnknownName
from headway.core.listing import Listing, clean
from headway.core.units import show
from headway.training.scaling.answer import LING, RULE, ScalingQuestion, expert_laws, explained, rows
from headway.training.scaling.fits import DEFAULT, ScalingFit, fit, fits
from headway.training.scaling.inputs import RECORDS, Uncertainty

MOST_POINTS = 1000
EXAMPLES = "--flop 1e25, --active 100B --serve 50M/s --months 2, or --moe --active 30B --experts 64"
LIFE = ("serve", "months", "served", "month_days", "utilisation", "deployed", "serve_mfu", "serve_price", "kappa", "rl", "rl_mfu",
        "rl_trained", "eta")  # fmt: skip
MODE_FLAGS = {
    "split": (),
    "given": LIFE,
    "life": LIFE,
    "quality": LIFE,
    "experts": ("experts", "total", "per_token", "granularity"),
}
BITS = ("weight_bits", "activation_bits", "kv_bits", "post_bits")
ALWAYS = ("flop", "active", "tokens", "quality", "tokens_per_param")


def question(
    flags: Mapping[str, Any], doubt: Uncertainty, law: str | None, beside: str, moe: bool
) -> tuple[ScalingQuestion, tuple[str, ...]]:
    """The question of the given flags, with a point per combination of lists; and notes on unused flags."""
    mode = _mode(flags, moe)
    axes = {key: value if isinstance(value, tuple) else (value,) for key, value in flags.items()}
    if (count := _product(axes)) > MOST_POINTS:
        raise BadValue("scale", f"{count} points", f"at most {MOST_POINTS}")
    points = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    for point in points:
        _possible(point)
    answering, beside_laws = _laws(mode, law, beside)
    used_flags = {
        *ALWAYS,
        *MODE_FLAGS[mode],
        *(BITS if mode in ("split", "given") else ()),
        *(() if mode in ("quality", "experts") else ("tokens_unique",)),
    }
    idle = [f"--{key.replace('_', '-')}" for key in flags if key not in used_flags]
    notes = (f"not used in this question: {', '.join(idle)}",) if idle else ()
    varied = tuple(key for key, values in axes.items() if len(values) > 1)
    return ScalingQuestion(mode=mode, points=points, laws=answering, beside=beside_laws, doubt=doubt, varied=varied), notes


def _product(axes: Mapping[str, Sequence[Any]]) -> int:
    count = 1
    for values in axes.values():
        count *= len(values)
    return count


def _mode(flags: Mapping[str, Any], moe: bool) -> str:
    """The mode of the question; an error names every missing or superfluous flag."""
    if moe or "experts" in flags or "total" in flags:
        return _experts(flags)
    if "served" in flags and "serve" in flags:
        raise BadValue("scale", "--serve and --served", "one of them")
    if "serve" in flags and "months" not in flags:
        raise BadValue("--serve", "a rate", "how long too: --months 2")
    serves = "served" in flags or "serve" in flags
    if "quality" in flags:
        if "active" in flags or "flop" in flags or not serves:
            raise BadValue("--quality", "a quality", "what is served, such as --served 5T, and no --active or --flop: the size is free")
        return "quality"
    if serves:
        if "active" not in flags or "flop" in flags:
            raise BadValue("scale", "what is served", "a size too and no --flop: --active 100B, or --quality 70B where the size is free")
        return "life"
    known = [key for key in ("flop", "active", "tokens") if key in flags]
    if len(known) == 3:
        raise BadValue("scale", "--flop, --active and --tokens", "two of them: the third follows")
    if not known:
        raise BadValue("scale", "no budget, size or tokens", EXAMPLES)
    if "tokens_unique" in flags and len(known) == 1 and known != ["flop"]:
        raise BadValue("--tokens-unique", "unique tokens", "a budget, or size and tokens: --flop 1e25, or --active 9B --tokens 900B")
    return "given" if len(known) == 2 else "split"


def _experts(flags: Mapping[str, Any]) -> str:
    if "active" not in flags:
        raise BadValue("--moe", "no size", "the active parameters: --active 30B")
    if ("experts" in flags) == ("total" in flags):
        raise BadValue("--moe", "experts", "either their number, --experts 64..512*2, or all parameters, --total 600B")
    if "flop" in flags and "tokens" in flags:
        raise BadValue("--moe", "--flop and --tokens", "one of them")
    return "experts"


def _possible(point: Mapping[str, Any]) -> None:
    """Refuse combinations of flags that cannot hold together."""
    if "total" in point and point["active"] > point["total"]:
        raise BadValue("--active", show(point["active"], ""), f"at most the total, {show(point['total'], '')}")
    if "experts" in point and point.get("per_token", 1) > point["experts"]:
        raise BadValue("--per-token", point["per_token"], f"at most the experts, {point['experts']}")


def _laws(mode: str, law: str | None, beside: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The laws that answer, and the laws shown for comparison."""
    if mode == "experts":
        return _routed(law), ()
    law_names = tuple(dict.fromkeys(fit(name).name for name in (law or DEFAULT).split(",")))
    for name in law_names:
        _splits(fit(name), mode)
    if beside == "none":
        return law_names, ()
    beside_names = (
        [entry.name for entry in fits().values() if not entry.rounded]
        if beside == "all"
        else [fit(name).name for name in beside.split(",")]
    )
    for name in beside_names:
        _splits(fit(name), mode)
    rule = (RULE,) if mode == "split" and beside == "all" else ()
    return law_names, (*(name for name in dict.fromkeys(beside_names) if name not in law_names), *rule)


def _routed(law: str | None) -> tuple[str, ...]:
    if law is None:
        return expert_laws()
    law_names = tuple(dict.fromkeys(name.strip().lower().replace("_", "-") for name in law.split(",")))
    for name in law_names:
        if name not in expert_laws():
            raise UnknownName("law of experts", name, expert_laws(), "one of " + ", ".join(expert_laws()))
    return law_names


def _splits(law_fit: ScalingFit, mode: str) -> None:
    """Raise BadValue if a fit has too few digits for the mode."""
    if law_fit.rounded and mode != "given":
        wants = f"its digits in full, --law {law_fit.rounded}: at 5.76e23 FLOP rounding alone moves tokens per parameter from 59 to 93"
        raise BadValue("--law", law_fit.name, wants)


CLARK = (
    "Clark's laws: one routed FFN in every second block, one expert per token, 130 B tokens for every size, so that large models "
    "were under-trained; printed digits bias the loss, the refits do not"
)
ABOUT_LING = (
    "Ling's law comes from one transcription that does not state the base of its logarithms: log10 of compute and natural log of "
    "granularity are taken, which give its published 'above 7'; leverage is of compute, so of size at equal tokens"
)
FAR = "no such model was fitted: read the spread over laws, not one law"


def remarks(request: ScalingQuestion, rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The notes of an answer on fits, ranges and intervals."""
    if request.mode == "experts":
        laws = {row["law"] for row in rows}
        return (*((CLARK,) if laws - {LING} else ()), *((ABOUT_LING,) if LING in laws else ()))
    notes = []
    out = [row["law"] for row in rows if row.get("in_range") is False]
    if out:
        notes.append(f"outside what was fitted: {', '.join(dict.fromkeys(out))}; {FAR}")
    if any(key.endswith("_lo") for row in rows for key in row):
        how = (
            f"correlated by {request.doubt.correlation:g}"
            if request.doubt.correlation
            else "taken as independent, an upper bound on the width"
        )
        notes.append(f"intervals: 90 % of {request.doubt.draws} draws of the coefficients with their standard errors, {how}: "
                    "correlations are not published, and a fit moves A with alpha and B with beta (--correlation 0.99)")  # fmt: skip
    if any(key.endswith("_bits") for key in request.points[0]) and request.mode in ("split", "given"):
        notes.append("formats of few bits: a soft law from one transcription, at odds with practice in fp8 and fp4")
    if request.mode == "life" and any(row.get("fresh_share") is not None for row in rows):
        notes.append("the optimum takes all tokens as new; fresh_share says what repeating takes from them")
    return tuple(notes)


def scale(*, law: str | None = None, beside: str = "all", moe: bool = False, **flags: Any) -> Listing:
    """Best split of compute, over-training for a served load, or the value of experts; the keywords decide which.

    Keywords are the flags of `headway scale`: numbers (SI), text such as "50M/s", or lists of them, which give a row each.

    >>> scale(flop=5.76e23, beside="none").plain[0]["active"] / 1e9  # doctest: +ELLIPSIS
    72.3...
    """
    flag_values: dict[str, Any] = {}
    doubt: dict[str, Any] = {}
    for name, value in ((name, value) for name, value in flags.items() if value is not None):
        owner = next((record for record in (*RECORDS, Uncertainty) if name in schema.fields(record)), None)
        if owner is None:
            raise UnknownName("argument of scale", name, [known for record in (*RECORDS, Uncertainty) for known in schema.fields(record)])
        q = schema.fields(owner)[name][0]
        if owner is Uncertainty:
            doubt[name] = schema.scalar(_text(value), q, name)
        else:
            flag_values[name] = schema.axis(_text(value), q, name)[0]
    return listing(*question(flag_values, schema.defaults(Uncertainty, doubt), law, beside, moe))


def _text(value: Any) -> str:
    """A Python value as command-line text, so that one parser reads and checks it."""
    several = value.tolist() if hasattr(value, "tolist") else value
    return ",".join(map(_text, several)) if isinstance(several, list | tuple) else str(several)


def listing(request: ScalingQuestion, notes: Sequence[str] = ()) -> Listing:
    """The rows of a question, each number with its tree of laws."""
    answer_rows = rows(request)
    plain = [clean(row.plain) for row in answer_rows]

    def tree(row: Any, key: str) -> Any:
        place = next(index for index, plain_row in enumerate(plain) if all(row.get(name) == plain_row[name] for name in plain_row))
        return explained(request, answer_rows[place], key)

    return Listing(plain, notes=(*notes, *remarks(request, plain)), tree=tree)

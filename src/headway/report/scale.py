"""Sentences and pictures of `scale`: scaling laws applied to a budget, serving, experts or low-bit formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headway.core import columns
from headway.core.errors import BadValue
from headway.core.listing import Rows, cell, format_value
from headway.report.output import Help, Summary
from headway.report.pictures import dots, frame, grid, plot
from headway.report.pictures import scale as axes
from headway.report.words import Row, sentence
from headway.training.scaling.compute import point, quality_curve
from headway.training.scaling.fits import least_ratio

if TYPE_CHECKING:
    from headway.report.output import PictureOf
    from headway.report.pictures.frame import Picture, View
    from headway.training.scaling.compute import QualityCurve
    from headway.training.scaling.scale import ScalingQuestion

OF_SEVERAL = "ling"  # the law in which a token may use several experts
Words = tuple[list[str], list[str], list[Help]]  # clauses of the sentence, notes, changes that would help
LOSSES = ("epochs", "tokens_worth", "fresh_share", "loss_fresh", "params_worth", "loss_rounded")
SPLIT = ("kind", "law", "flop", "active", "active_lo~active_hi", "tokens", "tokens_lo~tokens_hi", "tokens_per_param", "loss", *LOSSES,
         "size_exponent", "data_exponent", "beyond")  # fmt: skip
GIVEN_VIEW = ("kind", "law", "flop", "active", "tokens", "tokens_per_param", "loss", "over_training", "over_law", "served_exact",
         "served_exact_lo~served_exact_hi", "served_rule", "serve_exact", "serve_rule", *LOSSES, "beyond", "why")  # fmt: skip
LIFE = ("kind", "law", "tokens", "over_training", "over_training_lo~over_training_hi", "over_law", "share_train", "share_rl",
        "share_serve", "rule_regret", "rule_cheapest_active", "rule_cheapest_tokens", "chosen_regret", "epochs", "fresh_share",
        "beyond")  # fmt: skip
QUALITY = ("kind", "law", "loss", "active", "tokens", "over_training", "saved", "serve_over_train", "rule_active", "rule_tokens",
           "rule_regret", "beyond", "why")  # fmt: skip
EXPERTS = ("law", "experts", "total_of_law", "total_over_active", "effective_params", "effective_over_active", "cutoff_params",
           "loss_routed", "in_range", "beyond")  # fmt: skip
VIEWS = {"split": SPLIT, "given": GIVEN_VIEW, "life": LIFE, "quality": QUALITY, "experts": EXPERTS}


def words(request: Any, rows: Sequence[Row]) -> Summary:
    """Summary: a sentence on the first point with its range over the laws, then all rows."""
    first = {**rows[0], **_assumed_serving(rows[0], request.points[0])}
    peers = [row for row in rows if row["kind"] in ("law", "beside") and all(row.get(key) == first.get(key) for key in request.varied)]
    if request.mode == "experts" and float(request.points[0].get("per_token", 1)) > 1:  # which one law alone takes
        first = next((row for row in peers if row["law"] == OF_SEVERAL), first)
    say = {"split": _split, "given": _given_size, "life": _life, "quality": _quality, "experts": _experts}[request.mode]
    view = [key for key in VIEWS[request.mode] if key not in request.varied]
    lead = ("kind", "law") if "kind" in view else ("law",)
    ordered = [*lead, *request.varied, *(key for key in view if key not in lead)]
    clauses, remarks, helps = say(first, peers)
    more = f" (the first of {len(request.points)} points)" if len(request.points) > 1 else ""
    return Summary(sentence(clauses[0], *clauses[1:], more), ordered, remarks=remarks, helps=helps, first=(*lead, *request.varied))


def _assumed_serving(row: Row, flags: Mapping[str, Any]) -> dict[str, str]:
    """How the served tokens come from what was typed, for the sentence, and a note on the defaults in it."""
    if row.get("served") is None:
        return {"served_from": "", "served_note": ""}
    at = point(flags)
    parts, defaults_taken = [], []
    if "served" not in flags and float(at.utilisation) != 1:
        rate = format_value(float(flags["serve"]), "token/s")
        parts.append(f"{float(at.utilisation):.0%} of {rate}")
        defaults_taken += [f"utilisation {float(at.utilisation):.3g}"] if "utilisation" not in flags else []
    if float(at.deployed) != 1:
        parts.append(f"deployed with {float(at.deployed):.0%}")
    if float(at.kappa) != 1:
        parts.append(f"kappa {float(at.kappa):.3g}")
        by_user = "kappa" in flags or "serve_mfu" in flags
        defaults_taken += [] if by_user else [f"serving at {1 / float(at.kappa):.0%} of training's MFU (--serve-mfu, --kappa)"]
    note = f"assumed, as in the lecture: {', '.join(defaults_taken)}" if defaults_taken else ""
    return {"served_from": f" ({', '.join(parts)})" if parts else "", "served_note": note}


def _range(peers: Sequence[Row], key: str) -> str:
    """Lowest and highest value over the laws, with their names."""
    known = sorted(((row[key], row["law"]) for row in peers if row.get(key) is not None), key=lambda pair: pair[0])
    if len(known) < 2 or known[0][0] == known[-1][0]:
        return ""
    low, high = (f"{_value_text(value, key)} ({law})" for value, law in (known[0], known[-1]))
    return f"{low} .. {high} over {len(known)} laws"


def _value_text(value: Any, key: str) -> str:
    if key.startswith(("over_", "rule_over", "chosen_over")):
        return f"{value:,.3g}x"
    return f"{value:.1%}" if key.endswith(("regret", "saved")) else format_value(value, columns.unit(key))


def _of(row: Row, key: str) -> str:
    return cell(key, row)


def _in_brackets(*parts: str) -> str:
    texts = [part for part in parts if part]
    return f" ({'; '.join(texts)})" if texts else ""


def _interval(row: Row, key: str) -> str:
    return f"90 % {_of(row, f'{key}_lo~{key}_hi')}" if row.get(f"{key}_lo") is not None else ""


def _split(first: Row, peers: Sequence[Row]) -> Words:
    size, data = f"{_of(first, 'active')} parameters", f"{_of(first, 'tokens')} tokens"
    ratio = f", {first['tokens_per_param']:.3g} a parameter"
    epochs = f", {first['epochs']:.3g} epochs" if first.get("epochs") is not None else ""
    clauses = [f"{_of(first, 'flop')} are best spent on {size} and {data} by {first['law']}", epochs, ratio, f", loss {first['loss']:.4g}"]
    remarks = [f"parameters: {text}" for text in _spread(first, peers, "active")]
    remarks += [f"tokens: {text}" for text in _spread(first, peers, "tokens")]
    spread = _range(peers, "tokens_per_param")
    remarks += [f"tokens per parameter: {spread}"] if spread else []
    if first.get("epochs") is not None:
        remarks.append(f"{first['epochs']:.3g} epochs are worth {_of(first, 'tokens_worth')} new tokens")
    return clauses, remarks, []


def _spread(first: Row, peers: Sequence[Row], key: str) -> list[str]:
    return (
        ["; ".join(part for part in (_interval(first, key), _range(peers, key)) if part)]
        if _in_brackets(_interval(first, key), _range(peers, key))
        else []
    )


def _given_size(first: Row, peers: Sequence[Row]) -> Words:
    text = f"{_of(first, 'active')} parameters on {_of(first, 'tokens')} tokens: loss {first['loss']:.4g} by {first['law']}"
    over = f", {first['over_training']:,.3g}x Chinchilla"
    if first.get("served_exact") is None:
        return [text, over, f"; {first['why']}"], [], []
    spread = _range(peers, "served_exact")
    remarks = [f"by the simple rule, training = serving, right for {_of(first, 'served_rule')} tokens served"]
    remarks += [f"tokens served: {spread}"] if spread else []
    return [text, over, f"; right for {_of(first, 'served_exact')} tokens served"], remarks, []


LEAST_REGRET = 0.0005  # share that the simple rule costs more, from which another size is told
BILL = (("pre-training", "train"), ("RL", "rl"), ("serving", "serve"))


def _life(first: Row, peers: Sequence[Row]) -> Words:
    served = f"{_of(first, 'served')} tokens served{first['served_from']}"
    text = f"{_of(first, 'active')} active, {served}: train on {_of(first, 'tokens')} tokens"
    clauses = [text, f", {first['over_training']:,.3g}x Chinchilla by {first['law']}"]
    clauses.append(f"; the simple rule costs {first['rule_regret']:.1%} more")
    shares, by_rule = (", ".join(f"{name} {first[f'{whose}share_{key}']:.0%}" for name, key in BILL) for whose in ("", "rule_"))
    rule = f"{_of(first, 'rule_tokens')} tokens, {first['rule_over_training']:,.3g}x Chinchilla"
    rule += ", fewer a parameter than any fit saw" if first["rule_tokens"] / first["active"] < least_ratio() else ""
    remarks = [
        *([first["served_note"]] if first["served_note"] else []),
        f"the simple rule, training = serving, says {rule}",
        f"the bill at the optimum: {shares} of {_of(first, 'bill_flop')} of training (kappa {first['kappa']:.3g}, eta {first['eta']:.3g})",
        f"the bill by the simple rule: {by_rule}",
        *(f"over Chinchilla: {text}" for text in [_range(peers, "over_training")] if text),
        *(f"the simple rule costs more by {text}" for text in [_range(peers, "rule_regret")] if text),
    ]
    size = f"{_of(first, 'rule_cheapest_active')} parameters on {_of(first, 'rule_cheapest_tokens')} tokens"
    saved = 1 - 1 / (1 + first["rule_regret"])
    helps = [Help(change=f"{size} instead of the simple rule", effect=f"the same quality {saved:.1%} cheaper", gain=saved)]
    helps = helps if first["rule_regret"] >= LEAST_REGRET else []
    if first.get("chosen_regret") is not None:
        remarks.append(f"{_of(first, 'chosen_tokens')} tokens, {first['chosen_over_training']:,.3g}x, cost {first['chosen_regret']:.1%} "
                       f"more than the cheapest model of their quality{_in_brackets(_range(peers, 'chosen_regret'))}")  # fmt: skip
    return clauses, remarks, helps


def _quality(first: Row, peers: Sequence[Row]) -> Words:
    text = f"The quality of {_of(first, 'quality')} costs least as {_of(first, 'active')} parameters on {_of(first, 'tokens')} tokens"
    clauses = [text, f" by {first['law']}", f": {first['saved']:.1%} less", f", with {_of(first, 'served')} served{first['served_from']}"]
    remarks = [f"quality of {_of(first, 'quality')} on {_of(first, 'quality_tokens')} tokens"]
    remarks += [first["served_note"]] if first["served_note"] else []
    remarks += [f"parameters: {spread}" for spread in [_range(peers, "active")] if spread]
    if first.get("rule_regret") is None:
        return clauses, [*remarks, f"training = serving: {first['why']}"], []
    equal = f"{_of(first, 'rule_active')} parameters on {_of(first, 'rule_tokens')} tokens"
    dearer = f"training = serving: {equal}, {first['rule_regret']:.1%} dearer{_in_brackets(_range(peers, 'rule_regret'))}"
    return clauses, [*remarks, dearer], []


def _count(experts: Any) -> str:
    return "1 expert" if experts == 1 else f"{experts:,.0f} experts"


def _experts(first: Row, peers: Sequence[Row]) -> Words:
    inside = [row for row in peers if row.get("in_range")]
    text = f"{_of(first, 'active')} active with {_count(first['experts'])} are worth {_of(first, 'effective_params')} dense"
    clauses = [text, f", {first['effective_over_active']:.3g}x, by {first['law']}"]
    where = f"{len(inside)} of {len(peers)} laws were fitted there" if inside else "no law is known to have been fitted there"
    spread = _range(peers, "effective_params")
    return clauses, [where, *([f"worth in dense parameters: {spread}"] if spread else [])], []


PANEL_KEYS = {
    "split": ("active", "tokens"),
    "given": ("loss", "served_exact"),
    "life": ("over_training", "rule_regret"),
    "quality": ("active", "tokens"),
    "experts": ("effective_over_active",),
}
TITLES = {
    "split": "Compute split best, by law",
    "given": "What a model's training is right for, by law",
    "life": "How far to over-train, and what training = serving costs beyond the cheapest, by law",
    "quality": "The cheapest model of a quality, by law",
    "experts": "What experts are worth, by law",
}
UNITS = {"over_training": "x", "rule_regret": "share"}  # on an axis
NAMES = {
    "active": "active parameters",
    "over_training": "tokens over Chinchilla's",
    "rule_regret": "extra cost of the simple rule",
    "served_exact": "tokens served that it is right for",
    "effective_over_active": "equal dense over active parameters",
}


def _ranged(row: Row, key: str) -> str:
    """A value of a row, with its interval where that is known."""
    ends = [_value_text(row[end], key) for end in (f"{key}_lo", f"{key}_hi") if row.get(end) is not None]
    return f"{_value_text(row[key], key)} ({' to '.join(ends)})" if ends else _value_text(row[key], key)


def _subject(row: Row) -> str:
    """What the laws are asked: size, tokens served, compute, as far as they are inputs of the row."""
    inputs = (("active", "", "active parameters"), ("served", "token", "tokens served"))
    known = [f"{format_value(row[key], unit)} {words}" for key, unit, words in inputs if row.get("served") and row.get(key)]
    known = known or ([format_value(row["flop"], "flop")] if row.get("flop") else [])
    return f"{', '.join(known)}; " if known else ""


HIGHEST = 3.0  # times the cheapest, where the axis of over-training ends
FAR = 100.0  # drawn for tokens on which no size reaches the quality


def pictures(request: ScalingQuestion) -> dict[str, PictureOf]:
    """Pictures of `scale` by name."""

    def over(rows: Rows, view: View) -> Picture:
        first = next(iter(rows), None)
        if first is None:
            raise BadValue("--plot", "no rows", "rows to draw")
        laws = dict.fromkeys(row["law"] for row in rows if row["kind"] in ("law", "beside"))
        return overtraining([quality_curve(law, request.points[0]) for law in laws], first, view)

    def laws(rows: Rows, view: View) -> Picture:
        keys = [key for key in PANEL_KEYS[request.mode] if any(row.get(key) is not None for row in rows)]
        if not keys:
            raise BadValue("--plot", "these rows", "rows with " + " or ".join(PANEL_KEYS[request.mode]))
        about = "scaling laws, each fitted on its own runs"
        if request.varied:
            title = TITLES[request.mode]
            return grid.picture(list(rows), request.varied[0], keys, ("law", *request.varied[1:]), view, title=title, about=about)
        panels, findings = [], []
        for number, key in enumerate(keys):
            known = [row for row in rows if row.get(key) is not None]
            words = NAMES.get(key) or key.replace("_", " ")
            panels.append(dots.Dots(name=f"law{number}", rows=known, key=key, labels=[row["law"] for row in known],
                                    texts=[_ranged(row, key) for row in known], columns=len(keys), heading=words[:1].upper() + words[1:],
                                    tones=["compute", *["rest"] * (len(known) - 1)], unit=UNITS.get(key) or columns.unit(key)))  # fmt: skip
            ends = [_value_text(end(row[key] for row in known), key) for end in (min, max)]
            findings.append(f"{words} {' to '.join(dict.fromkeys(ends))}")
        caption = "In colour the law that answers, its line the 90 % interval from the errors of its coefficients; in grey other laws."
        title = f"The laws differ: {'; '.join(findings)}"
        return frame.compose(view, [panels], title=title, subtitle=f"{_subject(next(iter(rows)))}{about}", caption=caption)

    return {"overtraining": over, "laws": laws} if request.mode == "life" and not request.varied else {"laws": laws}


def overtraining(curves: Sequence[QualityCurve], row: Row, view: View) -> Picture:
    """What a model of equal quality costs over its life against its tokens, by law, the first in bold: the optimum and the simple rule."""
    lead = curves[0]
    low, high = max(curve.tokens[0] for curve in curves), min(curve.tokens[-1] for curve in curves)
    low, high = (low, high) if low < lead.best_tokens < high else (lead.tokens[0], lead.tokens[-1])  # where every law is drawn
    tokens = np.geomspace(low, high, 160)
    shares = {curve.law: np.interp(np.log(tokens), np.log(curve.tokens), curve.over_cheapest, left=FAR, right=FAR) for curve in curves}
    points = []
    for place, at in enumerate(tokens):
        by_law = {law: float(values[place]) for law, values in shares.items()}
        by_law = {law: value if value < 1e6 else None for law, value in by_law.items()}  # which nan is not
        known = [FAR if value is None else value for value in by_law.values()]
        points.append({"tokens": float(at), **by_law, "low": min(known), "high": max(known)})
    at_rule = 1 + row["rule_regret"]
    parts = [
        plot.Series(rows=points, x="tokens", meaning="whole", width=0, band=("low", "high")),
        plot.Series(rows=points, x="tokens", y=lead.law, meaning="compute", text=lead.law, width=3.5),
        plot.Point(x=lead.best_tokens, y=1.0, text=f"cheapest: {format_value(lead.best_tokens, 'token')} tokens", meaning="compute"),
        plot.Point(x=lead.rule_tokens, y=at_rule, text=f"simple rule: {at_rule:.2f} times", meaning="network", shape="square",
                   is_free=True),
        plot.RuleLines(x=[row["chinchilla"]], text="20 tokens a parameter"),
    ]  # fmt: skip
    valley = plot.Plot(
        name="overtraining", parts=parts, height=300,
        heading="Compute of training and serving over that of the cheapest model of equal quality",
        x=axes.AxisScale("Tokens of pre-training (log)", list(tokens), "token", log=True, most=6, room=0.0),
        y=axes.AxisScale("", [1.0, HIGHEST], ends=(0.95, HIGHEST), log=False, most=5),
    )  # fmt: skip
    size, served = format_value(row["active"], ""), format_value(row["served"], "token")
    title = f"At one quality the simple rule costs {at_rule:.2f} times the cheapest model; the valley is flat"
    caption = (
        f"Every point has the quality of {size} parameters on {format_value(lead.rule_tokens, 'token')} tokens: left, a larger model is "
        f"dearer to serve; right, a smaller one is dearer to train. The band spans {len(curves)} published laws."
    )
    subtitle = f"{size} active parameters, {served} tokens served, by {lead.law}"
    return frame.compose(view, [[valley]], title=title, subtitle=subtitle, caption=caption)

"""List prices of open models by their hosts against costs by `price`: python bench/host_prices.py [-v] [HOSTS.csv].

Each model of tests/data/open_models_sold.csv that the catalogue has, in fp8 on H200 that hold its weights twice, with one pool and by the
cheaper of one pool and prefill apart. A list price is within where it lies between the ends of the computed price: a chip at its market
price, 30 to 90 % of the hours at work, a margin of 0 to 60 %. These terms are stated here and fitted to nothing.

Then the list prices that `price` says hosts would ask, each family left out: both rates within their ends, over models, and over the
lines of HOSTS.csv, a price of one host each (provider, model, service_tier, input_usd_per_mtok, output_usd_per_mtok), told as to anybody
and told with the host's own level, which its prices of other families give.
"""

import csv
import sys
from math import ceil, log
from pathlib import Path

import numpy as np

from headway.core.errors import HeadwayError
from headway.economics.inversion.calibration import read_examples
from headway.economics.inversion.list_prices import list_score, lists_left_out
from headway.economics.inversion.priors import LIST_FACTOR
from headway.economics.price.price import price
from headway.models.config import model
from headway.models.totals import total_params
from headway.performance.workload import Load

SOLD = Path(__file__).resolve().parent.parent / "tests/data/open_models_sold.csv"
REQUEST = Load(prompt=4000, output=1000)
TERMS = {"utilisation": (0.3, 0.9), "margin": (0.0, 0.6)}
TPOT_S = 0.05
CHIP_BYTES = 141e9
HELD = 2.5  # of the weights: two pools hold them twice, and caches beside
SIZES = SOLD.with_name("open_models_sizes.csv")
KINDS = ("in", "out")


def chips_for(found):
    """Chips of whole hosts beyond one host."""
    chips = ceil(HELD * float(total_params(found)) / CHIP_BYTES)
    return 2 ** ceil(log(chips, 2)) if chips <= 8 else ceil(chips / 8) * 8


def main():
    """Print each model and the shares that are within."""
    rows = list(csv.DictReader(SOLD.read_text(encoding="utf-8").splitlines()))
    results = {way: [] for way in ("never", "auto")}
    for row in rows:
        try:
            found = model(row["model"])
            machine = f"{max(2, chips_for(found))}xh200-sxm"
            asked = {"tpot": TPOT_S, "weights": "fp8", **TERMS}
            costs = {way: price(found, machine, REQUEST, disaggregate=way, **asked).row(0) for way in results}
        except HeadwayError as error:
            print(f"{row['model']}: left out, {error}")
            continue
        if any(line.get("price_out") is None for line in costs.values()):
            print(f"{row['model']}: left out, {next(line['why'] for line in costs.values() if line['why'])}")
            continue
        sold = dict(zip(KINDS, (float(row[f"{name}_usd_per_mtok"]) for name in ("input", "output")), strict=True))
        for way, line in costs.items():
            results[way].append([
                (line[f"price_{kind}_least"] <= sold[kind] <= line[f"price_{kind}_most"], log(line[f"price_{kind}"] / sold[kind]))
                for kind in KINDS
            ] + [(False, log(line["output_multiple"] / (sold["out"] / sold["in"])))])
        if "-v" in sys.argv:
            told = ", ".join(f"{way} {line['price_in']:.3f} {line['price_out']:.3f}" for way, line in costs.items())
            print(f"{row['model']} on {machine}: sold {sold['in']:.3f} {sold['out']:.3f}; {told}")
    for way, lines in results.items():
        inside, logs = (np.array([[entry[at] for entry in line] for line in lines], dtype=float) for at in (0, 1))
        shares = ", ".join(f"{kind} {inside[:, at].mean():.0%}" for at, kind in enumerate(KINDS))
        misses = ", ".join(f"{name} {np.exp(np.median(logs[:, at])):.2f}" for at, name in enumerate((*KINDS, "output over input")))
        print(f"{way}: {len(lines)} models within the ends: {shares}, both {inside[:, :2].all(axis=1).mean():.0%}")
        print(f"{' ' * len(way)}  cost over list in the middle: {misses}")


def listed(hosts=""):
    """Print how often both list prices lie within what is told of them."""
    verdicts = lists_left_out(read_examples(SOLD, SIZES))
    score = list_score(verdicts)
    print(f"list prices forwards: {score.models} models, both rates within a width of {score.width:.3g}: {score.coverage:.0%}")
    if not hosts:
        return
    by, half = {verdict.example.model: verdict for verdict in verdicts}, log(float(LIST_FACTOR))
    families, names, errors = [], [], []
    for line in csv.DictReader(Path(hosts).read_text(encoding="utf-8").splitlines()):
        verdict = by.get(line["model"]) if line["service_tier"] == "standard" else None
        if verdict is not None:
            told = (verdict.over_input * verdict.example.input, verdict.over_output * verdict.example.output)
            asked = (float(line[f"{name}_usd_per_mtok"]) / 1e6 for name in ("input", "output"))
            errors.append([log(one / other) for one, other in zip(asked, told, strict=True)])
            families.append(verdict.example.family)
            names.append(line["provider"])
    errors = np.array(errors)
    levels = np.array([level(name, family, names, families, errors) for name, family in zip(names, families, strict=True)])
    for words, left in (("", errors), (", its own level known from other families", errors - levels)):
        within = (abs(left) <= half).all(axis=1).mean()
        print(f"every host's price of each{words}: {len(left)} of {len(set(names))} hosts, both within: {within:.0%}")


def level(name, family, names, families, errors):
    """What a host asks over the forecast for other families, in the middle of the logarithms, a vote a family and one for no level."""
    lines = {}
    for at, (host, kind) in enumerate(zip(names, families, strict=True)):
        if host == name and kind != family:
            lines.setdefault(kind, []).append(errors[at])
    return sum((np.mean(of_family, axis=0) for of_family in lines.values()), np.zeros(2)) / (len(lines) + 1)


if __name__ == "__main__":
    main()
    listed(next((word for word in sys.argv[1:] if word != "-v"), ""))

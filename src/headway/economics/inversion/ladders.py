"""Ladders of open models: what the price of further context says of KV, beside the KV of their config.json.

A ladder's slope is what one more token of context costs, times a markup of its own. How large that markup is and how it varies is
fitted to the ladders whose model is published; each is judged by the others, its whole family left out.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway.core.catalog import lines
from headway.economics.inversion.answer import KV, invert, row
from headway.economics.inversion.calibration import MTOK, OURS, PriceScore, votes
from headway.economics.inversion.features import SheetTiers, features
from headway.economics.inversion.priors import Priors, further_markup, priors, reference, reference_log_cost
from headway.economics.sheets.sheet import ContextTier, PriceSheet, Rates
from headway.models.config import model
from headway.models.totals import kv_bytes_per_token

FITTED_LADDERS = ("ladder_middle", "tier_spread")
SMALLEST = 0.1  # a spread below which a handful of ladders cannot tell
FP8_OF_BF16 = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownLadder:
    """A ladder of prices by context whose model is published."""

    sheet: PriceSheet
    model: str
    family: str
    kv: float  # bytes per token, one byte per element

    @property
    def sold_as(self) -> str:
        """Its name on the price list."""
        return f"{self.sheet.provider}/{self.sheet.model}"

    @property
    def tiers(self) -> SheetTiers:
        """The slope of its output price."""
        of_sheet = features(self.sheet)
        if of_sheet is None or of_sheet.ladder is None:
            raise ValueError(f"{self.sheet.model} of data/known_ladders.csv does not rise with context")
        return of_sheet.ladder


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderVerdict:
    """KV bytes per token inferred from a ladder, against its model's public config."""

    ladder: KnownLadder
    lo: float
    value: float
    hi: float
    verdict: str

    @property
    def holds(self) -> bool:
        """Whether the interval holds the published KV."""
        return self.lo <= self.ladder.kv <= self.hi


def known_ladders() -> list[KnownLadder]:
    """The ladders of data/known_ladders.csv, which has a line for each tier."""
    by: dict[tuple[str, str], list[dict[str, str]]] = {}
    for tier in lines("known_ladders.csv"):
        by.setdefault((tier["provider"], tier["sold"]), []).append(tier)
    return [_ladder(tiers) for tiers in by.values()]


def _ladder(tiers: list[dict[str, str]]) -> KnownLadder:
    first = tiers[0]
    rates = [Rates(input=float(tier["input_usd_per_mtok"]) / MTOK, output=float(tier["output_usd_per_mtok"]) / MTOK) for tier in tiers]
    above = [float(tier["above"]) for tier in tiers]
    price_sheet = PriceSheet(
        provider=first["provider"], model=first["sold"], as_of=first["date"], source=first["source"], rates=rates[0],
        tiers=tuple(ContextTier(above=start, rates=of_tier) for start, of_tier in zip(above[1:], rates[1:], strict=True)),
        context_limit=float(tiers[-1]["to"]),
    )  # fmt: skip
    kv = FP8_OF_BF16 * float(kv_bytes_per_token(model(first["model"])))
    return KnownLadder(sheet=price_sheet, model=first["model"], family=first["family"], kv=kv)


def calibrated_by_ladders(basis: Priors, known: Sequence[KnownLadder]) -> Priors:
    """The priors with the middle and the spread of a ladder's markup fitted to these ladders, one vote for each family."""
    families = [ladder.family for ladder in known]
    shares, count = votes(families), len(set(families))
    plain = dataclasses.replace(basis, ladder_middle=1.0)
    carried, carried_variance = further_markup(plain)
    tiers = [ladder.tiers for ladder in known]
    costs = [float(reference_log_cost(plain, reference(), 1.0, 1.0, ladder.kv)[2]) for ladder in known]
    excess = np.log([float(of_ladder.slope) for of_ladder in tiers]) - np.array(costs) - carried
    middle = float(shares @ excess)
    predicted = (count + 1) / (count - 3)  # of the next family, by few: a Student t's, and the mean is uncertain as well
    elsewhere = carried_variance + shares @ np.array([of_ladder.spread**2 for of_ladder in tiers])
    variance = float(shares @ (excess - middle) ** 2 * predicted - elsewhere)
    return dataclasses.replace(basis, ladder_middle=float(np.exp(middle)), tier_spread=max(variance, SMALLEST**2) ** 0.5)


def ladders() -> list[LadderVerdict]:
    """Each known ladder read backwards with its family left out of what ladders taught."""
    known, verdicts = known_ladders(), []
    for family in dict.fromkeys(ladder.family for ladder in known):
        basis = calibrated_by_ladders(priors(), [ladder for ladder in known if ladder.family != family])
        judged = [ladder for ladder in known if ladder.family == family]
        for ladder, answer in zip(judged, invert([ladder.sheet for ladder in judged], known_priors=basis), strict=True):
            kv = row(answer, "kv")
            verdicts.append(LadderVerdict(ladder=ladder, lo=kv.lo, value=kv.value, hi=kv.hi, verdict=kv.verdict))
    return verdicts


def ladder_score(verdicts: Sequence[LadderVerdict]) -> PriceScore:
    """The errors over all ladders, beside the middle of the other families' KV."""
    logs, families = np.log([verdict.ladder.kv for verdict in verdicts]), np.array([verdict.ladder.family for verdict in verdicts])
    middles = [logs[families != family].mean() for family in families]
    rms, constant = (
        float(np.sqrt(np.mean((np.array(guesses) - logs) ** 2))) for guesses in (np.log([verdict.value for verdict in verdicts]), middles)
    )
    return PriceScore(
        method=OURS, size=KV, models=len(verdicts), rms=rms, over_constant=rms / constant,
        width=statistics.median(verdict.hi / verdict.lo for verdict in verdicts),
        coverage=sum(verdict.holds for verdict in verdicts) / len(verdicts),
    )  # fmt: skip


def fitted_ladders() -> dict[str, float]:
    """FITTED_LADDERS of all known ladders, by their names in data/inversion.toml."""
    basis = calibrated_by_ladders(priors(), known_ladders())
    return {name: float(getattr(basis, name)) for name in FITTED_LADDERS}

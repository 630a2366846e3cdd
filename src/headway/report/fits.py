"""Words and picture of `headway fits`: the largest model that keeps the pace, and how fast each runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.core.listing import Rows
from headway.core.units import show
from headway.report.output import Summary
from headway.report.pictures import dots, frame
from headway.report.words import number_of, sentence, value, with_ends

if TYPE_CHECKING:
    from headway.report.pictures.frame import Picture, View
    from headway.report.words import Row

SPEED = "tok_per_s_user_lo~tok_per_s_user_hi"
ALL_VIEW = ("model", "total_params", "weights", "offload", "tok_per_s_user", SPEED, "largest_context", "host_bytes", "released")
FORMAT_VIEW = ("model", "weights", "offload", "fits", "tok_per_s_user", SPEED, "weights_bytes", "host_bytes", "largest_context", "why")
FIRST = ("model", "weights", "tok_per_s_user", "total_params")
RULE = (
    "a row for each model: its widest format that keeps the pace, on the cards before the host's memory, less than four bits last; the "
    "largest model first, as quality is not modelled; headway fits MODEL shows every format"
)
MOST_DRAWN = 20


def of_models(rows: Rows, pace: float, nowhere: str) -> Summary:
    """Summary of the models that run: the largest that keeps the pace, and how many do; `nowhere` is the sentence on none."""
    fit_rows = list(rows)
    fast = [row for row in fit_rows if row["tok_per_s_user"] >= pace]
    paced = f"{show(pace, 'token/s')} or more"
    if not fit_rows:
        return Summary(nowhere, ALL_VIEW)
    if not fast:
        fastest = max(fit_rows, key=lambda row: row["tok_per_s_user"])
        headline = sentence(f"No model runs at {paced}; the fastest: {about(fastest)}", f", of {len(fit_rows)} that run")
        return Summary(headline, ALL_VIEW, remarks=[RULE], first=FIRST)
    largest = max(fast, key=lambda row: row["total_params"])
    clause = f", the largest of the {len(fast)} that keep {paced}" if len(fast) > 1 else f", the only one that keeps {paced}"
    return Summary(sentence(about(largest), clause), ALL_VIEW, remarks=[RULE], first=FIRST)


def of_formats(rows: Rows) -> Summary:
    """Summary of the formats of named models: the widest that fits."""
    fit_rows = list(rows)
    holding = [row for row in fit_rows if row["fits"]]
    if not holding:
        least = min(fit_rows, key=lambda row: row["weights_bytes"])
        nowhere = f"{least['model']} does not run on {least['system']} in any of {number_of(len(fit_rows), 'way')}"
        headline = sentence(nowhere, f": in {_way(least)} it {least['why']}")
        return Summary(headline, FORMAT_VIEW, first=FIRST)
    on_chips = [row for row in holding if row["offload"] == "none"]
    return Summary(sentence(about((on_chips or holding)[0]), f"; {len(holding)} of {len(fit_rows)} ways fit"), FORMAT_VIEW, first=FIRST)


def about(row: Row) -> str:
    """A model on a machine, with its speed and its room."""
    speed = with_ends(row["tok_per_s_user"], row["tok_per_s_user_lo"], row["tok_per_s_user_hi"], "token/s")
    room = "" if row["largest_context"] is None else f", room for {row['largest_context']:,.0f} tokens"
    return f"{row['system']} runs {row['model']} in {_way(row)} at {speed}{room}"


def _way(row: Row) -> str:
    """The format of a row, and where its experts lie if not on the cards."""
    experts = " with experts in the host's memory" if row["offload"] == "experts" else ""
    return f"{row['weights']}{experts}"


def drawing(rows: Rows, view: View) -> Picture:
    """Decode speed of each model that fits, the largest above; in grey those whose experts lie in the host's memory."""
    fit_rows: Sequence[Mapping[str, Any]] = [row for row in rows if row["fits"]][:MOST_DRAWN]
    labels = [f"{row['model']} {row['weights']}" for row in fit_rows]
    texts = [value(row, "tok_per_s_user") for row in fit_rows]
    on_cards = [row for row in fit_rows if row["offload"] == "none"]
    is_parted = 0 < len(on_cards) < len(fit_rows)
    tones = ["rest" if is_parted and row["offload"] != "none" else "compute" for row in fit_rows]
    panel = dots.Dots(name="models", rows=fit_rows, key="tok_per_s_user", labels=labels, texts=texts, unit="token/s", tones=tones,
                      title="tokens per second of one user (log)")  # fmt: skip
    fastest = max(fit_rows, key=lambda row: row["tok_per_s_user"], default=None)
    title = "No model fits"
    if fastest:
        title = f"{fastest['system']} runs {labels[0]} at {texts[0]}, {fastest['model']} at {value(fastest, 'tok_per_s_user')}"
    subtitle = f"decode speed of one user, by model{', the largest on top' if len({row['model'] for row in fit_rows}) > 1 else ''}"
    caption = "Points are expected values, lines 90 % intervals; quality of formats is not modelled."
    caption = f"In colour what the cards hold whole, in grey with experts in the host's memory. {caption}" if is_parted else caption
    return frame.compose(view, [[panel]], title=title, subtitle=subtitle, caption=caption)

"""Words and pictures of `headway feistel`: vectors, avalanche, differentials beside gradients, couplings forward and back."""

from __future__ import annotations

from typing import Any

from headway.report.output import Summary

CAVEAT = "A demonstration, not for protecting data."


def vectors(rows: Any) -> Summary:
    """Words on published vectors."""
    table = list(rows)
    agreeing = sum(row["agrees"] for row in table)
    names = ", ".join(dict.fromkeys(row["cipher"] for row in table))
    headline = f"{agreeing} of {len(table)} published vectors are reproduced and decrypted: {names or 'no row is left'}."
    following = "Next: headway feistel avalanche (a flipped bit, by round), differential (attacks), coupling (what floats lose)."
    return Summary(headline, ("cipher", "rounds", "key", "plain", "encrypted", "result", "agrees"), [CAVEAT, following])


def avalanche(rows: Any) -> Summary:
    """Words on avalanche by round."""
    table = list(rows)
    view = ("cipher", "rounds", "changed_bits", "changed_share", "random_share", "sensitivity", "network_sensitivity")
    if not table:
        return Summary("No row is left.", view)
    full = next((row for row in table if row["full_from"] is not None and row["full_from"] <= row["rounds"]), None)
    last = table[-1]
    if full:
        headline = (
            f"From round {full['full_from']}, one flipped bit changes half of {full['cipher']}'s output, as behind a random permutation."
        )
    else:
        headline = f"After {last['rounds']} rounds one flipped bit changes {last['changed_share']:.0%} of {last['cipher']}'s output."
    beside = f"A residual network of {last['rounds']} random blocks passes a small change on {last['network_sensitivity']:.2f}-fold"
    after = [f"{beside}; the cipher multiplies it by {last['sensitivity']:.1f}.", CAVEAT]
    return Summary(headline, view, after)


def differential(rows: Any) -> Summary:
    """Words on the best differential by round and the gradient attack by depth."""
    table = list(rows)
    view = ("rounds", "input_difference", "output_difference", "probability", "weight_bits", "pairs_needed", "right_share",
            "right_random_share", "right_gradient_share")  # fmt: skip
    countable = [row for row in table if row["probability"] is not None]
    if not countable:
        return Summary("No differential was counted.", view)
    last = countable[-1]
    headline = f"Behind {last['rounds']} rounds of {last['cipher']} one difference in {last['pairs_needed']:,.0f} is predictable; "
    headline += f"a gradient leaves a network {last['right_gradient_share']:.0%} right."
    after = [
        f"Both differentiate: over bits the best of few-bit differences, behind a random permutation {last['random_probability']:.1e}; "
        f"over numbers the loss, every input moved by {last['epsilon']:g} standard deviations.",
        f"The same move in random directions leaves {last['right_random_share']:.0%} right.",
        CAVEAT,
    ]
    return Summary(headline, view, after)


def coupling(rows: Any) -> Summary:
    """Words on couplings forward and back."""
    table = list(rows)
    view = ("number_format", "layers", "roundoff", "inversion_error")
    if not table:
        return Summary("No row is left.", view)
    exact = [row["number_format"] for row in table if row["inversion_error"] == 0]
    worst = max(table, key=lambda row: row["inversion_error"])
    exactness = f"Whole numbers come back exactly ({', '.join(dict.fromkeys(exact))})" if exact else "No format comes back exactly"
    headline = f"{exactness}; after {worst['layers']} layers, {worst['number_format']} is off by {worst['inversion_error']:.1%}."
    return Summary(headline, view, ["Each layer is x' = y + f(x), y' = x; f has no inverse and needs none."])


WORDS = {"vectors": vectors, "avalanche": avalanche, "differential": differential, "coupling": coupling}


def pictures(what: str) -> dict[str, Any]:
    """Pictures of `feistel` by name; the spread of bits where rounds were counted."""

    def step(rows: Any, view: Any) -> Any:
        from headway.report.pictures import feistel

        return feistel.step(view)

    def avalanche(rows: Any, view: Any) -> Any:
        from headway.report.pictures import feistel

        return feistel.avalanche(list(rows), view)

    return {"avalanche": avalanche, "step": step} if what == "avalanche" else {"step": step}

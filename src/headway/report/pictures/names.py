"""What each verb draws: names for `--picture`, the default first, with what each shows."""

from __future__ import annotations

PICTURES: dict[str, dict[str, str]] = {
    "plan": {
        "frontier": "speed of a user against throughput and cost, with the plan, the limits and your own layout",
        "memory": "what fills a chip of the plan",
        "tornado": "what a tenth more or less of each input changes",
        "batch": "latency and cost against batch of the plan's layout",
    },
    "serve": {
        "batch": "latency and cost against batch: floor, knee, asymptotes, memory end",
        "context": "latency and cost against context: window and memory end",
        "roofline": "operators of the model under the machine's roofline",
        "memory": "what fills a chip",
        "stages": "weights and KV per chip by pipeline stages",
        "pipeline": "micro-batches that decode through the stages",
        "grid": "times and cost along the inputs that vary",
    },
    "sim": {
        "time": "queue, batch and KV cache over time, with the limits",
        "latency": "latency percentiles against rate, with saturation",
        "trains": "timetable of steps: when they leave, how full, who waits",
    },
    "list": {"evidence": "of list evidence: how far off predictions were, by what was measured"},
    "score": {"parity": "predicted against measured", "parts": "where a run stands: parts of the measured time, floor"},
    "solve": {"crossing": "the curve and where it crosses the value"},
    "train": {
        "layouts": "step time and memory of layouts, by part",
        "pipeline": "micro-batches over the stages of a pipeline, by schedule",
    },
    "scale": {"overtraining": "cost of a model of equal quality against its training tokens", "laws": "each law's answer"},
    "price": {
        "context": "cost against context: window and memory end",
        "grid": "prices along the inputs that vary",
        "history": "of --history: rates by the date of the sheet",
        "quantities": "of --sheet: what is identified, with its interval",
    },
    "speed": {"ladder": "price against speed of fast and slow tiers, with real offers"},
    "cache": {
        "map": "the cheapest memory tier by hold time and reuse",
        "drain": "drain time of each memory tier, from HBM to disk",
        "holds": "cost against hold time",
        "hit-rates": "of --workload: what the cache has, by lifetime and room",
    },
    "bill": {"modes": "cost of the requests by mode"},
    "rack": {
        "wiring": "cables of a mesh, a switch star and a hierarchy",
        "experts": "a mixture-of-experts layer on a rack: who sends to whom",
        "sizes": "cables and all-to-all along the size of the domain",
        "years": "of --by-year: what grew from year to year",
    },
    "trend": {"years": "what grew from year to year, with names"},
    "lecture": {"claim": "the picture of the claim", "inputs": "figures of a claim along an input (--with NAME=RANGE)"},
    "feistel": {"step": "a Feistel step forward and back", "avalanche": "changed bits by round"},
}


def help_text(verb: str) -> str:
    """Help of `--picture` for a verb."""
    pictures = PICTURES.get(verb)
    if not pictures:
        return "no picture: this verb draws nothing"
    return "what to draw: " + "; ".join(f"{name} ({sentence})" for name, sentence in pictures.items())

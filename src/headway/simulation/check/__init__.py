"""Whether a deployment keeps its latency limits under traffic, by simulation, and how sure that is.

`limits` (limits on means and percentiles, from flags), `offered` (rate, users or trace), `candidate` (what is played), `effort` (how many
requests, in which form), `plays` (one play with every step longer by a factor), `latencies` (statistics with their sampling error),
`confidence` (the largest factor at which every limit holds, as a probability), `check` (all of it, for one candidate or several).
"""

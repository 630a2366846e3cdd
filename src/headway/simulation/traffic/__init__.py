"""Traffic: requests that were recorded (Azure, BurstGPT, Mooncake and other formats) or drawn from distributions.

`requests.Traffic` is the record; `read` and `csv` fill it from files, `generate`, `arrivals` and `lengths` from a seed.
"""

"""Traffic: requests that were recorded, or drawn from distributions."""

"""Training: what a layout needs in memory, how long its step takes, what a run costs, and which layout is best."""

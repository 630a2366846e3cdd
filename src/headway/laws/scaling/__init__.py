"""Laws of loss: what compute buys, how far to over-train for what is served, what experts are worth.

`power_laws` (loss by parameters and tokens; experts), `lifetime` (pre-training, reinforcement learning and serving as one bill).
"""

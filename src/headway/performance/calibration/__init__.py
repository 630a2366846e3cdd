"""What a user's own runs say of a deployment: the third layer, after the laws and what the world's runs leave.

`factors` (on a server), `key` (what makes two runs alike), `observation` (a run beside its prediction), `posterior` (what runs
say of factors).
"""

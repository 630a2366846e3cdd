"""Sharded matrix products and collectives over a mesh of chips, in the notation of How to Scale Your Model: A[B_X, D_Y].

`notation` (a mesh, an array, a product as text), `network` (the time of a collective over axes of a mesh), `product` (a chain of matrix
products: FLOP, bytes, the collectives that it needs). Used by the verbs matmul and collective.
"""

"""Columns of `feistel`: unit and sentence of each."""

from __future__ import annotations

from headway.core.columns import Column

COLUMNS: dict[str, Column] = {
    "cipher": Column("", "cipher by name: DES, TEA, SIMON32/64 or SIMON64/128"),
    "rounds": Column("", "rounds of the cipher that are run; beside it a residual network with as many blocks"),
    "key": Column("", "key in hexadecimal"),
    "plain": Column("", "block before, in hexadecimal"),
    "encrypted": Column("", "published block after, in hexadecimal"),
    "result": Column("", "block after, as computed here, in hexadecimal"),
    "agrees": Column("", "whether the computed block is the published one and decrypts to the block before"),
    "block_bits": Column("", "bits of a block"),
    "trials": Column("", "pairs of plaintexts that differ in one random bit"),
    "changed_bits": Column("", "mean output bits that a flipped input bit changes"),
    "changed_share": Column("", "the same over the bits of a block"),
    "random_share": Column("", "share of output bits that a random permutation would change"),
    "sensitivity": Column("", "share of output bits changed over share of input bits changed"),
    "network_sensitivity": Column("", "relative change of a random residual network's output over that of its input"),
    "full_from": Column("", "first round from which one flipped bit changes half of the output, as behind a random permutation"),
    "input_difference": Column("", "difference of two plaintexts, in hexadecimal"),
    "output_difference": Column("", "likeliest difference behind it, in hexadecimal"),
    "pairs": Column("", "pairs of plaintexts with the input difference, counted"),
    "hits": Column("", "pairs of these with the output difference"),
    "probability": Column("", "hits over pairs"),
    "weight_bits": Column("", "minus the binary logarithm of the probability"),
    "random_probability": Column("", "probability of an output difference behind a random permutation"),
    "pairs_needed": Column("", "pairs that show the difference once on average"),
    "epsilon": Column("", "move of every input coordinate of the network, in standard deviations of the points"),
    "right_share": Column("", "share of points that the network classifies rightly"),
    "right_random_share": Column("", "the same after a random move of that size"),
    "right_gradient_share": Column("", "the same after a move of that size along the gradient's sign"),
    "number_format": Column("", "format of the sums: fixed64 (whole numbers), fp64, fp32, fp16 or bf16"),
    "layers": Column("", "couplings, forward and then back"),
    "roundoff": Column("", "relative rounding of one sum in this format"),
    "inversion_error": Column("", "relative error of the input that comes back"),
}
IDENTITY = ("cipher", "number_format", "layers", "rounds")  # columns that identify a row

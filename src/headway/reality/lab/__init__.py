"""The lecture running on the machine at hand: a small real decoder, and experiments measured beside what the laws predict of them.

Holds        shape (the decoder's sizes, and the same decoder as headway's model), decoder (its arithmetic in numpy).
Import       shape.LabShape, shape.model_of, decoder.random_decoder, decoder.Decoder.
May import   everything below evidence.
"""

"""The lecture running on the machine at hand: a small real decoder, and experiments measured beside what the laws predict of them.

Holds        shape (the decoder's sizes, and the same decoder as headway's model), decoder (its arithmetic in numpy), experiment (the
             frame: predicted, hashed, measured), catalogue (the experiments, without their code), the code of each under its name
             (NAME_setup: what the user may choose), child (the process that measures or serves), platform (trains and who waits for
             them), train_work (what a train does), server (trains over HTTP), tier_store, tier_traffic, tier_prices, couplings and
             couplings_torch (residual layers that train), reversible_memory (what they take), clock, questions.
Import       shape.LabShape, shape.model_of, decoder.random_decoder, decoder.Decoder, experiment.run, catalogue.EXPERIMENTS,
             catalogue.experiments_of, platform.Platform, server.TrainServer.
May import   everything below evidence.
"""

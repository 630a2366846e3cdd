"""The lecture running on the machine at hand: a small real decoder, and experiments measured beside what the laws predict of them.

Holds        shape (the decoder's sizes, and the same decoder as headway's model), decoder (its arithmetic in numpy), experiment (the
             frame: predicted, hashed, measured), catalogue (the experiments, without their code), batch, trains and tiers (their code;
             NAME_setup: what the user may choose), child (the process that measures or serves), platform (trains and who waits for them),
             train_work (what a train does), server (trains over HTTP), tier_store, tier_traffic, tier_prices, clock, questions.
Import       shape.LabShape, shape.model_of, decoder.random_decoder, decoder.Decoder, experiment.run, catalogue.EXPERIMENTS,
             catalogue.experiments_of, platform.Platform, server.TrainServer.
May import   everything below evidence.
"""

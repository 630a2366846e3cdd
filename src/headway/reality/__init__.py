"""What can be run here to check a claim: couplings that undo themselves, ciphers, attacks on both; a small decoder; a running server.

Holds        coupling (forward and back, exact or in floats), ciphers/ (DES, TEA, SIMON and their published vectors), attacks (one flipped
             bit by round, likely differences of a reduced cipher, a small network trained and attacked with gradients), demonstrations
             (what `headway feistel` shows, as counts and laws), question, here (this machine as its platform tells of it), threads (work
             in a process with a stated number of them), measure/ (this machine as it runs), lab/ (the lecture running: a decoder in
             numpy, experiments beside what the laws predict of them), probe/ (a running server, measured within a budget).
Import       here.host, here.machine, measure.run.measured, threads.in_child, coupling.forward, coupling.back, lab.decoder.random_decoder,
             ciphers.catalogue.cipher, ciphers.catalogue.published_vectors, attacks.changed_bits, attacks.best_differential,
             attacks.attacked, demonstrations.avalanche_rows.
May import   economics, simulation, training, serving, performance, hardware, models, laws, core. Its users: evidence, report, answers, cli.
Reads        data/ciphers.toml (ciphers/catalogue.py), data/server_metrics.csv (probe/metrics.py).
"""

"""Layer 1 of the judge: a whole environment simulated in one thread from one seed.

``run.simulate`` runs a world, ``judging.judge`` judges it, ``found.find`` says how soon a planted bug is found;
``python -m judge.simulation`` does all three from a shell.
"""

"""Layer 1 of the judge: a whole environment simulated in one thread from one seed."""

"""The product's own cores under a seeded scheduler with a virtual clock and network."""

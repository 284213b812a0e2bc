"""The judge: it disturbs a running Tidemark, records what clients saw, and only then decides whether it was allowed."""

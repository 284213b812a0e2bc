"""What an adapter and a compute controller say to each other: peeks and lookups as values, and as they travel."""

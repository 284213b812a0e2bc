"""The relations of the system schemas: their columns, and their rows as pure functions of an image."""

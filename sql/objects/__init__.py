"""Objects by their names: which there may be, what they mean in one image, what planning asked of it."""

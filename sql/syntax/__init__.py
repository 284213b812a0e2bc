"""Text to statements: what is written, before any name in it is looked up."""

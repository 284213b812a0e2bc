"""Texts and what is carried as one: bytes, words, arrays, ``jsonb``, UUIDs."""

"""Settled rows in columnar files: which files hold which rows of a collection, and the files themselves."""

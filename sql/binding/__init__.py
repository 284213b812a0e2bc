"""Whole queries: what each name in them means, and their types from FROM to LIMIT."""

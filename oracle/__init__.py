"""Timestamps, visibility and conflicts: one topic of small records, folded by everyone (DESIGN §4).

Rows are written elsewhere (``collection``) and are invisible until a record here binds them to a timestamp.  What the
fold says is what happened; a client believes only what it has read back.
"""

"""A query as a small typed algebra: relations and scalars, frozen, of which every node knows its type.

It stands between the binder, which gives it, and the engines, for which it is lowered.  Nothing here knows SQL's
syntax or an engine.
"""

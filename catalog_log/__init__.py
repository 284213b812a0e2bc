"""The catalog as a changelog: proposals, the fold that admits them, images, deltas (DESIGN §3).

Knows typed collections and their records; nothing about SQL or about who acts on them.
"""
